"""A write that a crash cut short: told from tampering, kept, reported, and the chain goes on."""

from __future__ import annotations

import pytest

from adjudge._record.chain import hash_chained_sink
from adjudge._record.format import event_to_record
from adjudge._record.lines import chain_line
from adjudge._record.verification import Residue, verify_chain


@pytest.fixture
def torn_at(event, record):
    """Write one record and the first bytes of a second one."""
    sink = hash_chained_sink(record)
    sink(event(1))
    whole = record.read_bytes()
    next_line, _ = chain_line(event_to_record(event(2)), verify_chain(record).head)

    def tear(offset):
        record.write_bytes(whole + next_line[:offset])
        return next_line[:offset]

    tear.size = len(next_line)
    tear.whole = whole
    return tear


def test_a_tear_at_every_offset_is_residue_and_the_chain_goes_on(event, record, torn_at):
    """Whatever part of a line was written, it is reported, kept, vouched for and built upon."""
    for offset in range(1, torn_at.size - 1):
        residue = torn_at(offset)
        before = verify_chain(record)
        hash_chained_sink(record)(event(3))
        hash_chained_sink(record)(event(4))
        after = verify_chain(record)

        assert before.intact
        assert (Residue(2, offset, vouched=False),) == before.residue
        assert after.intact, (offset, after)
        assert (Residue(2, offset + 2, vouched=True),) == after.residue
        assert 4 == after.lines
        assert record.read_bytes().startswith(torn_at.whole + residue)


def test_a_line_that_lacks_its_newline_alone_is_a_whole_record(event, record, torn_at):
    """The last byte is no part of the record; the next writer adds it."""
    torn_at(torn_at.size - 1)
    before = verify_chain(record)
    hash_chained_sink(record)(event(3))
    after = verify_chain(record)

    assert (True, 2, ()) == (before.intact, before.lines, before.residue)
    assert (True, 3, ()) == (after.intact, after.lines, after.residue)


def test_a_tear_in_the_vouching_write_is_residue_as_well(event, record, torn_at):
    """A second crash, at any offset of the write that deals with the first one, changes nothing."""
    residue = torn_at(20)
    hash_chained_sink(record)(event(3))
    complete = record.read_bytes()
    start = len(torn_at.whole) + len(residue)
    for end in range(start + 1, len(complete)):
        record.write_bytes(complete[:end])
        before = verify_chain(record)
        hash_chained_sink(record)(event(4))
        after = verify_chain(record)

        assert before.intact, (end, before)
        assert after.intact, (end, after)
        assert record.read_bytes().startswith(complete[:end])


def test_nul_bytes_after_a_crash_of_the_machine_are_residue(event, record, torn_at):
    """Some file systems leave NULs where data was not yet written."""
    torn_at(30)
    with record.open("ab") as file:
        file.write(b"\0" * 100)
    hash_chained_sink(record)(event(3))

    assert verify_chain(record).intact


@pytest.mark.parametrize(
    ("tail", "code"),
    [
        (b"hello", "not_a_record"),
        (b'{"body":{}}', "missing_hash"),
        (b'{"body":{"a":1', None),
        (b'{"body":{"a":1\n', "not_a_record"),
        (b'{"body":{"a":\x01', "not_a_record"),
        (b'{"seq":1', "not_a_record"),
    ],
)
def test_only_a_proper_prefix_of_a_line_without_an_end_is_residue(record, torn_at, tail, code):
    """What no torn write can have left is tampering, also at the very end."""
    torn_at(0)
    with record.open("ab") as file:
        file.write(tail)

    assert code == verify_chain(record).code


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], b'{"body":{"forged' + b"\x18\n", *lines[2:]],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[1], lines[1], *lines[2:]],
        lambda lines: [*lines[:2], *lines[3:]],
    ],
    ids=["edited", "removed", "added", "voucher removed"],
)
def test_residue_that_a_writer_vouched_for_is_part_of_the_chain(event, record, torn_at, change):
    """Changing, removing or adding torn lines within the record is found."""
    torn_at(20)
    hash_chained_sink(record)(event(3))
    lines = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(b"".join(change(lines)))
    result = verify_chain(record)

    assert not result.intact
    assert result.broken_at in (2, 3)


def test_torn_bytes_of_a_file_without_a_record_are_residue_too(event, record):
    """The very first write may be the one that was cut."""
    record.write_bytes(b'{"bo')
    hash_chained_sink(record)(event(1))
    result = verify_chain(record)

    assert result.intact
    assert 2 == result.lines
