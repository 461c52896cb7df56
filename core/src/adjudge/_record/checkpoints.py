"""Checkpoints: lines by which the holder of a key vouches for the first records of a chain.

A line is the canonical JSON of what is signed and its Ed25519 signature, which covers that JSON
without the signature. The first field keeps it apart from anything else the key may sign. A
checkpoint says nothing of what came after it, and nothing of whether newer ones were taken away;
so a line that a crash cut short is passed over, and named: it is no worse than one that is gone.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from adjudge._record.format import record_line
from adjudge._record.lines import CLOSE_TORN, is_torn
from adjudge._record.results import Fault
from adjudge._record.walk import Walk

__all__ = [
    "LONGEST",
    "SUFFIX",
    "Checkpoint",
    "Judged",
    "Keys",
    "Written",
    "is_cut_short",
    "judge",
    "read_all",
]

_VERSION = "adjudge-checkpoint-v1"
SUFFIX = ".checkpoints"
_START = f'{{"checkpoint":"{_VERSION}","head":"'.encode("ascii")
LONGEST = 4096
"""The number of bytes that a line of a file of checkpoints has at most."""
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The holder of a key vouches for the first records of a chain.

    These are `records` in number, over all files of the record, and the hash of the last of them is
    `head`. `signed_at` is the signer's time in ISO format, `key` the SHA-256 of the public key (of
    its DER form), `signature` the signature in base64.
    """

    head: str
    records: int
    signed_at: str
    key: str
    signature: str = ""

    @property
    def signed_bytes(self) -> bytes:
        """What the signature covers."""
        return record_line(self._unsigned()).encode("ascii")

    @property
    def line(self) -> str:
        """It as one line of a file, the newline included."""
        return record_line({**self._unsigned(), "signature": self.signature}) + "\n"

    def _unsigned(self) -> dict[str, object]:
        return {
            "checkpoint": _VERSION,
            "head": self.head,
            "key": self.key,
            "records": self.records,
            "signed_at": self.signed_at,
        }


class Written(NamedTuple):
    """One line of a file of checkpoints, and what it holds; None if that is no checkpoint.

    `cut_short` says that it is the beginning of one, whose writer did not come to its end.
    """

    file: str
    line: int
    checkpoint: Checkpoint | None
    cut_short: bool = False


def read_all(path: str | os.PathLike[str]) -> list[Written]:
    """Read a file of checkpoints; blank lines are passed over. `OSError` if it cannot be read."""
    with Path(path).open("rb") as file:
        return [
            Written(os.fspath(path), number, _parsed(line.removesuffix(b"\n")), is_cut_short(line))
            for number, line in enumerate(_lines(file), 1)
            if line.strip()
        ]


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Give the lines up to one that is too long: what has such a line may have no end."""
    line = b""
    while len(line) < LONGEST and (line := file.readline(LONGEST)):
        yield line


def is_cut_short(line: bytes) -> bool:
    """Whether a line is what a crash left of one; the next writer closes it as in a chain."""
    if len(line) >= LONGEST or (line.endswith(b"\n") and not line.endswith(CLOSE_TORN)):
        return False
    return is_torn(line.removesuffix(b"\n").removesuffix(CLOSE_TORN[:1]), _START)


def _parsed(line: bytes) -> Checkpoint | None:
    try:
        fields = json.loads(line.decode("ascii"))
        fields.pop("checkpoint", None)
        found = Checkpoint(**fields)
        # Only the one form is read, so another version, a key that occurs twice or a blank shows.
        sound = _is_sound(found) and found.line.encode("ascii") == line + b"\n"
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return found if sound else None


def _is_sound(found: Checkpoint) -> bool:
    signature = base64.b64decode(found.signature)
    return (
        _HASH.fullmatch(found.head) is not None
        and _HASH.fullmatch(found.key) is not None
        and type(found.records) is int
        and found.records > 0
        and datetime.fromisoformat(found.signed_at).tzinfo is not None
        and len(signature) == 64
        and base64.b64encode(signature).decode("ascii") == found.signature
    )


class Keys(Protocol):
    """The public keys whose checkpoints count."""

    def knows(self, key: str) -> bool:
        """Whether the key with this fingerprint is one of them."""

    def accepts(self, checkpoint: Checkpoint) -> bool:
        """Whether its signature is that of its key, which is one of them."""


class Judged(NamedTuple):
    """What checkpoints come to: the first fault, the newest good one, and what was passed over."""

    fault: Fault | None
    newest: Checkpoint | None
    cut_short: tuple[Written, ...] = ()


def judge(written: Iterable[Written], keys: Keys, walk: Walk, *, before: int) -> Judged:
    """Check each checkpoint by itself and against the chain.

    Those for less than `before` records, which were not read, are checked by themselves alone.
    """
    fault: Fault | None = None
    newest: Checkpoint | None = None
    cut_short = []
    for each in written:
        if each.cut_short:
            cut_short.append(each)
            continue
        wrong = _by_itself(each, keys)
        found = each.checkpoint
        if wrong is None and found is not None and found.records >= before:
            wrong = _on_chain(found, walk)
            if wrong is None and found.records > max(before, newest.records if newest else 0):
                newest = found
            elif wrong is None and newest is not None and found.records == newest.records:
                newest = max(newest, found, key=_time)
        if wrong is not None and fault is None:
            fault = Fault(*wrong, each.file, each.line)
    if fault is None and newest is None:
        text = "no checkpoint of the given keys vouches for any of these records"
        fault = Fault("no_checkpoint", text)
    return Judged(fault, newest, tuple(cut_short))


def _time(checkpoint: Checkpoint) -> datetime:
    return datetime.fromisoformat(checkpoint.signed_at)


def _by_itself(each: Written, keys: Keys) -> tuple[str, str] | None:
    found = each.checkpoint
    if found is None:
        return "not_a_checkpoint", "it is no checkpoint; the line was modified, or never was one"
    if not keys.knows(found.key):
        return "other_key", f"it was signed with another key ({found.key}) than those given"
    if not keys.accepts(found):
        return "bad_signature", "its signature does not fit; it was modified, or forged"
    return None


def _on_chain(found: Checkpoint, walk: Walk) -> tuple[str, str] | None:
    if found.records > walk.count:
        text = (
            f"it vouches for {found.records} records, and there are only {walk.count}; "
            "the end of the record was cut off"
        )
        return "tail_cut", text
    if walk.heads.get(found.records) != found.head:
        text = (
            f"record {found.records} is not the one that it vouches for; "
            "records were replaced, or it belongs to another record"
        )
        return "checkpoint_mismatch", text
    return None
