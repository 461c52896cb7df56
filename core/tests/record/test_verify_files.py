"""verify_chain over the files of a rotated record: put in order by their links, none may miss."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import threading
from pathlib import Path

import pytest

from adjudge._record.chain import hash_chained_sink
from adjudge._record.lines import GENESIS_HASH, chain_line, continued_record
from adjudge._record.verification import verify_chain

EVENTS = 12
OPEN_FILES = Path("/dev/fd")


def edited(path, old, new):
    """Change the bytes of a file."""
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def test_one_path_is_the_whole_record(files, record):
    """The numbered files beside it are read too, from the first to the newest."""
    result = verify_chain(record)

    assert (True, EVENTS + 3) == (result.intact, result.lines)
    assert tuple(map(str, files)) == result.files
    assert json.loads(record.read_bytes().splitlines()[-1])["hash"] == result.head


def test_files_are_put_in_order_by_their_links(files, record, tmp_path):
    """Neither the order in which they are given nor their names say which comes first."""
    expected = verify_chain(record)
    shuffled = [file.rename(tmp_path / name) for file, name in zip(files, "dbca", strict=True)]
    random.Random(3).shuffle(shuffled)
    result = verify_chain(shuffled)

    assert (True, expected.lines, expected.head) == (result.intact, result.lines, result.head)
    assert ["d", "b", "c", "a"] == [Path(file).name for file in result.files]


def test_a_list_of_one_is_that_file_alone(files, record):
    """What is beside it is not looked at."""
    first = verify_chain([files[0]])

    assert (True, 3, (str(files[0]),)) == (first.intact, first.lines, first.files)
    assert "earlier_missing" == verify_chain([record]).code


def test_a_later_file_alone_is_a_violation_that_names_what_is_missing(files):
    """What came before it is not there."""
    result = verify_chain([files[2]])

    assert (False, "earlier_missing", str(files[2])) == (
        result.intact,
        result.code,
        result.broken_in,
    )
    assert "audit.000002.jsonl" in result.reason
    assert 0 == result.lines


@pytest.mark.parametrize(("gone", "code"), [(0, "earlier_missing"), (1, "file_missing")])
def test_a_missing_file_is_a_violation(files, record, gone, code):
    """Also where the numbered files are found and not given."""
    files[gone].unlink()
    found, given = verify_chain(record), verify_chain([*files[:gone], *files[gone + 1 :]])

    assert [(False, code, str(files[gone + 1]))] * 2 == [
        (result.intact, result.code, result.broken_in) for result in (found, given)
    ]
    assert f"{files[gone].name}" in found.reason


@pytest.mark.parametrize("kept", range(1, 16))
def test_only_files_without_a_gap_are_a_record(files, kept):
    """Of all choices among four files, those that have all from the first one on are good."""
    chosen = [file for place, file in enumerate(files) if kept >> place & 1]

    assert (chosen == files[: len(chosen)]) is verify_chain(chosen[::-1]).intact


def test_the_newest_files_missing_shows_with_the_head_alone(files, record):
    """A cut end is a cut end, be it of whole files."""
    head = verify_chain(record).head

    assert verify_chain(files[:2]).intact
    assert "head_missing" == verify_chain(files[:2], expect_head=head).code


def test_the_expected_head_may_be_in_any_file(files, record):
    """Its count is that over all files."""
    kept = verify_chain(files[:2])
    assert 7 == kept.lines

    assert 7 == verify_chain(record, expect_head=f"{kept.head}:7").anchored
    assert "head_missing" == verify_chain(record, expect_head=f"{kept.head}:6").code


def test_files_that_are_joined_or_cut_by_hand_are_the_same_chain(files, record, tmp_path):
    """What counts is the order of the lines, not which file they are in."""
    data = b"".join(file.read_bytes() for file in files)
    lines = data.splitlines(keepends=True)
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    one.write_bytes(data)
    two.write_bytes(b"".join(lines[:5]))
    three.write_bytes(b"".join(lines[5:]))

    assert verify_chain(record).lines == verify_chain(one).lines
    assert verify_chain(record).lines == verify_chain([three, two]).lines


def test_each_fault_is_in_its_file(files, record):
    """The line is that of the file, and the file is named."""
    edited(files[2], b'"seq":7', b'"seq":1')
    result = verify_chain(record)

    assert ("hash_mismatch", 3, str(files[2]), 9) == (
        result.code,
        result.broken_at,
        result.broken_in,
        result.lines,
    )


def test_a_line_that_is_missing_at_the_end_of_a_full_file_is_found(files, record):
    """The next file goes on from it."""
    files[1].write_bytes(b"".join(files[1].read_bytes().splitlines(keepends=True)[:-1]))
    result = verify_chain(record)

    assert ("file_missing", str(files[2]), 6) == (result.code, result.broken_in, result.lines)


def test_torn_lines_that_were_added_to_a_full_file_are_found(files, record):
    """A writer vouches for them before it leaves a file, so nobody has left these."""
    with files[1].open("ab") as file:
        file.write(b'{"body":{')
    result = verify_chain(record)

    assert ("residue_mismatch", 5, str(files[1]), 7) == (
        result.code,
        result.broken_at,
        result.broken_in,
        result.lines,
    )


def test_a_repeated_line_in_a_later_file_is_told_from_a_gap(files, record):
    """Its line is that of its own file."""
    lines = files[1].read_bytes().splitlines(keepends=True)
    files[1].write_bytes(b"".join([*lines[:3], lines[1], *lines[3:]]))
    result = verify_chain(record)

    assert ("repeated", 4, "it repeats line 2") == (
        result.code,
        result.broken_at,
        result.reason,
    )


def test_a_copy_among_the_files_is_told(files, tmp_path):
    """Two files with one beginning cannot both be in their place."""
    copy = tmp_path / "copy"
    copy.write_bytes(files[1].read_bytes())
    result = verify_chain([copy, *files])

    assert "repeated" == result.code
    assert str(copy) in result.reason


def test_a_file_that_is_given_twice_is_read_once(files, record, tmp_path):
    """Under one name, or under two as a crash within a rotation leaves it."""
    os.link(record, tmp_path / "audit.000009.jsonl")

    assert verify_chain([*files, *files]).intact
    assert (True, 4) == (verify_chain(record).intact, len(verify_chain(record).files))


def test_two_files_that_go_on_from_one_are_a_fork(event, files, record, tmp_path):
    """Both link; only one can be the record."""
    head = verify_chain(files[:2]).head
    value = continued_record("x", head, 7, "2026-01-02")
    (tmp_path / "audit.000009.jsonl").write_bytes(chain_line(value, head)[0])
    result = verify_chain(record)

    assert ("fork", str(tmp_path / "audit.000009.jsonl")) == (result.code, result.broken_in)


def test_another_records_beginning_among_the_files_is_told(event, files, record, tmp_path):
    """A record that was begun anew at the path does not pass for the rotated one."""
    record.unlink()
    hash_chained_sink(record)(event(99))
    result = verify_chain(record)

    assert (False, "separate_record") == (result.intact, result.code)
    assert verify_chain([record]).intact


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "file_empty"),
        (b"garbage\n", "not_a_record"),
        (b'{"body":{', "file_empty"),
        (b"{}\n", "missing_hash"),
    ],
)
def test_a_numbered_file_that_is_no_part_of_a_record_is_a_violation(files, record, data, code):
    """Emptied or overwritten, it is named."""
    files[1].write_bytes(data)
    result = verify_chain(record)

    assert (False, code, str(files[1])) == (result.intact, result.code, result.broken_in)


def test_an_emptied_newest_file_is_a_violation(files, record):
    """A rotated record's newest file is never empty."""
    record.write_bytes(b"")

    assert ("file_empty", str(record)) == (
        verify_chain(record).code,
        verify_chain(record).broken_in,
    )


@pytest.mark.parametrize(
    "name",
    [
        "audit.20260102.jsonl",
        "audit.1.jsonl",
        "audit.0000001.jsonl",
        "audit.000001.jsonl.gz",
        "other.000001.jsonl",
        "audit.000001.txt",
        "audit..jsonl",
        "audit.\u0661\u0661\u0661\u0661\u0661\u0661.jsonl",
    ],
)
def test_other_files_beside_the_record_are_none_of_its(files, record, tmp_path, name):
    """Only what rotation itself would write is looked for."""
    (tmp_path / name).write_text("x")
    (tmp_path / "audit.000777.jsonl").mkdir()

    assert verify_chain(record).intact


def test_a_record_may_be_called_anything(event, tmp_path):
    """A name without a suffix, with several, or with what a pattern would read."""
    for name in ("audit", "a.b.jsonl", "a[1].jsonl", ".jsonl"):
        path = tmp_path / name
        sink = hash_chained_sink(path, rotate_bytes=1)
        sink(event(1))
        sink(event(2))

        assert (True, 3) == (verify_chain(path).intact, verify_chain(path).lines), name


def test_more_files_than_can_be_open_at_once_are_read(event, record):
    """Numbered files stay where they are, and are opened in their turn."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    for seq in range(80):
        sink(event(seq))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(OPEN_FILES.iterdir())) + 20, hard))
    try:
        result = verify_chain(record)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert (True, 80) == (result.intact, len(result.files))


def test_open_proposals_and_residue_say_which_file(event, files, record):
    """A call may begin in one file and end in another."""
    hash_chained_sink(record)(event(0, "action.completed"))
    with record.open("ab") as file:
        file.write(b'{"body":{')
    result = verify_chain(record)

    assert [1, 2, 3] == [item.seq for item in result.open_proposals[:3]]
    assert [2, 3, 2] == [item.line for item in result.open_proposals[:3]]
    assert [str(file) for file in files for _ in range(3)][1:] == [
        item.file for item in result.open_proposals
    ]
    assert [(6, str(record))] == [(item.line, item.file) for item in result.residue]


def test_a_record_is_sound_while_it_is_rotated(event, record):
    """A check beside a writer that rotates all the time raises no false alarm."""
    stop = threading.Event()

    def write():
        sink = hash_chained_sink(record, rotate_bytes=1)
        for seq in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
            sink(event(seq))

    hash_chained_sink(record)(event(0))
    writer = threading.Thread(target=write)
    writer.start()
    results = []
    try:
        while len(results) < 20 or len({len(result.files) for result in results}) < 5:
            results.append(verify_chain(record))
    finally:
        stop.set()
        writer.join()

    assert [] == [result for result in results if not result.intact]


def test_a_value_that_cannot_be_a_key_is_no_error(record):
    """A forged line with a list for an id is read like any other."""
    for kind in ("step.proposed", [1], {}):
        value = {"kind": kind, "body": {}, "correlation_id": [1], "seq": {}}
        record.write_bytes(chain_line(value, GENESIS_HASH)[0])

        assert verify_chain(record).intact


def test_a_full_file_without_its_last_newline_is_found(files, record):
    """A writer ends the last line before it goes on in another file."""
    files[1].write_bytes(files[1].read_bytes().removesuffix(b"\n"))
    result = verify_chain(record)

    assert (False, "line_ending", str(files[1]), 4) == (
        result.intact,
        result.code,
        result.broken_in,
        result.broken_at,
    )


def test_a_record_whose_name_ends_in_a_number_may_be_rotated_meanwhile(
    event, tmp_path, monkeypatch
):
    """What is at such a path is not taken for a full file, which stays where it is."""
    record = tmp_path / "agent.123456.jsonl"
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(0))
    scandir = os.scandir

    def a_writer_rotates(path):
        sink(event(1))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", a_writer_rotates)
    result = verify_chain(record)

    assert (True, 1) == (result.intact, result.lines)
