"""An exclusive lock on a file that several threads and processes append to.

It is advisory, held by the open file and not by the process, so it also keeps two threads apart,
and it goes away with its holder. On a network file system it is as good as the system's own locks.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from adjudge.errors import RecordError

__all__ = ["check_appendable", "lock_at_once", "locked_for_append", "unlock"]

_HAS_LOCKS = True

if sys.platform == "win32":
    import msvcrt

    # A lock hides its bytes from readers there, so it lies far behind the text.
    _LOCKED_BYTE = 1 << 62

    def _lock(file: FileIO) -> None:
        file.seek(_LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)

    def _unlock(file: FileIO) -> None:
        file.seek(_LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

    def lock_at_once(fd: int) -> bool:
        """Lock an open file where that takes no wait; here it is never tried."""
        return False

    def unlock(fd: int) -> None:
        """Release what `lock_at_once` locked."""

else:
    try:
        import fcntl
    except ImportError:
        _HAS_LOCKS = False

    def _lock(file: FileIO) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)

    def _unlock(file: FileIO) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)

    def lock_at_once(fd: int) -> bool:
        """Lock an open file where that takes no wait, and say whether it is locked."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def unlock(fd: int) -> None:
        """Release what `lock_at_once` locked."""
        fcntl.flock(fd, fcntl.LOCK_UN)


@contextmanager
def locked_for_append(path: Path) -> Iterator[FileIO]:
    """Open a regular file for reading and appending, create it where missing, and hold its lock.

    Raises `RecordError` where that cannot be.
    """
    try:
        file = _open_locked(path)
    except OSError as error:
        raise RecordError(
            f"The record {path} cannot be opened and locked: {error.strerror or error}."
        ) from error
    try:
        yield file
    finally:
        try:
            _unlock(file)
        finally:
            file.close()


def check_appendable(path: Path) -> None:
    """Make sure, without waiting, that `locked_for_append` can work; create the file where missing.

    Raises `RecordError` where it cannot.
    """
    if not _HAS_LOCKS:
        raise RecordError(
            f"This Python on {sys.platform} has no file locks (fcntl), without which a chain with "
            "several writers would fork; use jsonl_sink, which is not chained."
        )
    try:
        _open(path).close()
    except OSError as error:
        raise RecordError(
            f"The record {path} cannot be opened: {error.strerror or error}."
        ) from error


def _open(path: Path) -> FileIO:
    file = FileIO(path, "a+")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise RecordError(f"{path} is no regular file, which a chain needs.")
    return file


def _open_locked(path: Path) -> FileIO:
    while True:
        file = _open(path)
        try:
            _lock(file)
            if _is_still(path, file):
                return file
        except BaseException:
            file.close()
            raise
        # It was moved away or removed while we waited for the lock.
        file.close()


def _is_still(path: Path, file: FileIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
