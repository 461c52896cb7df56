"""Checkpoints: checked against the chain, and each way in which one is not good is told."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import pickle
import tracemalloc

import pytest

from adjudge import Checkpoint, RecordError, sign_checkpoint, verify_chain
from adjudge._record.chain import hash_chained_sink
from adjudge._record.signing import Signer

pytestmark = pytest.mark.needs_extra

COUNT = 6


def public(key):
    """The public key beside a private one."""
    return key.with_name(f"{key.name}.pub")


def cut(record, lines):
    """Leave only the first lines of a record."""
    record.write_bytes(b"".join(record.read_bytes().splitlines(keepends=True)[:lines]))


def verified(record, key, **options):
    """Verify with the key's public half."""
    return verify_chain(record, public_key=public(key), **options)


def signed_again(key, checkpoint, **changes):
    """The checkpoint with changes, signed by the key as the format says."""
    changed = dataclasses.replace(checkpoint, **changes)
    return dataclasses.replace(
        changed, signature=base64.b64encode(Signer(key)._key.sign(changed.signed_bytes)).decode()
    )


def test_a_checkpoint_vouches_for_the_records_that_are_there(key, written, kept):
    """Its head and count are those of the chain, and what comes later is not covered."""
    checkpoint = sign_checkpoint(written, key, output=kept)
    result = verified(written, key)

    assert (verify_chain(written).head, COUNT) == (checkpoint.head, checkpoint.records)
    assert (True, COUNT, checkpoint.signed_at) == (result.intact, result.vouched, result.signed_at)
    assert any("after the newest checkpoint" in doubt for doubt in result.not_ruled_out)
    assert any("taken away together" in doubt for doubt in result.not_ruled_out)


def test_the_record_may_have_grown_since(event, key, written, kept):
    """The newest checkpoint says up to where the record is vouched for."""
    sign_checkpoint(written, key, output=kept)
    hash_chained_sink(written)(event(7))
    sign_checkpoint(written, key, output=kept)
    hash_chained_sink(written)(event(8))
    result = verified(written, key)

    assert (True, COUNT + 2, COUNT + 1) == (result.intact, result.lines, result.vouched)
    assert any(f"after number {COUNT + 1}" in doubt for doubt in result.not_ruled_out)


def test_a_checkpoint_can_be_checked_without_adjudge(key, written):
    """It is canonical JSON, and the signature covers it without the signature."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_pem_public_key,
    )

    line = sign_checkpoint(written, key).line
    value = json.loads(line)
    signature = base64.b64decode(value.pop("signature"))
    signed = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    loaded = load_pem_public_key(public(key).read_bytes())
    loaded.verify(signature, signed)

    assert signed.startswith(b'{"checkpoint":"adjudge-checkpoint-v1",')
    assert [line] == line.splitlines(keepends=True)
    der = loaded.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert hashlib.sha256(der).hexdigest() == value["key"]


@pytest.mark.parametrize("left", range(1, COUNT))
def test_a_cut_end_is_found(key, written, kept, left):
    """A record that is shorter than a checkpoint says has lost its end."""
    sign_checkpoint(written, key, output=kept)
    cut(written, left)
    result = verified(written, key)

    assert verify_chain(written).intact
    assert (False, "tail_cut", 1, str(kept)) == (
        result.intact,
        result.code,
        result.broken_at,
        result.broken_in,
    )
    assert f"vouches for {COUNT} records, and there are only {left}" in result.reason


def test_a_cut_end_that_was_written_over_is_found(event, key, written, kept):
    """Other records in the place of those that were signed are told from missing ones."""
    sign_checkpoint(written, key, output=kept)
    cut(written, 3)
    for seq in range(9):
        hash_chained_sink(written)(event(seq))

    assert "checkpoint_mismatch" == verified(written, key).code


def test_an_earlier_checkpoint_still_says_what_is_vouched_for(event, key, written, kept):
    """The fault is the first one; the newest good checkpoint is given all the same."""
    sign_checkpoint(written, key, output=kept)
    for seq in range(4):
        hash_chained_sink(written)(event(seq))
    sign_checkpoint(written, key, output=kept)
    cut(written, COUNT + 1)
    result = verified(written, key)

    assert ("tail_cut", 2, COUNT) == (result.code, result.broken_at, result.vouched)


def test_the_newest_is_the_one_for_most_records_wherever_it_stands(event, key, written, kept):
    """The order of the lines says nothing; of two for as many records the later one counts."""
    first = sign_checkpoint(written, key)
    hash_chained_sink(written)(event(7))
    second = sign_checkpoint(written, key)
    early = signed_again(key, second, signed_at="2020-01-01T00:00:00+00:00")
    kept.write_text("".join(each.line for each in (early, second, early, first)))

    assert (COUNT + 1, second.signed_at) == (
        verified(written, key).vouched,
        verified(written, key).signed_at,
    )


def test_a_broken_chain_is_said_first_with_what_is_vouched_for(event, key, written, kept):
    """A modified line after the checkpoint does not take away what it vouches for."""
    sign_checkpoint(written, key, output=kept)
    hash_chained_sink(written)(event(7))
    written.write_bytes(written.read_bytes().replace(b'"seq":7', b'"seq":8'))
    result = verified(written, key)

    assert ("hash_mismatch", COUNT, COUNT) == (result.code, result.lines, result.vouched)


def test_a_break_before_the_checkpoint_is_told_from_a_cut_end(key, written, kept):
    """What the checkpoint vouches for is there and modified; that is what is said."""
    sign_checkpoint(written, key, output=kept)
    written.write_bytes(written.read_bytes().replace(b'"seq":2', b'"seq":8'))
    result = verified(written, key)

    assert ("hash_mismatch", 3, str(written), None) == (
        result.code,
        result.broken_at,
        result.broken_in,
        result.vouched,
    )


@pytest.mark.parametrize("content", [None, b"", b"\n\n"])
def test_no_checkpoint_is_a_violation(key, written, kept, content):
    """Nothing vouched for is not good where somebody should have vouched."""
    if content is not None:
        kept.write_bytes(content)
    result = verified(written, key)

    assert (False, "no_checkpoint", None) == (result.intact, result.code, result.vouched)


def test_a_checkpoint_of_another_key_is_a_violation(key, other, written, kept):
    """Also beside a good one."""
    sign_checkpoint(written, key, output=kept)
    sign_checkpoint(written, other, output=kept)
    result = verified(written, key)

    assert (False, "other_key", 2) == (result.intact, result.code, result.broken_at)
    assert verify_chain(written, public_key=[public(key), public(other)]).intact


def test_a_checkpoint_that_names_the_key_and_is_signed_with_another_is_a_violation(
    key, other, written, kept
):
    """What counts is the signature and not the name of the key."""
    good = sign_checkpoint(written, key)
    kept.write_text(signed_again(other, good).line)

    assert "bad_signature" == verified(written, key).code


@pytest.mark.parametrize(
    "changes",
    [
        {"records": COUNT - 1},
        {"head": "a" * 64},
        {"signed_at": "2031-01-01T00:00:00+00:00"},
        {"signature": base64.b64encode(bytes(64)).decode()},
    ],
    ids=str,
)
def test_a_modified_checkpoint_is_a_violation(key, written, kept, changes):
    """The signature covers every field."""
    good = sign_checkpoint(written, key)
    kept.write_text(dataclasses.replace(good, **changes).line)

    assert ("bad_signature", 1) == (verified(written, key).code, verified(written, key).broken_at)


def test_every_flipped_bit_of_a_checkpoint_is_found(key, written, kept):
    """No single byte of its line can change unseen, its end apart."""
    line = sign_checkpoint(written, key).line.encode().rstrip()
    for place in range(len(line)):
        changed = bytearray(line)
        changed[place] ^= 1
        kept.write_bytes(changed)

        assert not verified(written, key).intact, place


def test_the_signature_is_kept_apart_from_others_by_its_first_field(key, written, kept):
    """What the key signed under another first field is no checkpoint's signature."""
    good = sign_checkpoint(written, key)
    text = good.signed_bytes.replace(b"adjudge-checkpoint-v1", b"adjudge-checkpoint-v2")
    signature = base64.b64encode(Signer(key)._key.sign(text)).decode()
    kept.write_text(dataclasses.replace(good, signature=signature).line)

    assert "bad_signature" == verified(written, key).code
    kept.write_text(good.line.replace("checkpoint-v1", "checkpoint-v2"))
    assert "not_a_checkpoint" == verified(written, key).code


NONSENSE = {
    "text": lambda line: b"hello",
    "binary": lambda line: b"\xff\xfe\x00",
    "list": lambda line: b"[1]",
    "number": lambda line: b"1",
    "null": lambda line: b"null",
    "empty object": lambda line: b"{}",
    "bottomless": lambda line: b"[" * 100_000,
    "half": lambda line: line[: len(line) // 2],
    "blank before": lambda line: b" " + line,
    "blank after": lambda line: line + b" ",
    "CR LF": lambda line: line + b"\r",
    "blanks within": lambda line: line.replace(b",", b", "),
    "key twice": lambda line: line[:-1] + b',"records":6}',
    "another key": lambda line: line[:-1] + b',"x":1}',
    "count is text": lambda line: line.replace(b'"records":6', b'"records":"6"'),
    "count is true": lambda line: line.replace(b'"records":6', b'"records":true'),
    "count is a float": lambda line: line.replace(b'"records":6', b'"records":6.0'),
    "count is zero": lambda line: line.replace(b'"records":6', b'"records":0'),
    "count is negative": lambda line: line.replace(b'"records":6', b'"records":-6'),
    "count is endless": lambda line: line.replace(b'"records":6', b'"records":' + b"9" * 5000),
    "head in capitals": lambda line: line.replace(b'"head":"', b'"head":"A')[:-1] + b"}",
    "head is null": lambda line: (
        b'{"checkpoint":"adjudge-checkpoint-v1","head":null,'
        b'"key":null,"records":6,"signature":null,"signed_at":null}'
    ),
    "no time": lambda line: line.replace(b'"signed_at":"', b'"signed_at":"x'),
    "no time zone": lambda line: line.replace(b"+00:00", b""),
    "no base64": lambda line: line.replace(b'"signature":"', b'"signature":"!'),
    "short signature": lambda line: line.replace(b'"signature":"', b'"signature":"AAAA'),
}


@pytest.mark.parametrize("change", NONSENSE.values(), ids=NONSENSE)
def test_a_line_that_is_no_checkpoint_is_a_violation(key, written, kept, change):
    """Whatever it is, beside a good one as well, and never an error."""
    line = sign_checkpoint(written, key).line.encode()
    changed = change(line.rstrip())
    assert changed != line.rstrip()
    kept.write_bytes(line + changed + b"\n")
    result = verified(written, key)

    assert (False, "not_a_checkpoint", 2, COUNT) == (
        result.intact,
        result.code,
        result.broken_at,
        result.vouched,
    )


def test_a_time_that_no_clock_can_show_is_no_checkpoint(key, written, kept):
    """A signed line is held to the form, too."""
    good = sign_checkpoint(written, key)
    kept.write_text(signed_again(key, good, signed_at="yesterday").line)

    assert "not_a_checkpoint" == verified(written, key).code


def test_checkpoints_count_over_all_files(event, key, record, kept):
    """Of a rotated record a checkpoint says how many records there are in all."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    for seq in range(3):
        sink(event(seq))
    checkpoint = sign_checkpoint(record, key, output=kept)
    sink(event(4))
    result = verified(record, key)

    assert 5 == checkpoint.records
    assert (True, 7, 5) == (result.intact, result.lines, result.vouched)
    assert verify_chain(list(result.files), public_key=public(key), checkpoints=kept).intact


def test_missing_newest_files_are_a_cut_end(event, key, record, kept):
    """Also where whole files are gone."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    for seq in range(3):
        sink(event(seq))
    sign_checkpoint(record, key, output=kept)
    files = list(verify_chain(record).files)

    assert "tail_cut" == verified(files[:2], key, checkpoints=kept).code


def test_later_files_alone_are_vouched_for_by_later_checkpoints(event, key, record, kept):
    """Those for what was not read are checked by themselves; they vouch for nothing here."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(1))
    sign_checkpoint(record, key, output=kept)
    sink(event(2))
    at_the_seam = sign_checkpoint(record, key, output=kept)
    sink(event(3))
    after = f"{at_the_seam.head}:3"
    for archived in record.parent.glob("audit.0*.jsonl"):
        archived.unlink()

    assert "no_checkpoint" == verified(record, key, after=after).code
    last = sign_checkpoint(record, key, output=kept, after=after)
    result = verified(record, key, after=after)

    assert 5 == last.records
    assert (True, 3, 5) == (result.intact, result.before, result.vouched)


def test_a_checkpoint_at_the_seam_must_be_the_head_that_is_given(event, key, record, kept):
    """What is signed of the last record before the files is compared with --after."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(1))
    good = sign_checkpoint(record, key, output=kept)
    sink(event(2))
    kept.write_text(signed_again(key, good, head="a" * 64).line)

    assert "checkpoint_mismatch" == verified(record, key, after=f"{good.head}:1").code


def test_a_file_of_checkpoints_that_is_named_must_be_there(key, written, tmp_path):
    """A mistyped name is an error."""
    with pytest.raises(RecordError, match="missing"):
        verified(written, key, checkpoints=tmp_path / "missing")


def test_a_checkpoint_is_a_value(key, written):
    """It compares, pickles and prints."""
    checkpoint = sign_checkpoint(written, key)

    assert checkpoint == pickle.loads(pickle.dumps(checkpoint))
    assert isinstance(checkpoint, Checkpoint)


def test_a_file_without_line_ends_is_no_file_of_checkpoints(key, written, kept):
    """It is not read as a whole: a device may be at the path, and give bytes for ever."""
    with kept.open("wb") as file:
        file.truncate(20_000_000)
    tracemalloc.start()
    try:
        result = verify_chain(written, public_key=f"{key}.pub")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert ("not_a_checkpoint", 1) == (result.code, result.broken_at)
    assert peak < 2_000_000
