"""Checks a hash-chained record line by line, and says what it found and what it could not rule out.

It reads the exact bytes, and finds each edit, deletion, insertion, reordering, fork and foreign
line within the chain. Alone it cannot see that the end was cut off, or that the whole file was
forged: for that it takes a head that was kept elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from adjudge._record.lines import (
    GENESIS_HASH,
    RESIDUE_KIND,
    BadLine,
    ChainLine,
    hash_of,
    is_residue,
    is_whole,
    read_line,
    residue_record,
)
from adjudge.errors import RecordError

__all__ = ["OpenProposal", "Residue", "VerifyResult", "verify_chain"]

_CLOSING_KINDS = frozenset(
    {
        "action.completed",
        "action.failed",
        "action.denied",
        "action.previewed",
        "action.cancelled",
        "approval.expired",
    }
)


@dataclass(frozen=True, slots=True)
class OpenProposal:
    """A proposal without a terminal event: it runs, waits for a person, or was lost in a crash."""

    line: int
    correlation_id: str
    seq: int
    tool: str


@dataclass(frozen=True, slots=True)
class Residue:
    """Bytes of a write that a crash cut short, from the line `line` on.

    `vouched` says that a later writer found them so and recorded it within the chain.
    """

    line: int
    size: int
    vouched: bool


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What `verify_chain` found.

    `intact` is True only if there is at least one record, all link, and the expected head, where
    given, is among them. `lines` counts the records up to the first fault and `head` is the hash of
    the last of them: `HEAD:LINES` is what to keep elsewhere. `broken_at` is the number of the first
    bad line of the file, from 1; `code` is a stable word for `reason`. `anchored` is how many
    records the expected head vouches for.
    """

    intact: bool
    lines: int
    broken_at: int | None = None
    reason: str | None = None
    code: str | None = None
    head: str | None = None
    anchored: int | None = None
    open_proposals: tuple[OpenProposal, ...] = ()
    residue: tuple[Residue, ...] = ()
    not_ruled_out: tuple[str, ...] = ()


def verify_chain(path: str | os.PathLike[str], *, expect_head: str | None = None) -> VerifyResult:
    """Check the record at `path`.

    `expect_head` is `HASH` or `HASH:COUNT`, a head that was kept before. It must occur in the
    chain, at that count where one is given; records may follow it. A file that cannot be read, or
    an `expect_head` that is none, raises `RecordError`.
    """
    walk = _Walk(_Anchor.parse(expect_head) if expect_head is not None else None)
    try:
        with Path(path).open("rb") as file:
            walk.read(file)
            file.seek(0)
            walk.explain_link(file)
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}.") from error
    return walk.result()


class _Anchor(NamedTuple):
    head: str
    position: int | None

    @classmethod
    def parse(cls, text: str) -> _Anchor:
        match = re.fullmatch(r"([0-9a-f]{64})(?::([1-9][0-9]{0,17}))?", text)
        if match is None:
            raise RecordError(
                f"{text!r} is no head of a record; write the 64 hexadecimal digits that "
                "`adjudge verify` prints, and :COUNT after them if you have it."
            )
        return cls(match[1], int(match[2]) if match[2] else None)


class _Fault(NamedTuple):
    line: int | None
    code: str
    reason: str


class _Walk:
    """One pass over the file; it stops at the first fault."""

    def __init__(self, anchor: _Anchor | None) -> None:
        self._anchor = anchor
        self._anchored: int | None = None
        self._count = 0
        self._head = GENESIS_HASH
        self._number = 0
        self._torn: list[bytes] = []
        self._residue: list[Residue] = []
        self._open: dict[tuple[object, object], list[OpenProposal]] = {}
        self._stray: ChainLine | None = None
        self._fault: _Fault | None = None

    def read(self, lines: Iterable[bytes]) -> None:
        """Follow the chain to its end or its first fault."""
        for raw in lines:
            self._number += 1
            if is_residue(raw):
                self._torn.append(raw)
                continue
            try:
                self._take(read_line(raw.removesuffix(b"\n")))
            except BadLine as bad:
                self._fault = _Fault(self._number - len(self._torn), bad.code, str(bad))
                return
        if self._torn:
            self._note_residue(self._number + 1, vouched=False)

    def _take(self, line: ChainLine) -> None:
        if self._torn or line.record.get("kind") == RESIDUE_KIND:
            self._take_residue(line.record)
        if line.prev_hash != self._head:
            self._stray = line
            raise BadLine(
                "link_broken",
                "it does not link to the line before it; lines were deleted, moved or inserted",
            )
        self._count += 1
        self._head = line.hash
        if self._anchor is not None and self._anchor.head == line.hash:
            self._anchored = self._count
        self._follow(line.record)

    def _take_residue(self, record: Mapping[str, Any]) -> None:
        torn = b"".join(self._torn)
        if not torn or record != residue_record(torn, str(record.get("timestamp"))):
            raise BadLine(
                "residue_mismatch",
                "torn lines were changed, added or removed; no writer vouches for them as they are",
            )
        self._note_residue(self._number, vouched=True)

    def _note_residue(self, next_line: int, *, vouched: bool) -> None:
        size = sum(map(len, self._torn))
        self._residue.append(Residue(next_line - len(self._torn), size, vouched))
        self._torn.clear()

    def _follow(self, record: Mapping[str, Any]) -> None:
        key = (record.get("correlation_id"), record.get("seq"))
        kind = record.get("kind")
        if kind == "step.proposed":
            body = record.get("body")
            tool = body.get("tool") if isinstance(body, dict) else None
            proposal = OpenProposal(self._number, str(key[0]), _as_int(key[1]), str(tool or ""))
            self._open.setdefault(key, []).append(proposal)
        elif kind in _CLOSING_KINDS and self._open.get(key):
            # A guard that was started anew under the same name numbers its calls from the start
            # again: what ends is the latest of them.
            self._open[key].pop()

    def explain_link(self, lines: Iterable[bytes]) -> None:
        """Say more of a line that does not link: tell a repetition and a fork from a gap."""
        if self._stray is None:
            return
        stray, number = self._stray, self._number
        origin = "the beginning" if stray.prev_hash == GENESIS_HASH else None
        for earlier, raw in zip(range(1, number), lines, strict=False):
            line = raw.removesuffix(b"\n")
            found = hash_of(line) if is_whole(line) else None
            if found == stray.hash:
                self._fault = _Fault(number, "repeated", f"it repeats line {earlier}")
                return
            if found == stray.prev_hash:
                origin = f"line {earlier}"
        if origin is not None:
            self._fault = _Fault(
                number,
                "fork",
                f"it goes on from {origin} and not from the line before it; two writers forked "
                "the chain, or lines were inserted",
            )

    def result(self) -> VerifyResult:
        """Sum up."""
        fault = self._fault or self._fault_of_the_whole()
        return VerifyResult(
            intact=fault is None,
            lines=self._count,
            broken_at=fault.line if fault is not None else None,
            reason=fault.reason if fault is not None else None,
            code=fault.code if fault is not None else None,
            head=self._head if self._count else None,
            anchored=self._anchored,
            open_proposals=tuple(
                sorted(
                    (proposal for group in self._open.values() for proposal in group),
                    key=lambda proposal: proposal.line,
                )
            ),
            residue=tuple(self._residue),
            not_ruled_out=tuple(self._doubts()) if fault is None else (),
        )

    def _fault_of_the_whole(self) -> _Fault | None:
        anchor = self._anchor
        if anchor is None:
            if self._count:
                return None
            return _Fault(None, "nothing_checked", "there is no record in the file")
        if self._anchored is None:
            return _Fault(
                None,
                "head_missing",
                f"the expected head is not among its {self._count} records; "
                "its end was cut off, or it is another record",
            )
        if anchor.position not in (None, self._anchored):
            return _Fault(
                None,
                "head_missing",
                f"the expected head is record {self._anchored}, not {anchor.position}",
            )
        return None

    def _doubts(self) -> Iterator[str]:
        if self._anchored is None:
            yield (
                "Records cut from the end, or a file forged as a whole: no head that was kept "
                "elsewhere was given (--expect-head)."
            )
        elif self._anchored < self._count:
            yield (
                f"Records after number {self._anchored} cut from the end or forged: the head that "
                "was given is older than they are."
            )
        else:
            yield "Records that were written after the head that was given, and then cut off."
        if self._residue:
            yield "That torn lines were cut on purpose, and not by a crash."
        yield "Events that never reached this record."


def _as_int(value: object) -> int:
    return value if isinstance(value, int) else 0
