"""The events in files that sinks wrote: plain JSON lines, and hash-chained records.

A chained file is verified before anything of it is used. What a crash tore is passed over; any
other line that is no event is an error with its place, for a log that is half understood would
answer for calls that nobody has looked at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge._record.format import RECORD_FIELDS
from adjudge._record.lines import RESIDUE_KIND, is_residue, is_torn
from adjudge._record.verification import VerifyResult, verify_chain
from adjudge.errors import RecordError

__all__ = ["Event", "LogFile", "Progress", "open_log"]

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
    `skipped` counts those of the last reading.
    """

    path: str
    size: int
    chain: VerifyResult | None
    allow_broken: bool = False
    skipped: int = 0

    def events(self, progress: Callable[[int], None] | None = None) -> Iterator[Event]:
        """Give the events in order, and tell `progress` how many bytes were read, now and then."""
        read = told = self.skipped = 0
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
        if not line.strip() or is_residue(raw) or (not raw.endswith(b"\n") and is_torn(raw)):
            return None
        record = _object_of(line, self.path, number)
        if record.get("kind") == RESIDUE_KIND:
            return None
        missing = [name for name in RECORD_FIELDS if name not in record]
        if missing:
            raise RecordError(
                f"{self.path}:{number}: this is no audit event, for it has no "
                f"{', '.join(missing)}; give a file that jsonl_sink or hash_chained_sink wrote."
            )
        return _checked(record, self.path, number)


def open_log(path: str | os.PathLike[str], *, allow_broken: bool = False) -> LogFile:
    """Look at one file: whether it is chained, and if so whether its chain is intact.

    Raises `RecordError` for a file that cannot be read, and for a broken chain unless
    `allow_broken`.
    """
    name = os.fspath(path)
    try:
        size = Path(name).stat().st_size
        chained = _is_chained(name)
    except OSError as error:
        raise _unreadable(name, error) from error
    if not chained:
        return LogFile(name, size, None, allow_broken)
    chain = verify_chain(name)
    if not chain.intact and not allow_broken:
        place = name if chain.broken_at is None else f"{name}:{chain.broken_at}"
        raise RecordError(
            f"{place}: the chain of this record is broken: {chain.reason}. "
            "See what happened with `adjudge verify` before you rely on it."
        )
    return LogFile(name, size, chain, allow_broken)


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
