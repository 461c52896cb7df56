"""One pass over the files of a record, line by line, up to the first fault.

It reads the exact bytes, and finds each edit, deletion, insertion, reordering, fork and foreign
line within the chain. Which file comes next is for others to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from adjudge._record.format import record_line
from adjudge._record.lines import (
    CONTINUED_KIND,
    GENESIS_HASH,
    RESIDUE_KIND,
    BadLine,
    ChainLine,
    continued_record,
    hash_of,
    is_residue,
    is_whole,
    read_line,
    residue_record,
)
from adjudge._record.results import Fault, OpenProposal, Residue

__all__ = ["Walk"]

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


class Walk:
    """Follows a chain, from the record number `count` on, whose hash is `head`.

    `positions` tells at which number each hash of `hashes` was found, and `heads` the hash of each
    number in `numbers`. With `several`, findings say which file they are of.
    """

    def __init__(
        self,
        head: str,
        count: int,
        *,
        hashes: Collection[str] = (),
        numbers: Collection[int] = (),
        several: bool = False,
    ) -> None:
        self.count = count
        self.head = head
        self.fault: Fault | None = None
        self.files: list[str] = []
        self.residue: list[Residue] = []
        self.positions = {head: count} if count else {}
        self.heads = {count: head} if count else {}
        self._hashes = frozenset(hashes)
        self._numbers = frozenset(numbers)
        self._several = several
        self._number = 0
        self._torn: list[bytes] = []
        self._ended = True
        self._open: dict[tuple[str, int], list[OpenProposal]] = {}
        self._stray: ChainLine | None = None

    @property
    def open_proposals(self) -> tuple[OpenProposal, ...]:
        """The proposals without an end, in the order of the chain."""
        found = [proposal for group in self._open.values() for proposal in group]
        order = {file: place for place, file in enumerate(self.files)}
        return tuple(
            sorted(found, key=lambda item: (order[item.file] if item.file else 0, item.line))
        )

    def read(self, file: str, lines: Iterable[bytes]) -> None:
        """Follow the chain through one file, to its end or the first fault."""
        if self.residue and not self.residue[-1].vouched:
            text = "a file is not left with torn lines at its end; they were added to it later"
            self.fault = Fault("residue_mismatch", text, self.files[-1], self.residue[-1].line)
            return
        if not self._ended:
            text = "a file is not left without the end of its last line; it was cut off later"
            self.fault = Fault("line_ending", text, self.files[-1], self._number)
            return
        self.files.append(file)
        self._number = 0
        for raw in lines:
            self._number += 1
            self._ended = raw.endswith(b"\n")
            try:
                if is_residue(raw):
                    self._torn.append(raw)
                else:
                    self._take(read_line(raw.removesuffix(b"\n")))
            except BadLine as bad:
                self.fault = Fault(bad.code, str(bad), file, self._number - len(self._torn))
                return
            if not self._ended:
                # A writer may be in the middle of this line: its rest would be read as another.
                break
        if self._torn:
            self._note_residue(self._number + 1, vouched=False)

    def _take(self, line: ChainLine) -> None:
        kind = line.record.get("kind")
        if self._torn or kind == RESIDUE_KIND:
            self._take_residue(line.record)
        if line.prev_hash != self.head:
            self._stray = line
            raise BadLine(
                "link_broken",
                "it does not link to the line before it; lines were deleted, moved or inserted",
            )
        if kind == CONTINUED_KIND:
            self._check_claim(line.record)
        self.count += 1
        self.head = line.hash
        if line.hash in self._hashes:
            self.positions[line.hash] = self.count
        if self.count in self._numbers:
            self.heads[self.count] = line.hash
        self._follow(line.record)

    def _check_claim(self, record: Mapping[str, Any]) -> None:
        body = record.get("body")
        file = str(body.get("file")) if isinstance(body, dict) else ""
        timestamp = str(record.get("timestamp"))
        so = continued_record(file, self.head, self.count, timestamp)
        # As text: 1.0 is no count, although it equals one.
        if not self.count or record_line(record) != record_line(so):
            raise BadLine(
                "continuation_mismatch",
                f"what it says of the records before it is not so; they are {self.count}, and "
                f"end in {self.head}",
            )

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
        place = next_line - len(self._torn)
        self.residue.append(Residue(place, size, vouched, self._file()))
        self._torn.clear()

    def _file(self) -> str | None:
        return self.files[-1] if self._several else None

    def _follow(self, record: Mapping[str, Any]) -> None:
        key = (str(record.get("correlation_id")), _as_int(record.get("seq")))
        kind = str(record.get("kind"))
        if kind == "step.proposed":
            body = record.get("body")
            tool = body.get("tool") if isinstance(body, dict) else None
            proposal = OpenProposal(self._number, *key, str(tool or ""), self._file())
            self._open.setdefault(key, []).append(proposal)
        elif kind in _CLOSING_KINDS and key in self._open:
            # A guard that was started anew under the same name numbers its calls from the start
            # again: what ends is the latest of them.
            self._open[key].pop()
            if not self._open[key]:
                del self._open[key]

    def explain_link(self, lines: Iterable[bytes]) -> None:
        """Say more of a line that does not link: tell a repetition and a fork from a gap.

        `lines` are those of its file, from the start.
        """
        if self._stray is None:
            return
        file, stray, number = self.files[-1], self._stray, self._number
        origin = "the beginning" if stray.prev_hash == GENESIS_HASH else None
        for earlier, raw in zip(range(1, number), lines, strict=False):
            line = raw.removesuffix(b"\n")
            found = hash_of(line) if is_whole(line) else None
            if found == stray.hash:
                self.fault = Fault("repeated", f"it repeats line {earlier}", file, number)
                return
            if found == stray.prev_hash:
                origin = f"line {earlier}"
        if origin is not None:
            self.fault = Fault(
                "fork",
                f"it goes on from {origin} and not from the line before it; two writers forked "
                "the chain, or lines were inserted",
                file,
                number,
            )


def _as_int(value: object) -> int:
    return value if isinstance(value, int) else 0
