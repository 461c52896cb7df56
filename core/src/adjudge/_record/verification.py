"""Checks a hash-chained record, and says what it found and what it could not rule out.

It takes one file or all files of a rotated record, and finds what `walk` and `segments` find. Alone
it cannot see that the end was cut off, or that the whole record was forged: for that it takes a
head that was kept elsewhere, or checkpoints and the public key of who signed them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from adjudge._record.checkpoints import SUFFIX, Judged, Keys, Written, judge, read_all
from adjudge._record.lines import GENESIS_HASH
from adjudge._record.results import Fault, OpenProposal, Residue, VerifyResult
from adjudge._record.segments import Segment, follow, opened
from adjudge._record.walk import Walk
from adjudge.errors import RecordError

if TYPE_CHECKING:
    from adjudge._record.signing import Key

__all__ = ["OpenProposal", "Paths", "Residue", "VerifyResult", "checked", "verify_chain"]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def verify_chain(
    path: Paths,
    *,
    expect_head: str | None = None,
    after: str | None = None,
    public_key: Key | Iterable[Key] | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
) -> VerifyResult:
    """Check the record at `path`.

    One path is the whole record: the numbered files that rotation left beside it are read too. A
    list of paths is exactly these files, in whatever order.

    `expect_head` is `HASH` or `HASH:COUNT`, a head that was kept before. It must occur in the
    chain, at that count where one is given; records may follow it. `after` is a head as well, that
    of what came before: the files begin there, and no others are looked for.

    With `public_key` (PEM: a path, bytes, or several of them) the checkpoints in the file
    `checkpoints` must be that key's and on the chain, and there must be one; by default they are in
    `PATH.checkpoints`.

    A file that cannot be read, a key or a head that is none raises `RecordError`.
    """
    paths = path if isinstance(path, str | os.PathLike) else list(path)
    if public_key is None:
        if checkpoints is not None:
            raise RecordError("Checkpoints are checked with the public key of who signed them.")
        return checked(paths, expect_head=expect_head, after=after)
    from adjudge._record.signing import PublicKeys

    keys = PublicKeys.read(public_key)
    return checked(
        paths,
        expect_head=expect_head,
        after=after,
        # Before the record: what they vouch for has then been written.
        written=_written(paths, checkpoints),
        keys=keys,
    )


def checked(
    paths: str | os.PathLike[str] | list[str | os.PathLike[str]],
    *,
    expect_head: str | None = None,
    after: str | None = None,
    written: list[Written] | None = None,
    keys: Keys | None = None,
) -> VerifyResult:
    """Do what `verify_chain` does, with checkpoints and keys that were read."""
    anchor = _Anchor.parse(expect_head) if expect_head is not None else None
    start = _Anchor.parse(after) if after is not None else None
    with _reading(paths), ExitStack() as stack:
        segments = opened(paths, stack, alone=start is not None)
        before = _before(start, segments)
        walk = Walk(
            start.head if start is not None else GENESIS_HASH,
            before,
            hashes=_hashes(anchor, segments),
            numbers=[each.checkpoint.records for each in written or () if each.checkpoint],
            several=len(segments) > 1,
        )
        if start is not None and not _after(start, segments):
            text = "none of the files goes on from the head that they should come after"
            walk.fault = Fault("after_mismatch", text)
        follow(walk, segments)
    judged = judge(written or (), keys, walk, before=before) if keys is not None else None
    return _Summary(walk, anchor, judged, before).result()


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


@contextmanager
def _reading(path: object) -> Iterator[None]:
    """Turn a file that cannot be read into a `RecordError`."""
    try:
        yield
    except OSError as error:
        name = path if error.filename is None else error.filename
        raise RecordError(f"{name} cannot be read: {error.strerror or error}.") from error


def _written(paths: Paths, checkpoints: str | os.PathLike[str] | None) -> list[Written]:
    if checkpoints is not None:
        with _reading(checkpoints):
            return read_all(checkpoints)
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    beside = [Path(f"{os.fspath(path)}{SUFFIX}") for path in several]
    with _reading(paths):
        return [found for path in beside if path.exists() for found in read_all(path)]


def _before(start: _Anchor | None, segments: list[Segment]) -> int:
    """Give how many records came before the files."""
    if start is None:
        return 0
    if start.position is not None:
        return start.position
    following = _after(start, segments)
    claims = [each.claim.records for each in following if each.claim is not None]
    if following and not claims:
        raise RecordError(
            f"Nothing says how many records come before the files; write {start.head}:COUNT."
        )
    return claims[0] if claims else 0


def _after(start: _Anchor, segments: list[Segment]) -> list[Segment]:
    return [each for each in segments if each.prev_hash == start.head]


def _hashes(anchor: _Anchor | None, segments: list[Segment]) -> set[str]:
    found = {each.prev_hash for each in segments} | {anchor.head if anchor else None}
    return {each for each in found if each is not None}


class _Summary:
    """What the walk, the expected head and the checkpoints come to."""

    def __init__(
        self, walk: Walk, anchor: _Anchor | None, judged: Judged | None, before: int
    ) -> None:
        self._walk = walk
        self._anchor = anchor
        self._judged = judged
        self._before = before
        self._anchored = walk.positions.get(anchor.head) if anchor is not None else None

    def result(self) -> VerifyResult:
        walk = self._walk
        fault = walk.fault or self._fault_of_the_whole()
        if fault is None and self._judged is not None:
            fault = self._judged.fault
        newest = self._judged.newest if self._judged is not None else None
        return VerifyResult(
            intact=fault is None,
            lines=walk.count,
            broken_at=fault.line if fault is not None else None,
            reason=fault.reason if fault is not None else None,
            code=fault.code if fault is not None else None,
            head=walk.head if walk.count else None,
            anchored=self._anchored,
            open_proposals=walk.open_proposals,
            residue=tuple(walk.residue),
            not_ruled_out=tuple(self._doubts()) if fault is None else (),
            files=tuple(walk.files),
            broken_in=fault.file if fault is not None else None,
            before=self._before,
            vouched=newest.records if newest is not None else None,
            signed_at=newest.signed_at if newest is not None else None,
        )

    def _fault_of_the_whole(self) -> Fault | None:
        anchor, count = self._anchor, self._walk.count
        if anchor is None:
            if count > self._before:
                return None
            return Fault("nothing_checked", "there is no record in the file")
        if self._anchored is None:
            return Fault(
                "head_missing",
                f"the expected head is not among its {count} records; "
                "its end was cut off, or it is another record",
            )
        if anchor.position not in (None, self._anchored):
            return Fault(
                "head_missing",
                f"the expected head is record {self._anchored}, not {anchor.position}",
            )
        return None

    def _doubts(self) -> Iterator[str]:
        newest = self._judged.newest if self._judged is not None else None
        vouched = newest.records if newest is not None else 0
        known = max(self._anchored or 0, vouched)
        what = "checkpoint" if vouched == known else "head that was given"
        if not known:
            yield (
                "Records cut from the end, or a file forged as a whole: no head that was kept "
                "elsewhere was given (--expect-head), and no public key to check checkpoints with "
                "(--public-key)."
            )
        elif known < self._walk.count:
            yield (
                f"Records after number {known} cut from the end or forged: the newest {what} is "
                "older than they are."
            )
        else:
            yield f"Records that were written after the newest {what}, and then cut off."
        if newest is not None:
            yield (
                f"That checkpoints signed after {newest.signed_at} were taken away together with "
                "the records that they vouch for; keep them out of the writer's reach."
            )
        for each in self._judged.cut_short if self._judged is not None else ():
            yield (
                f"That {each.file}:{each.line}, the beginning of a checkpoint, which vouches for "
                "nothing, was cut on purpose, and not by a crash."
            )
        if self._before:
            yield f"Anything about the {self._before} records before these files."
        if self._walk.residue:
            yield "That torn lines were cut on purpose, and not by a crash."
        yield "Events that never reached this record."
