"""The hash-chained sink: a record in which an edit, a deletion or a reordering shows.

Many threads and processes may write to one path, and a restart goes on where the record ends: each
write holds an exclusive file lock and links to the last line that is there. What a crash tore is
kept and vouched for, never cut off. Once the sink has answered, the death of the process loses
nothing; no fsync is done, so a power failure may. It is tamper-evident, not tamper-proof: whoever
can write the file can forge a whole one, so keep its head elsewhere.
"""

from __future__ import annotations

import logging
import os
import threading
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import IO, Any, NamedTuple

from adjudge._record.filelock import check_appendable, locked_for_append
from adjudge._record.format import event_to_record
from adjudge._record.lines import (
    GENESIS_HASH,
    RESIDUE_KIND,
    chain_line,
    closing,
    hash_of,
    is_residue,
    is_whole,
    residue_record,
)
from adjudge._record.recorder import Sink
from adjudge._record.sinks import DONE, Done, required_sink
from adjudge._types import AuditEvent
from adjudge.errors import RecordError

__all__ = ["GENESIS_HASH", "hash_chained_sink"]

_FIRST_STEP = 16 * 1024
_log = logging.getLogger("adjudge")


def hash_chained_sink(target: str | os.PathLike[str] | IO[Any], *, required: bool = False) -> Sink:
    """Make a sink that appends each event to the chain in a file.

    `target` is a path, or an open file whose `name` is one; it is created where missing. Nothing is
    written through an open file itself, so its buffer must not hold other text. With `required`, a
    call whose decision cannot be recorded is denied. Raises `RecordError` for a target without a
    path or that cannot be opened, and on a system without file locks.
    """
    path = _path_of(target)
    check_appendable(path)
    writer = _ChainWriter(path)
    return required_sink(writer) if required else writer


def _path_of(target: str | os.PathLike[str] | IO[Any]) -> Path:
    name = target if isinstance(target, str | os.PathLike) else getattr(target, "name", None)
    if not isinstance(name, str | os.PathLike):
        raise RecordError(
            f"A chain needs a file with a path, and {type(target).__name__} has none; "
            'pass a path such as "audit.jsonl", or a file opened by one.'
        )
    # A later chdir must not move the record.
    return Path(name).absolute()


class _ChainWriter:
    """Appends to one path; the file is opened and locked anew for each event.

    So it follows a file that was moved away or replaced, and nothing is shared after a fork.
    """

    name = "hash_chained_sink"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: tuple[int, int, int, str] | None = None
        self._warned = False

    def __call__(self, event: AuditEvent) -> Done:
        if event.kind == RESIDUE_KIND:
            raise RecordError(f"{RESIDUE_KIND} is the record's own kind of event; use another.")
        record = event_to_record(event)
        with self._lock, locked_for_append(self._path) as file:
            status = os.fstat(file.fileno())
            place = (status.st_dev, status.st_ino, status.st_size)
            if self._known is not None and self._known[:3] == place:
                before, head = b"", self._known[3]
            else:
                before, head = self._join(_read_tail(file, status.st_size))
            line, head = chain_line(record, head)
            _write_all(file, before + line)
            self._known = (*place[:2], place[2] + len(before) + len(line), head)
        return DONE

    def _join(self, tail: _Tail) -> tuple[bytes, str]:
        """Give what must be written before the next line, and the hash that it links to."""
        if tail.unfinished:
            return b"\n", tail.head
        if not tail.rest:
            return b"", tail.head
        if is_residue(tail.rest):
            end = closing(tail.rest)
            now = datetime.now(UTC).isoformat()
            line, head = chain_line(residue_record(tail.rest + end, now), tail.head)
            return end + line, head
        if tail.head == GENESIS_HASH:
            raise RecordError(
                f"{self._path} holds something else than a record; give the record its own path."
            )
        if not self._warned:
            self._warned = True
            _log.error(
                "The end of the record %s is not as it was written; the chain goes on after it, "
                "and `adjudge verify` will point at it.",
                self._path,
            )
        return (b"" if tail.rest.endswith(b"\n") else b"\n"), tail.head


class _Tail(NamedTuple):
    """The end of a file: the hash of its last whole line, and the bytes after that line.

    `unfinished` says that the last whole line lacks its newline alone: it counts once it is ended.
    """

    head: str
    rest: bytes
    unfinished: bool = False


def _read_tail(file: FileIO, size: int) -> _Tail:
    """Read backwards until a whole line is found; in a sound file that is the last one."""
    step = _FIRST_STEP
    while True:
        start = max(0, size - step)
        file.seek(start)
        data = _read_exactly(file, size - start)
        found = _last_whole(data, complete=start == 0)
        if found is not None:
            return found
        if start == 0:
            return _Tail(GENESIS_HASH, data)
        step *= 4


def _last_whole(data: bytes, *, complete: bool) -> _Tail | None:
    """Find the last whole line; the first piece of `data` may begin inside one if not complete."""
    end = len(data)
    while end > 0:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        if begin == 0 and not complete:
            return None
        line = data[begin:end].removesuffix(b"\n")
        if is_whole(line):
            return _Tail(hash_of(line), data[end:], unfinished=not data.endswith(b"\n", begin, end))
        end = begin
    return None


def _read_exactly(file: FileIO, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _write_all(file: FileIO, data: bytes) -> None:
    # One write in nearly all cases; a short one (a full disk) leaves a torn line for the next.
    while data:
        data = data[file.write(data) or 0 :]
