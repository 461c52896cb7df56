"""A SQLite file for memories: opened anew for each step, so that forks and threads can share it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from adjudge import StoreError

__all__ = ["MemoryFile"]


class MemoryFile:
    """The file at `path`, made (readable by its owner alone) if it is not there.

    `schema` makes its table. What fails raises `StoreError`.
    """

    def __init__(
        self, path: str | os.PathLike[str], schema: str, *, busy_seconds: float = 10.0
    ) -> None:
        if os.fspath(path) in ("", ":memory:"):
            raise StoreError("A memory of SQLite needs the path of a file; there is one in memory.")
        # A relative path stays where it is when the process changes its folder.
        self._path = Path(path).absolute()
        self._busy_seconds = busy_seconds
        try:
            self._path.touch(mode=0o600)
        except (OSError, ValueError) as problem:
            raise StoreError(f"{path} cannot be used: {problem}.") from problem
        with self.step() as database:
            database.execute(schema)

    @contextmanager
    def step(self) -> Iterator[sqlite3.Connection]:
        """Give a connection for one step, which is on the disk when it ends well."""
        try:
            # A file that has gone is an error, and not an empty memory.
            uri = f"{self._path.as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, uri=True, timeout=self._busy_seconds)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                with database:
                    yield database
        except sqlite3.Error as problem:
            raise StoreError(f"The memory {self._path} failed: {problem}.") from problem
