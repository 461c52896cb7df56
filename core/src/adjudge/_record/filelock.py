"""An exclusive lock on a file that several threads and processes append to.

It is advisory, held by the open file and not by the process, so it also keeps two threads apart,
and it goes away with its holder. On a network file system it is as good as the system's own locks.
"""

from __future__ import annotations

import os
import stat
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from adjudge.errors import RecordError

__all__ = ["AT_ONCE", "FREE", "AppendLock", "check_appendable", "flock", "locked_for_append"]

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

    AT_ONCE = FREE = 0

    def flock(fd: int, operation: int, /) -> None:
        """Lock an open file where that takes no wait; here it is never tried."""
        raise OSError

else:
    try:
        import fcntl
        from fcntl import flock

        AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB
        FREE = fcntl.LOCK_UN
    except ImportError:
        _HAS_LOCKS = False
        AT_ONCE = FREE = 0

        def flock(fd: Any, operation: int, /) -> None:  # type: ignore[misc]
            """Lock nothing: there are no locks."""
            raise OSError

    def _lock(file: FileIO) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)

    def _unlock(file: FileIO) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)


class AppendLock:
    """The lock of one path. A forked child has none of its parent's.

    Else whoever wants the lock would wait for the child when the parent is killed.
    """

    def __init__(self, path: Path, *, moves: bool = False) -> None:
        self._path = path
        self._turnstile = path.with_name(f".{path.name}.turn")
        # Where writers move the file away, else a turnstile is of no use.
        self._flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | (os.O_CREAT if moves else 0)
        self._files: set[FileIO] = set()
        if hasattr(os, "register_at_fork"):
            this = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _forget(this()))

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn to lock a file that may be moved away, where it can be waited for.

        Each who waits for the file itself finds, one after the other, that it is another one now,
        and begins to wait anew behind those who have come since. So one waits for it, and all
        others for a file that stays where it is. That is fair, and no lock: others need not do it.
        """
        file = None
        with suppress(OSError):
            if AT_ONCE:
                file = FileIO(self._turnstile, opener=self._open_turnstile)
        if file is None:
            yield
            return
        self._files.add(file)
        try:
            with suppress(OSError):
                _lock(file)
            yield
        finally:
            self._files.discard(file)
            file.close()

    def _open_turnstile(self, path: str, _: int) -> int:
        return os.open(path, self._flags, 0o666)

    @contextmanager
    def held(self) -> Iterator[FileIO]:
        """Open the file as `locked_for_append` does, and hold its lock."""
        with locked_for_append(self._path, self._files) as file:
            yield file

    def forget(self) -> None:
        """Close what another thread had open."""
        while self._files:
            self._files.pop().close()


def _forget(lock: AppendLock | None) -> None:
    if lock is not None:
        lock.forget()


@contextmanager
def locked_for_append(path: Path, files: set[FileIO] | None = None) -> Iterator[FileIO]:
    """Open a regular file for reading and appending, create it where missing, and hold its lock.

    While it is open it is one of `files`. Raises `RecordError` where that cannot be.
    """
    files = set() if files is None else files
    try:
        file = _open_locked(path, files)
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
            files.discard(file)
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


def _open_locked(path: Path, files: set[FileIO]) -> FileIO:
    while True:
        file = _open(path)
        files.add(file)
        try:
            _lock(file)
            if _is_still(path, file):
                return file
        except BaseException:
            files.discard(file)
            file.close()
            raise
        # It was moved away or removed while we waited for the lock.
        files.discard(file)
        file.close()


def _is_still(path: Path, file: FileIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
