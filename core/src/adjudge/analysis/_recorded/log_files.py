"""The events in files that sinks wrote: plain JSON lines, and hash-chained records.

A chained file is verified before anything of it is used. What a crash tore is passed over; any
other line that is no event is an error with its place, for a log that is half understood would
answer for calls that nobody has looked at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge._record.format import RECORD_FIELDS
from adjudge._record.lines import OWN_KINDS, is_residue
from adjudge._record.verification import VerifyResult, verify_chain
from adjudge._types import Verdict
from adjudge.errors import RecordError

__all__ = ["Event", "LogFile", "Progress", "open_logs"]

Progress = Callable[[int, int], None]
"""Told how many bytes of how many have been read."""

_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Event:
    """One event as it stands in a file; `line` counts from 1."""

    correlation_id: str
    seq: int
    kind: str
    bundle_id: str
    timestamp: str
    body: Mapping[str, Any]
    file: str
    line: int


@dataclass(slots=True)
class LogFile:
    """One file of a log.

    `chain` is what verifying found, None for plain JSON lines: nothing then shows whether the file
    is as it was written. With `allow_broken`, lines that are no events are passed over, and
    `skipped` counts those of the last reading. `torn` is the size in bytes of a last line that was
    cut short, found by the last reading: it is passed over, and nobody knows what it was to say.
    """

    path: str
    size: int
    chain: VerifyResult | None
    allow_broken: bool = False
    skipped: int = 0
    torn: int = 0

    def events(self, progress: Callable[[int], None] | None = None) -> Iterator[Event]:
        """Give the events in order, and tell `progress` how many bytes were read, now and then."""
        read = told = self.skipped = self.torn = 0
        try:
            with Path(self.path).open("rb") as file:
                for number, raw in enumerate(file, 1):
                    try:
                        event = self._event(raw, number)
                    except RecordError:
                        if not self.allow_broken:
                            raise
                        self.skipped += 1
                        event = None
                    if event is not None:
                        yield event
                    read += len(raw)
                    if progress is not None and read - told >= _STEP:
                        told = read
                        progress(read)
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _event(self, raw: bytes, number: int) -> Event | None:
        line = raw.rstrip(b"\r\n")
        if not line.strip():
            return None
        if is_residue(raw):
            # What a later writer has closed is told of in the record itself.
            self.torn = 0 if raw.endswith(b"\n") else len(raw)
            return None
        record = _object_of(line, self.path, number)
        if record.get("kind") in OWN_KINDS:
            return None
        missing = [name for name in RECORD_FIELDS if name not in record]
        if missing:
            raise RecordError(
                f"{self.path}:{number}: this is no audit event, for it has no "
                f"{', '.join(missing)}; give a file that jsonl_sink or hash_chained_sink wrote."
            )
        return _checked(record, self.path, number)


def open_logs(
    paths: Iterable[str | os.PathLike[str]], *, allow_broken: bool = False
) -> list[LogFile]:
    """Look at the files of a log: which are chained, and of those whether the chain is intact.

    One path of a rotated record stands for all its files, in the order of the chain; no chained
    file comes twice. Raises `RecordError` for a file that cannot be read, and for a broken chain
    unless `allow_broken`.
    """
    found: list[LogFile] = []
    later: list[tuple[str, VerifyResult]] = []
    for name in [os.fspath(path) for path in paths]:
        chain = _verified(name)
        if chain is not None and chain.code == "earlier_missing":
            # A later path may bring it with the whole of its record.
            later.append((name, chain))
        else:
            _add(found, name, chain, allow_broken)
    for name, chain in later:
        _add(found, name, chain, allow_broken)
    return found


def _verified(name: str) -> VerifyResult | None:
    try:
        return verify_chain(name) if _is_chained(name) else None
    except OSError as error:
        raise _unreadable(name, error) from error


def _add(found: list[LogFile], name: str, chain: VerifyResult | None, allow_broken: bool) -> None:
    there = {os.path.realpath(file.path) for file in found if file.chain is not None}
    if chain is not None and os.path.realpath(name) in there:
        return
    if chain is not None and not chain.intact and not allow_broken:
        file = chain.broken_in or name
        place = file if chain.broken_at is None else f"{file}:{chain.broken_at}"
        raise RecordError(
            f"{place}: the chain of this record is broken: {chain.reason}. "
            "See what happened with `adjudge verify` before you rely on it."
        )
    # A broken record was not read to its end: of that, only the file that was given.
    for file in chain.files if chain is not None and chain.intact else (name,):
        try:
            size = Path(file).stat().st_size
        except OSError as error:
            raise _unreadable(file, error) from error
        if chain is None or os.path.realpath(file) not in there:
            found.append(LogFile(file, size, chain, allow_broken))


def _is_chained(name: str) -> bool:
    """Tell by the first whole line: a sink writes all lines alike."""
    with Path(name).open("rb") as file:
        for raw in file:
            if raw.strip() and not is_residue(raw):
                return b'"prev_hash":"' in raw
    return False


def _object_of(line: bytes, file: str, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file}:{number}: this line is no JSON of ours: {error}.") from None
    if not isinstance(value, dict):
        raise RecordError(f"{file}:{number}: this line is no JSON object, so no audit event.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _checked(record: Mapping[str, Any], file: str, number: int) -> Event:
    kinds = (
        ("correlation_id", str),
        ("bundle_id", str),
        ("seq", int),
        ("kind", str),
        ("timestamp", str),
        ("body", dict),
    )
    for name, kind in kinds:
        if not isinstance(record[name], kind) or isinstance(record[name], bool):
            raise RecordError(
                f"{file}:{number}: this is no audit event: its {name} is a "
                f"{type(record[name]).__name__}."
            )
    verdict = record["body"].get("verdict")
    if record["kind"] == "policy.evaluated" and verdict not in tuple(Verdict):
        raise RecordError(
            f"{file}:{number}: this judgment has the verdict {verdict!r}, which is none of "
            f"{', '.join(Verdict)}, so it cannot be told what was decided; read the log with the "
            "release of adjudge that wrote it."
        )
    return Event(
        record["correlation_id"],
        record["seq"],
        record["kind"],
        record["bundle_id"],
        record["timestamp"],
        record["body"],
        file,
        number,
    )


def _unreadable(name: str, error: OSError) -> RecordError:
    return RecordError(f"{name} cannot be read: {error.strerror or error}.")
