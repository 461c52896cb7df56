"""One SQLite file that threads, processes and forks of one machine share.

What was written is on the disk before a step ends (a write-ahead log, synchronous=FULL). A
connection is kept for the next step, because closing the last one writes the whole log into the
file; it is used by one thread at a time, and by the process alone that opened it. Not for file
systems without working locks (some network mounts).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from adjudge.errors import AdjudgeError

__all__ = ["SQLiteFile"]

_Identity: TypeAlias = tuple[int, int]


class SQLiteFile:
    """The file at `path`, made (readable by its owner alone) with what `schema` makes in it.

    `busy_seconds` is how long a step waits for other writers. What fails raises `error`, in
    sentences that call the file by `name`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        schema: Sequence[str],
        busy_seconds: float,
        name: str,
        error: Callable[[str], AdjudgeError],
    ) -> None:
        # A relative path stays where it is when the process changes its folder.
        self._path = Path(path).absolute()
        self._busy_seconds = busy_seconds
        self._name = name
        self._error = error
        try:
            self._path.touch(mode=0o600)
        except (OSError, ValueError) as problem:
            raise error(f"{path} cannot be used: {problem}.") from problem
        # By process: what was opened before a fork is the parent's.
        self._kept: dict[int, _Kept] = {}
        weakref.finalize(self, _close, self._kept)
        with self.step(writes=True) as database:
            for statement in schema:
                database.execute(statement)

    def close(self) -> None:
        """Close the idle connections of this process; the next step opens one again."""
        _close(self._kept)

    @contextmanager
    def step(self, *, writes: bool) -> Iterator[sqlite3.Connection]:
        """Give a connection for one step; what it had not committed when it raises is taken back.

        The writers of one process take turns here, where waiting costs less than in SQLite.
        """
        kept = self._of_this_process()
        if writes and not kept.turn.acquire(timeout=self._busy_seconds):
            raise self._error(f"{self._name} {self._path} has been busy too long.")
        try:
            database, opened = self._take(kept)
            try:
                yield database
                if self._identity() != opened:
                    raise self._error(f"{self._name} {self._path} was replaced by another file.")
            except BaseException as problem:
                if isinstance(problem, AdjudgeError) and not database.in_transaction:
                    kept.idle.append((database, opened))
                else:
                    database.close()
                raise
            kept.idle.append((database, opened))
        except (sqlite3.Error, OSError) as problem:
            raise self._error(f"{self._name} {self._path} failed: {problem}.") from problem
        finally:
            if writes:
                kept.turn.release()

    def _of_this_process(self) -> _Kept:
        process = os.getpid()
        kept = self._kept.get(process)
        return self._kept.setdefault(process, _Kept()) if kept is None else kept

    def _take(self, kept: _Kept) -> tuple[sqlite3.Connection, _Identity]:
        """Give a kept connection to the file that is there now, or a new one."""
        there = self._identity()
        while True:
            try:
                database, opened = kept.idle.pop()
            except IndexError:
                return self._open(), there
            if opened == there:
                return database, opened
            database.close()

    def _identity(self) -> _Identity:
        """Tell this file from one that took its place: what is written to that is lost."""
        found = self._path.stat()
        return (found.st_dev, found.st_ino)

    def _open(self) -> sqlite3.Connection:
        # A file that has gone is an error, and not an empty store.
        database = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
        except BaseException:
            database.close()
            raise
        return database


class _Kept:
    """What one process has: its idle connections, and whose turn it is to write."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.idle: deque[tuple[sqlite3.Connection, _Identity]] = deque()


def _close(kept: dict[int, _Kept]) -> None:
    """Close the idle connections that are this process's own."""
    own = kept.get(os.getpid())
    while own is not None and own.idle:
        try:
            database, _ = own.idle.pop()
        except IndexError:  # another thread took the last
            return
        database.close()
