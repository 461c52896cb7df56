"""`adjudge verify`: the exit code and what it says."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import pytest

from adjudge import AuditEvent, hash_chained_sink, verify_chain


@pytest.fixture
def record(tmp_path):
    """A record of five events; one proposal is open."""
    path = tmp_path / "audit.jsonl"
    sink = hash_chained_sink(path)
    for seq, kind in ((1, "step.proposed"), (1, "action.completed"), (2, "step.proposed")):
        body = {"tool": "wipe\x1b[2J"}
        sink(AuditEvent("run", "bundle", seq, kind, datetime(2026, 1, 2, tzinfo=UTC), body))
    return path


def test_a_sound_record_is_good_and_says_what_is_not_ruled_out(adjudge, record):
    """Exit 0, the head to keep, open proposals, and the doubts that remain."""
    done = adjudge("verify", "audit.jsonl")

    assert (0, "") == (done.returncode, done.stderr)
    assert "intact: 3 records" in done.stdout
    assert f"head: {verify_chain(record).head}:3" in done.stdout
    assert "still open: line 3, wipe" in done.stdout
    assert "\x1b" not in done.stdout
    assert "Records cut from the end" in done.stdout


def test_the_printed_head_can_be_expected(adjudge, record):
    """What verify prints is what --expect-head takes."""
    head = next(
        line.split()[1]
        for line in adjudge("verify", "audit.jsonl").stdout.splitlines()
        if line.startswith("head:")
    )
    done = adjudge("verify", "audit.jsonl", "--expect-head", head)

    assert 0 == done.returncode
    assert "vouches for 3 records" in done.stdout


def test_a_cut_record_is_a_violation_only_with_its_head(adjudge, record):
    """Cutting the end passes alone, and is exit 1 against the head."""
    head = verify_chain(record).head
    record.write_bytes(b"".join(record.read_bytes().splitlines(keepends=True)[:2]))

    assert 0 == adjudge("verify", "audit.jsonl").returncode
    done = adjudge("verify", "audit.jsonl", "--expect-head", head)
    assert (1, "") == (done.returncode, done.stdout)
    assert "head_missing" in done.stderr


def test_a_modified_record_is_a_violation_with_its_line(adjudge, record):
    """Exit 1, the line and the reason on standard error."""
    record.write_bytes(record.read_bytes().replace(b'"seq":2', b'"seq":3'))
    done = adjudge("verify", "audit.jsonl")

    assert (1, "") == (done.returncode, done.stdout)
    assert "at line 3" in done.stderr
    assert "hash_mismatch" in done.stderr


@pytest.mark.parametrize("name", ["missing.jsonl", "empty.jsonl", "."])
def test_nothing_checked_is_two(adjudge, record, name):
    """A wrong path and an empty file are bad input, never good."""
    (record.parent / "empty.jsonl").touch()

    assert 2 == adjudge("verify", name).returncode


def test_a_head_that_is_none_is_bad_usage(adjudge, record):
    """A mistyped head is told from a missing one."""
    assert 2 == adjudge("verify", "audit.jsonl", "--expect-head", "abc").returncode


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda data: data, 0),
        (lambda data: data.replace(b'"seq":2', b'"seq":3'), 1),
        (lambda data: data[:-30], 0),
        (lambda data: b"", 2),
    ],
    ids=["sound", "modified", "torn", "empty"],
)
def test_json_gives_the_same_code(adjudge, record, damage, code):
    """--json changes the form, never the answer."""
    record.write_bytes(damage(record.read_bytes()))
    plain = adjudge("verify", "audit.jsonl")
    structured = adjudge("verify", "--json", "audit.jsonl")

    assert code == plain.returncode == structured.returncode
    assert (code == 0) is json.loads(structured.stdout)["intact"]


def test_json_of_a_file_that_cannot_be_read_is_json_too(adjudge):
    """A reader of the JSON always gets JSON."""
    done = adjudge("verify", "--json", "missing.jsonl")

    assert 2 == done.returncode
    assert "record" == json.loads(done.stdout)["error"]["code"]


def test_crash_residue_is_reported(adjudge, record):
    """A torn end is said, and is no violation."""
    with record.open("ab") as file:
        file.write(b'{"body":{')
    done = adjudge("verify", "audit.jsonl")

    assert 0 == done.returncode
    assert "crash residue: line 4, 9 bytes, at the end" in done.stdout
    assert "cut on purpose" in done.stdout


def test_a_violation_is_one_also_into_a_closed_pipe(process, record):
    """Who does not read the answer gets the same code."""
    record.write_bytes(record.read_bytes().replace(b'"seq":2', b'"seq":3'))
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        done = process("verify", "--json", "audit.jsonl", stdout=stdout)

    assert 1 == done.returncode
    assert "Traceback" not in done.stderr


def test_many_open_proposals_are_cut_with_a_count(adjudge, record):
    """The text stays readable; --json has them all."""
    sink = hash_chained_sink(record)
    for seq in range(10, 50):
        sink(AuditEvent("run", "b", seq, "step.proposed", datetime(2026, 1, 2, tzinfo=UTC), {}))
    done = adjudge("verify", "audit.jsonl")
    every = json.loads(adjudge("verify", "--json", "audit.jsonl").stdout)["open_proposals"]

    assert "still open: 21 more; --json lists all" in done.stdout
    assert 41 == len(every)
