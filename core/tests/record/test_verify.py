"""verify_chain: every mutation is found and named, and what cannot be ruled out is said."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tracemalloc

import pytest

from adjudge import new_signing_key, sign_checkpoint
from adjudge._record.chain import hash_chained_sink
from adjudge._record.lines import GENESIS_HASH, chain_line, is_residue, sealed_line
from adjudge._record.verification import verify_chain
from adjudge.errors import RecordError

COUNT = 8


@pytest.fixture
def lines(event, record):
    """A record of eight lines, and its lines with their ends."""
    sink = hash_chained_sink(record)
    for seq in range(COUNT):
        sink(event(seq, args={"amount": seq}))
    return record.read_bytes().splitlines(keepends=True)


def rewritten(line, change):
    """The line with its object changed, written as it was, its hash not computed anew."""
    value = json.loads(line)
    change(value)
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def forged(line, change):
    """The line with its object changed and its hash computed anew."""
    value = json.loads(line)
    value.pop("hash")
    change(value)
    return chain_line(value, value.pop("prev_hash"))[0]


def blank(value):
    """Blank both hashes."""
    value.update(hash="", prev_hash="")


MUTATIONS = {
    "edited": ("hash_mismatch", 3, lambda x: [*x[:2], x[2].replace(b":2}", b":9}"), *x[3:]]),
    "edited last": ("hash_mismatch", 8, lambda x: [*x[:7], x[7].replace(b":7}", b":9}")]),
    "edited with a new hash": (
        "link_broken",
        4,
        lambda x: [*x[:2], forged(x[2], lambda v: v.update(seq=99)), *x[3:]],
    ),
    "deleted": ("link_broken", 3, lambda x: [*x[:2], *x[3:]]),
    "beginning cut": ("link_broken", 1, lambda x: x[1:]),
    "swapped": ("link_broken", 3, lambda x: [*x[:2], x[3], x[2], *x[4:]]),
    "repeated": ("repeated", 4, lambda x: [*x[:3], x[1], *x[3:]]),
    "inserted": (
        "fork",
        5,
        lambda x: [
            *x[:3],
            chain_line({"body": {}, "seq": 5}, json.loads(x[2])["hash"])[0],
            *x[3:],
        ],
    ),
    "forked": (
        "fork",
        5,
        lambda x: [*x[:4], chain_line({"body": {}}, json.loads(x[1])["hash"])[0], *x[4:]],
    ),
    "begun anew": ("fork", 9, lambda x: [*x, chain_line({"body": {}}, GENESIS_HASH)[0]]),
    "hashes blanked": ("missing_hash", 1, lambda x: [rewritten(y, blank) for y in x]),
    "hash blanked": (
        "missing_hash",
        5,
        lambda x: [*x[:4], rewritten(x[4], lambda v: v.update(hash="")), *x[5:]],
    ),
    "hash missing": (
        "missing_hash",
        5,
        lambda x: [*x[:4], rewritten(x[4], lambda v: v.pop("hash")), *x[5:]],
    ),
    "prev_hash missing": (
        "missing_hash",
        5,
        lambda x: [*x[:4], rewritten(x[4], lambda v: v.pop("prev_hash")), *x[5:]],
    ),
    "hash of another kind": (
        "missing_hash",
        5,
        lambda x: [*x[:4], rewritten(x[4], lambda v: v.update(prev_hash=[1])), *x[5:]],
    ),
    "hash in capitals": (
        "hash_mismatch",
        1,
        lambda x: [re.sub(rb'[0-9a-f]+"}\n$', lambda m: m[0].upper(), y) for y in x],
    ),
    "CR LF": ("line_ending", 1, lambda x: [y.replace(b"\n", b"\r\n") for y in x]),
    "garbage after": ("not_a_record", 9, lambda x: [*x, b"garbage\n"]),
    "blank line": ("not_a_record", 3, lambda x: [*x[:2], b"\n", *x[2:]]),
    "a list": ("not_a_record", 3, lambda x: [*x[:2], b"[]\n", *x[2:]]),
    "no UTF-8": ("not_a_record", 3, lambda x: [*x[:2], b"\xff\n", *x[2:]]),
    "bottomless": ("not_a_record", 3, lambda x: [*x[:2], b"[" * 100_000 + b"\n", *x[2:]]),
    "lines joined": ("not_a_record", 3, lambda x: [*x[:2], x[2].rstrip(), *x[3:]]),
    "blanks added": ("hash_mismatch", 3, lambda x: [*x[:2], x[2].replace(b',"', b', "'), *x[3:]]),
    "duplicate key": (
        "duplicate_key",
        3,
        lambda x: [*x[:2], b'{"seq":9,' + x[2][1:], *x[3:]],
    ),
}


@pytest.mark.parametrize(("code", "line", "mutate"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_mutation_is_found_named_and_placed(record, lines, code, line, mutate):
    """Each kind of tampering has its code, and the number of the first bad line."""
    mutated = mutate(lines)
    assert mutated != lines
    record.write_bytes(b"".join(mutated))
    result = verify_chain(record)

    assert (False, code, line) == (result.intact, result.code, result.broken_at)
    assert result.reason
    assert line - 1 == result.lines


def test_every_flipped_bit_is_found(record, lines):
    """No single byte of the record can change unseen."""
    data = b"".join(lines[:2])
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        record.write_bytes(changed)

        assert not verify_chain(record).intact, place


def test_a_chain_in_another_form_is_refused_although_its_hashes_fit(record, event):
    """What a verifier accepts is what a sink writes, byte for byte."""
    text = b'{"body":{}, "prev_hash":"%s"}' % GENESIS_HASH.encode()
    record.write_bytes(text[:-1] + b',"hash":"%s"}\n' % hashlib.sha256(text).hexdigest().encode())

    assert "not_canonical" == verify_chain(record).code


def test_a_sound_record_says_what_it_cannot_rule_out(record, lines):
    """Without a head that was kept, a cut end and a forged file cannot be seen; that is said."""
    result = verify_chain(record)

    assert (True, COUNT, None) == (result.intact, result.lines, result.broken_at)
    assert any("cut from the end" in doubt for doubt in result.not_ruled_out)
    assert any("forged" in doubt for doubt in result.not_ruled_out)
    assert any("never reached" in doubt for doubt in result.not_ruled_out)


@pytest.mark.parametrize("cut", range(1, COUNT))
def test_a_cut_end_is_found_with_the_head(record, lines, cut):
    """Lines cut from the end pass alone, and fail against the head that was kept."""
    head = verify_chain(record).head
    record.write_bytes(b"".join(lines[:-cut]))

    assert verify_chain(record).intact
    result = verify_chain(record, expect_head=head)
    assert (False, "head_missing") == (result.intact, result.code)


def test_a_cut_end_that_was_written_over_is_found_with_the_head(event, record, lines):
    """Cutting the end and going on from there does not bring the kept head back."""
    head = verify_chain(record).head
    record.write_bytes(b"".join(lines[:4]))
    for seq in range(10):
        hash_chained_sink(record)(event(seq))

    assert "head_missing" == verify_chain(record, expect_head=head).code


def test_a_wholly_rewritten_file_is_found_with_the_head(event, record, lines):
    """A new, consistent chain is another record."""
    head = verify_chain(record).head
    record.unlink()
    for seq in range(COUNT):
        hash_chained_sink(record)(event(seq))

    assert verify_chain(record).intact
    assert "head_missing" == verify_chain(record, expect_head=f"{head}:{COUNT}").code


def test_the_record_may_have_grown_since_its_head_was_kept(event, record, lines):
    """An older head is found where it was, and what came after it is said not to be covered."""
    head = verify_chain(record).head
    hash_chained_sink(record)(event(99))
    result = verify_chain(record, expect_head=f"{head}:{COUNT}")

    assert result.intact
    assert COUNT == result.anchored
    assert any(f"after number {COUNT}" in doubt for doubt in result.not_ruled_out)


def test_a_head_at_another_count_is_not_the_one_that_was_kept(record, lines):
    """The count belongs to the head."""
    head = verify_chain(record).head

    assert "head_missing" == verify_chain(record, expect_head=f"{head}:{COUNT + 1}").code


@pytest.mark.parametrize("text", ["", "abc", "g" * 64, "a" * 64 + ":0", "a" * 64 + ":-1"])
def test_what_is_no_head_is_refused(record, lines, text):
    """A head that was mistyped is an error, not a head that is missing."""
    with pytest.raises(RecordError):
        verify_chain(record, expect_head=text)


def test_an_empty_file_is_not_good(record):
    """Nothing checked is not good, and with a head it is a cut record."""
    record.write_bytes(b"")

    assert (False, "nothing_checked") == (
        verify_chain(record).intact,
        verify_chain(record).code,
    )
    assert "head_missing" == verify_chain(record, expect_head="a" * 64).code


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    """A missing file is no record that was checked."""
    with pytest.raises(RecordError):
        verify_chain(tmp_path / "missing.jsonl")


def test_proposals_without_an_end_are_listed_and_are_no_violation(event, record):
    """Law 7: `verify` lists proposals still open, which alone is no violation."""
    sink = hash_chained_sink(record)
    sink(event(1, "step.proposed"))
    sink(event(2, "step.proposed"))
    sink(event(2, "approval.pending"))
    sink(event(1, "action.completed"))
    result = verify_chain(record)

    assert result.intact
    assert [(2, "run", 2, "t")] == [
        (item.line, item.correlation_id, item.seq, item.tool) for item in result.open_proposals
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "action.completed",
        "action.failed",
        "action.denied",
        "action.previewed",
        "action.cancelled",
        "approval.expired",
    ],
)
def test_each_terminal_event_closes_its_proposal(event, record, kind):
    """A call is closed by each of the ways in which one can end."""
    sink = hash_chained_sink(record)
    sink(event(1))
    sink(event(1, kind))

    assert () == verify_chain(record).open_proposals


def test_a_suspended_body_is_still_open(event, record):
    """action.suspended is not terminal."""
    sink = hash_chained_sink(record)
    sink(event(1))
    sink(event(1, "action.suspended"))

    assert 1 == len(verify_chain(record).open_proposals)


def test_a_restarted_guard_of_the_same_name_closes_its_own_call(event, record):
    """Where two processes number their calls alike, the end belongs to the later proposal."""
    sink = hash_chained_sink(record)
    sink(event(1))
    sink(event(1))
    sink(event(1, "action.completed"))

    assert [1] == [item.line for item in verify_chain(record).open_proposals]


def test_checkpoints_without_cryptography_are_an_error_that_names_the_extra(
    record, lines, tmp_path, monkeypatch
):
    """Everything else works without it; what needs it says what to install."""
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(RecordError, match=r"adjudge\[sign\]"):
        verify_chain(record, public_key=b"")
    with pytest.raises(RecordError, match=r"adjudge\[sign\]"):
        sign_checkpoint(record, b"")
    with pytest.raises(RecordError, match=r"adjudge\[sign\]"):
        new_signing_key(tmp_path / "key.pem")

    assert [record] == list(tmp_path.iterdir())


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_is_no_json_is_refused_although_the_hashes_fit(record, number):
    """Python reads such a number, and no line is written with one."""
    text = f'{{"body":{{"a":{number}}},"kind":"x","prev_hash":"{GENESIS_HASH}","seq":1}}'
    record.write_bytes(sealed_line(text)[0])

    assert (False, "not_canonical") == (verify_chain(record).intact, verify_chain(record).code)


def test_a_line_that_is_still_being_written_is_no_fault(event, record, lines, monkeypatch):
    """The check ends with what was there: the rest of the line is not read as a line of its own."""
    record.write_bytes(b"".join(lines[:-1]) + lines[-1][:50])

    def a_writer_goes_on(data):
        if data == lines[-1][:50]:
            record.write_bytes(b"".join(lines))
        return is_residue(data)

    monkeypatch.setattr("adjudge._record.walk.is_residue", a_writer_goes_on)
    result = verify_chain(record)

    assert (True, COUNT - 1) == (result.intact, result.lines)
    assert (True, COUNT) == (verify_chain(record).intact, verify_chain(record).lines)


def test_calls_that_have_ended_take_no_memory(event, record):
    """A record of any length is checked in the memory that its open calls and one line take."""

    def peak(calls):
        record.unlink(missing_ok=True)
        sink = hash_chained_sink(record)
        for seq in range(calls):
            sink(event(seq))
            sink(event(seq, "action.completed"))
        tracemalloc.start()
        try:
            assert verify_chain(record).intact
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # what is loaded once is not counted
    few = peak(100)

    assert peak(1_500) < few + 50_000
