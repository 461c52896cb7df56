"""The files of a record: which belong to it, and in what order they go on from one another.

A file is put into its place by the hash that its first record links to, never by its name; names
only say where to look. A file that does not fit is named with the reason.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from adjudge._record.lines import (
    CONTINUED_KIND,
    GENESIS_HASH,
    BadLine,
    ChainLine,
    is_residue,
    read_line,
)
from adjudge._record.results import Fault
from adjudge._record.walk import Walk

__all__ = ["Segment", "follow", "numbered_name", "opened", "segment_number"]

# Seven digits at most, so that a day (20261130) is no number.
_NUMBER = re.compile(r"[0-9]{6}|[1-9][0-9]{6}")
_NUMBERED = re.compile(rf"\.({_NUMBER.pattern})(\.[^./]*)?\Z")


def numbered_name(path: Path, number: int) -> Path:
    """Give the name that a full file gets: `audit.000001.jsonl` beside `audit.jsonl`."""
    return path.with_name(f"{path.stem}.{number:06d}{path.suffix}")


def segment_number(path: Path, name: str) -> int | None:
    """Give the number in the name of a full file of the record at `path`; None if it is none."""
    inner = name[len(path.stem) + 1 : len(name) - len(path.suffix)]
    if name != f"{path.stem}.{inner}{path.suffix}" or not _NUMBER.fullmatch(inner):
        return None
    return int(inner)


class _Claim(NamedTuple):
    """What a file says of the one before it."""

    file: str
    records: int


class Segment(NamedTuple):
    """One file, and what its first record says; `stream` is open where its name may move."""

    path: str
    stream: IO[bytes] | None
    line: int = 0
    first: ChainLine | None = None
    bad: BadLine | None = None

    @property
    def prev_hash(self) -> str | None:
        """The hash that its first record links to."""
        return self.first.prev_hash if self.first is not None else None

    @property
    def claim(self) -> _Claim | None:
        """The file that it says it goes on from, and how many records came before it."""
        if self.first is None or self.first.record.get("kind") != CONTINUED_KIND:
            return None
        body = self.first.record.get("body")
        if not isinstance(body, dict) or not isinstance(body.get("records"), int):
            return None
        return _Claim(str(body.get("file")), body["records"])

    def read_into(self, walk: Walk) -> None:
        """Have the walk go through it."""
        with ExitStack() as stack:
            stream = self.stream or stack.enter_context(Path(self.path).open("rb"))
            stream.seek(0)
            walk.read(self.path, stream)
            stream.seek(0)
            walk.explain_link(stream)


def opened(
    given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    stack: ExitStack,
    *,
    alone: bool,
) -> list[Segment]:
    """Open the files that are given; one path, unless it is alone, brings its numbered files.

    `stack` closes them. What cannot be read raises `OSError`.
    """
    seen: set[tuple[int, int]] = set()
    if not isinstance(given, str | os.PathLike):
        return [
            each
            for path in given
            for each in _open(path, stack, seen, stays=bool(_NUMBERED.search(os.fspath(path))))
        ]
    # It is opened before the others are looked for: those that are numbered later are not missed.
    found = list(_open(given, stack, seen, stays=False))
    if not alone:
        for path in _numbered_beside(given):
            found += _open(path, stack, seen, stays=True)
    return found


def _numbered_beside(path: str | os.PathLike[str]) -> list[Path]:
    shown, real = Path(path), Path(os.path.realpath(path))
    with os.scandir(real.parent) as entries:
        found = (segment_number(real, entry.name) for entry in entries if entry.is_file())
        numbers = sorted(number for number in found if number is not None)
    beside = real if shown.is_symlink() else shown
    return [numbered_name(beside, number) for number in numbers]


def _open(
    path: str | os.PathLike[str], stack: ExitStack, seen: set[tuple[int, int]], *, stays: bool
) -> Iterator[Segment]:
    """Open one file, unless it was seen: a crash in a rotation leaves one under two names.

    One that stays where it is is let go again, for there may be more than can be open at once.
    """
    with ExitStack() as ours:
        stream = ours.enter_context(Path(path).open("rb"))
        status = os.fstat(stream.fileno())
        place = (status.st_dev, status.st_ino)
        if place in seen:
            return
        seen.add(place)
        segment = _begun(os.fspath(path), stream)
        if stays:
            segment = segment._replace(stream=None)
        else:
            stack.push(ours.pop_all())
    yield segment


def _begun(path: str, stream: IO[bytes]) -> Segment:
    for number, raw in enumerate(stream, 1):
        if not is_residue(raw):
            try:
                return Segment(path, stream, number, read_line(raw.removesuffix(b"\n")))
            except BadLine as bad:
                return Segment(path, stream, number, bad=bad)
    return Segment(path, stream)


def follow(walk: Walk, segments: list[Segment]) -> None:
    """Walk through the files in the order of their links; one that has no place is a fault."""
    rest = list(segments)
    walked: dict[str, str] = {}
    while rest and walk.fault is None:
        following = next((each for each in rest if each.prev_hash == walk.head), None)
        if following is None:
            break
        rest.remove(following)
        if following.first is not None:
            walked[following.first.hash] = following.path
        following.read_into(walk)
    if not rest or walk.fault is not None:
        return
    stranded = min(rest, key=lambda each: each.claim.records if each.claim else 0)
    if len(segments) == 1 and stranded.claim is None:
        stranded.read_into(walk)
    else:
        walk.fault = _why_stranded(stranded, walk, walked)


def _why_stranded(segment: Segment, walk: Walk, walked: dict[str, str]) -> Fault:
    if segment.bad is not None:
        return Fault(segment.bad.code, str(segment.bad), segment.path, segment.line)
    if segment.first is None:
        text = "there is no record in it, and each file of a record has one"
        return Fault("file_empty", text, segment.path)
    code, reason = _misfit(segment.first, segment.claim, walk, walked)
    return Fault(code, reason, segment.path, segment.line)


def _misfit(
    first: ChainLine, claim: _Claim | None, walk: Walk, walked: dict[str, str]
) -> tuple[str, str]:
    if first.hash in walked:
        return "repeated", f"it begins as {walked[first.hash]} does, so one is a copy of the other"
    if first.prev_hash == GENESIS_HASH:
        return "separate_record", "it is the beginning of another record; check that one by itself"
    position = walk.positions.get(first.prev_hash)
    if position is not None:
        return "fork", f"it goes on from record {position}, and so do others of these files"
    if claim is None:
        return "link_broken", "its first record links to none of these files"
    if not walk.count:
        text = (
            f"it goes on from {claim.file}, {claim.records} records that are not there; "
            "give the earlier files too, or say what it goes on from (--after HEAD:COUNT)"
        )
        return "earlier_missing", text
    text = (
        f"it goes on from {claim.file} after {claim.records} records, "
        f"and what is there before it ends after {walk.count}; a file is missing"
    )
    return "file_missing", text
