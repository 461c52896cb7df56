"""What a file says of those before it, and what the caller says of those that are not given."""

from __future__ import annotations

import json

import pytest

from adjudge._record.lines import GENESIS_HASH, chain_line, continued_record
from adjudge._record.verification import verify_chain
from adjudge.errors import RecordError


def rewritten(path, change):
    """Change a file's first record and give all its lines new hashes, as a forger would."""
    values = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(values[0])
    head = values[0].pop("prev_hash")
    lines = b""
    for value in values:
        value.pop("hash")
        value.pop("prev_hash", None)
        line, head = chain_line(value, head)
        lines += line
    path.write_bytes(lines)


def test_every_flipped_bit_of_a_continuation_is_found(files, record):
    """No single byte by which a file goes on from another can change unseen."""
    line, *rest = record.read_bytes().splitlines(keepends=True)
    for place in range(len(line)):
        changed = bytearray(line)
        changed[place] ^= 1
        record.write_bytes(b"".join([changed, *rest]))

        assert not verify_chain(record).intact, place


@pytest.mark.parametrize("count", ["", ":7"])
def test_later_files_go_on_from_a_head_that_is_given(files, record, count):
    """--after says what came before; numbers and the head are those of the whole record."""
    whole, kept = verify_chain(record), verify_chain(files[:2])
    result = verify_chain(files[2:], after=kept.head + count)

    assert (True, 7, whole.lines, whole.head) == (
        result.intact,
        result.before,
        result.lines,
        result.head,
    )
    assert any("the 7 records before" in doubt for doubt in result.not_ruled_out)


def test_one_path_after_a_head_is_that_file_alone(files, record):
    """Who says what it goes on from does not have the earlier files looked for."""
    kept = verify_chain(files[:3])

    assert (str(record),) == verify_chain(record, after=kept.head).files
    assert "after_mismatch" == verify_chain(record, after=verify_chain(files[:2]).head).code


def test_a_head_after_which_nothing_comes_is_a_violation(files):
    """A first file does not go on from anything, nor does a later one from any head."""
    assert "after_mismatch" == verify_chain(files, after="a" * 64 + ":4").code


def test_a_wrong_count_before_is_a_violation(files):
    """What a file says of the records before it and what the caller says must agree."""
    head = verify_chain(files[:2]).head

    assert "continuation_mismatch" == verify_chain(files[2:], after=f"{head}:8").code


def test_a_head_without_a_count_needs_a_file_that_says_it(event, files, record, tmp_path):
    """Where a file was cut by hand, nothing says how many came before."""
    lines = record.read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut"
    cut.write_bytes(b"".join(lines[2:]))
    head = json.loads(lines[1])["hash"]

    with pytest.raises(RecordError, match="COUNT"):
        verify_chain(cut, after=head)
    assert 15 == verify_chain(cut, after=f"{head}:13").lines


@pytest.mark.parametrize(
    "changes",
    [
        {"records": 10},
        {"records": 12},
        {"records": 11.0},
        {"records": True},
        {"records": "11"},
        {"records": None},
        {"head": "a" * 64},
        {"file": 1},
        {"more": 1},
    ],
    ids=str,
)
def test_a_wrong_claim_about_what_came_before_is_tampering(files, record, changes):
    """Also where all hashes of the file were computed anew."""
    rewritten(record, lambda value: value["body"].update(changes))
    result = verify_chain(record)

    assert ("continuation_mismatch", 1, str(record)) == (
        result.code,
        result.broken_at,
        result.broken_in,
    )


@pytest.mark.parametrize("body", [None, [], "x", {}])
def test_a_continuation_without_a_claim_is_tampering(files, record, body):
    """A body that is no claim is a wrong one."""
    rewritten(record, lambda value: value.update(body=body))

    assert "continuation_mismatch" == verify_chain(record).code


def test_a_continuation_of_nothing_is_tampering(record):
    """A record does not begin by going on."""
    line, _ = chain_line(continued_record("x", GENESIS_HASH, 0, "2026-01-02"), GENESIS_HASH)
    record.write_bytes(line)

    assert "continuation_mismatch" == verify_chain(record).code
