"""A checkpoint whose writing a crash cut short: it is named, and stands in nobody's way."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from adjudge import RecordError, sign_checkpoint, verify_chain
from adjudge._record import vouching
from adjudge._record.chain import hash_chained_sink

pytestmark = pytest.mark.needs_extra

COUNT = 6


def verified(record, key):
    """Verify with the key's public half."""
    return verify_chain(record, public_key=Path(f"{key}.pub"))


def named(result, kept, line):
    """Whether the result names a line of the checkpoints as one that was cut short."""
    return any(f"{kept}:{line}, the beginning of" in doubt for doubt in result.not_ruled_out)


def killed_signer(record, key, kept, monkeypatch, size):
    """Sign in a forked process that is killed when so many bytes of its write are out."""

    def write_some(fd, data):
        os.write(fd, data[:size])
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(vouching, "write_all", write_some)
        try:
            sign_checkpoint(record, key, output=kept)
        finally:
            os._exit(1)
    assert signal.SIGKILL == os.waitpid(child, 0)[1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("size", [1, 20, 100, 300])
def test_a_signer_that_is_killed_in_the_middle_of_a_write_stands_in_nobodys_way(
    event, key, written, kept, monkeypatch, size
):
    """What is whole still vouches, the next signer goes on, and the cut line is named."""
    sign_checkpoint(written, key, output=kept)
    hash_chained_sink(written)(event(7))
    killed_signer(written, key, kept, monkeypatch, size)
    after_the_crash = verified(written, key)
    sign_checkpoint(written, key, output=kept)
    in_the_end = verified(written, key)

    assert (True, COUNT) == (after_the_crash.intact, after_the_crash.vouched)
    assert named(after_the_crash, kept, 2)
    assert (True, COUNT + 1) == (in_the_end.intact, in_the_end.vouched)
    assert named(in_the_end, kept, 2)
    assert 3 == len(kept.read_bytes().splitlines())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("size", [1, 2, 50])
def test_the_next_signer_may_be_killed_too(key, written, kept, monkeypatch, size):
    """Also while it closes what the first one left."""
    sign_checkpoint(written, key, output=kept)
    killed_signer(written, key, kept, monkeypatch, 40)
    killed_signer(written, key, kept, monkeypatch, size)
    after_the_crash = verified(written, key)
    sign_checkpoint(written, key, output=kept)

    assert (True, COUNT) == (after_the_crash.intact, after_the_crash.vouched)
    assert verified(written, key).intact


def test_every_beginning_of_a_checkpoint_is_passed_over(key, written, kept):
    """Wherever it was cut, with NUL bytes after it or without; all but the newline is whole."""
    line = sign_checkpoint(written, key).line.encode()
    for size in range(1, len(line) - 1):
        for filled in (b"", b"\0\0"):
            kept.write_bytes(line + line[:size] + filled)
            result = verified(written, key)

            assert result.intact, size
            assert named(result, kept, 2)
    kept.write_bytes(line + line[:-1])

    assert not named(verified(written, key), kept, 2)


def test_the_very_first_checkpoint_may_be_cut_short(key, written, kept, monkeypatch):
    """Alone it vouches for nothing, and hinders nobody from signing."""
    kept.write_bytes(sign_checkpoint(written, key).line.encode()[:100])
    alone = verified(written, key)
    sign_checkpoint(written, key, output=kept)

    assert "no_checkpoint" == alone.code
    assert verified(written, key).intact


@pytest.mark.parametrize(
    "content",
    [
        b'{"checkpoint":"adjudge-checkpoint-v1","head":"ab\n',
        b'{"checkpoint":"adjudge-checkpoint-v2","head":"ab',
        b'{"checkpoint":"adjudge-checkpoint-v1"}',
        b'{"checkpoint":"adjudge-checkpoint-v1","head":"\x07',
        b"hello",
        b"hello\x18\n",
    ],
)
def test_what_no_crash_leaves_is_a_violation_as_ever(key, written, kept, content):
    """Only the beginning of a checkpoint that nobody ended is passed over."""
    kept.write_bytes(sign_checkpoint(written, key).line.encode() + content)

    assert ("not_a_checkpoint", 2) == (
        verified(written, key).code,
        verified(written, key).broken_at,
    )
    with pytest.raises(RecordError):
        sign_checkpoint(written, key, output=kept)
