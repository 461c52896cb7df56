"""The hash-chained sink: a record in which an edit, a deletion or a reordering shows.

Many threads and processes may write to one path, and a restart goes on where the record ends: each
write holds an exclusive file lock and links to the last line that is there. What a crash tore is
kept and vouched for, never cut off. Once the sink has answered, the death of the process loses
nothing; no fsync is done, so a power failure may. It is tamper-evident, not tamper-proof: whoever
can write the file can forge a whole one, so keep its head, or signed checkpoints, elsewhere.
"""

from __future__ import annotations

import logging
import math
import os
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

from adjudge._record.filelock import FREE, AppendLock, check_appendable, flock
from adjudge._record.format import EventTexts
from adjudge._record.keptfile import NOTHING_KNOWN, KeptFile, Known, append, write_all
from adjudge._record.lines import (
    GENESIS_HASH,
    OWN_KINDS,
    SEAL,
    SEALED,
    chain_line,
    closing,
    hash_of,
    is_residue,
    is_whole,
    residue_record,
)
from adjudge._record.recorder import Offer, PromptSink, Sink
from adjudge._record.rotation import rotate
from adjudge._record.sinks import DONE, Done, required_sink
from adjudge._types import AuditEvent
from adjudge.errors import RecordError

__all__ = ["GENESIS_HASH", "hash_chained_sink"]

_FIRST_STEP = 16 * 1024
# As much of the end of a file as holds the hash of its last line.
_END = 64 + len(SEALED)
_log = logging.getLogger("adjudge")


def hash_chained_sink(
    target: str | os.PathLike[str] | IO[Any],
    *,
    required: bool = False,
    rotate_bytes: int | None = None,
) -> Sink:
    """Make a sink that appends each event to the chain in a file.

    `target` is a path, or an open file whose `name` is one; it is created where missing. Nothing is
    written through an open file itself, so its buffer must not hold other text. With `required`, a
    call whose decision cannot be recorded is denied. A file that has reached `rotate_bytes` gets a
    number (`audit.000001.jsonl`), and a new file at the path goes on with the chain.

    Raises `RecordError` for a target without a path or that cannot be opened, and on a system
    without file locks; `ValueError` for a `rotate_bytes` that is no positive number.
    """
    if rotate_bytes is not None and (type(rotate_bytes) is not int or rotate_bytes < 1):
        raise ValueError(f"rotate_bytes is {rotate_bytes!r}; give a positive number of bytes.")
    path = _path_of(target)
    check_appendable(path)
    writer = _ChainWriter(path, rotate_bytes)
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


class _ChainWriter(PromptSink):
    """Appends to one path.

    Where that takes no wait it writes through a file that is kept open; else the file is opened and
    locked anew. Both follow a file that was moved away or replaced.
    """

    name = "hash_chained_sink"

    def __init__(self, path: Path, rotate_bytes: int | None) -> None:
        self._path = path
        self._rotate_bytes = self._full_at = rotate_bytes if rotate_bytes is not None else math.inf
        self._kept = KeptFile(path)
        self._lock = AppendLock(path, moves=rotate_bytes is not None)
        self._texts = EventTexts()
        self._warned = False

    def __call__(self, event: AuditEvent) -> Done:
        offer = Offer((event,))
        with self._kept.lock:
            # A lock of our own that an interrupt left there would never be released.
            self._kept.close()
        rotated = False
        with self._lock.turn():
            while True:
                with self._lock.held() as file:
                    fd = file.fileno()
                    # Once is enough, also where one record is more than a file may hold.
                    if rotated or not self._is_full(os.fstat(fd)) or not self._rotate(fd):
                        self._append(fd, os.fstat(fd).st_size, NOTHING_KNOWN, offer)
                        return DONE
                rotated = True

    def take_at_once(self, offer: Offer) -> None:
        """Append the events where the file is a local one and nobody else has its lock."""
        kept = self._kept
        with kept.lock:
            status = kept.ready(lock=True)
            if status is None:
                return
            try:
                size = status.st_size
                # A rotation reads the whole file, and waits for the disk.
                if size < self._full_at:
                    known, kept.known = kept.known, NOTHING_KNOWN
                    kept.known = self._append(kept.fd, size, known, offer)
            finally:
                flock(kept.fd, FREE)

    def _append(self, fd: int, size: int, known: Known, offer: Offer) -> Known:
        """Append to a file of that size, of which that is known; give what is known then."""
        known_size, end, head = known
        lines = ""
        # The file may have been cut and have grown again to the very same size.
        if size != known_size or os.pread(fd, _END + 1, size - _END) != end:
            before, head = self._join(_read_tail(fd, size))
            lines = before.decode("ascii")
        open_text = self._texts.open_text
        for event in offer.events:
            if event.kind in OWN_KINDS:
                raise RecordError(f"{event.kind} is the record's own kind of event; use another.")
            text = open_text(event, head)
            head = sha256((text + "}").encode()).hexdigest()
            lines += f"{text}{SEAL}{head}{SEALED}"
        data = lines.encode("ascii")
        append(fd, data, size, offer)
        return size + len(data), data[-_END:], head

    def _is_full(self, status: os.stat_result) -> bool:
        return status.st_size >= self._full_at

    def _rotate(self, fd: int) -> bool:
        """Begin a new file, and say whether that was possible; no event is lost if not."""
        data, head = self._join(_read_tail(fd, os.fstat(fd).st_size))
        try:
            write_all(fd, data)
            rotate(self._path, fd, head)
        except OSError as error:
            _log.error("The record %s cannot be rotated, and grows on: %s.", self._path, error)
            # Each attempt costs, so the next one is made when as much has come again.
            self._full_at = os.fstat(fd).st_size + self._rotate_bytes
            return False
        self._full_at = self._rotate_bytes
        return True

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


def _read_tail(fd: int, size: int) -> _Tail:
    """Read backwards until a whole line is found; in a sound file that is the last one."""
    step = _FIRST_STEP
    while True:
        start = max(0, size - step)
        os.lseek(fd, start, os.SEEK_SET)
        data = _read_exactly(fd, size - start)
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


def _read_exactly(fd: int, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := os.read(fd, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
