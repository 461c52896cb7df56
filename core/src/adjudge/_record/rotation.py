"""Rotation: a full file of a record gets a number, and a new file goes on from it at its path.

The caller holds the full file's lock. The path names a file that ends the chain at every moment,
so no event is lost: the full file gets its number as a second name, and the new file, its first
record in it, takes the place at the path in one step. What a crash leaves in between (a second
name, a file that nobody reads) the next rotation takes up.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from adjudge._record.keptfile import write_all
from adjudge._record.lines import (
    CLOSE_TORN,
    CONTINUED_KIND,
    BadLine,
    chain_line,
    continued_record,
    read_line,
)
from adjudge._record.segments import numbered_name, segment_number

__all__ = ["rotate"]

_STEP = 1 << 20
_LONGEST_CLAIM = 1 << 16


def rotate(path: Path, fd: int, head: str) -> None:
    """Give the full file, which is at `path` and open as `fd`, its number, and begin a new one.

    `head` is the hash of its last record. Raises `OSError` where that cannot be; then the full file
    is still at the path.
    """
    # A link stays one: the files lie side by side where it leads.
    real = Path(os.path.realpath(path))
    number, before = _claimed(real, fd)
    full = _numbered(real, os.fstat(fd), number + 1)
    now = datetime.now(UTC).isoformat()
    record = continued_record(full.name, head, before + _count(fd), now)
    fresh = real.with_name(f".{real.name}.next")
    # Else a power failure could leave the new file without the end that it goes on from.
    os.fsync(fd)
    _write(fresh, chain_line(record, head)[0], os.fstat(fd))
    fresh.replace(real)


def _claimed(real: Path, fd: int) -> tuple[int, int]:
    """Give the number of the file before this one, and how many records came before it."""
    os.lseek(fd, 0, os.SEEK_SET)
    start, newline, _ = os.read(fd, _LONGEST_CLAIM).partition(b"\n")
    try:
        record = read_line(start).record if newline else {}
    except BadLine:
        return 0, 0
    body = record.get("body")
    if record.get("kind") != CONTINUED_KIND or not isinstance(body, dict):
        return 0, 0
    records = body.get("records")
    number = segment_number(real, str(body.get("file")))
    return number or 0, records if isinstance(records, int) else 0


def _numbered(real: Path, status: os.stat_result, number: int) -> Path:
    """Give the full file a free number from `number` on, unless a crashed writer has done so."""
    while True:
        name = numbered_name(real, number)
        try:
            os.link(real, name)
        except FileExistsError:
            if not os.path.samestat(name.lstat(), status):
                number += 1
                continue
        return name


def _count(fd: int) -> int:
    """Count the lines of a file, without those that a torn write left."""
    os.lseek(fd, 0, os.SEEK_SET)
    lines = 0
    last = b""
    while piece := os.read(fd, _STEP):
        # A closing may lie across two pieces.
        lines += piece.count(b"\n") - (last + piece).count(CLOSE_TORN)
        last = piece[-1:]
    return lines


def _write(fresh: Path, line: bytes, like: os.stat_result) -> None:
    """Write the new file, which has the owner and the mode of the full one."""
    fresh.unlink(missing_ok=True)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        write_all(fd, line)
        if hasattr(os, "fchown"):
            status = os.fstat(fd)
            if (status.st_uid, status.st_gid) != (like.st_uid, like.st_gid):
                with suppress(PermissionError):
                    os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, stat.S_IMODE(like.st_mode))
        os.fsync(fd)
    finally:
        os.close(fd)
