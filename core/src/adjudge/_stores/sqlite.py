"""Stores in one SQLite file, shared by any number of threads and processes of one machine.

A step or a session is on the disk when the call returns, and of any number of workers that append
the same number, or save the same version, exactly one does. Both stores, and a ledger, may live in
one file. The work is done in a thread, so that an event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from adjudge._stores.codec import (
    read_session,
    read_step,
    session_record_to_json,
    step_record_to_json,
)
from adjudge._stores.outcomes import (
    duplicate_record,
    session_changed,
    session_exists,
    unknown_session,
)
from adjudge._stores.records import SessionRecord, StepRecord
from adjudge._stores.sqlitefile import SQLiteFile
from adjudge.errors import StoreError

__all__ = ["SQLiteRunStore", "SQLiteSessionStore"]

_STEPS = """
CREATE TABLE IF NOT EXISTS adjudge_steps (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
)
"""
_SESSIONS = """
CREATE TABLE IF NOT EXISTS adjudge_sessions (
    session_id TEXT PRIMARY KEY NOT NULL,
    version INTEGER NOT NULL,
    record TEXT NOT NULL
)
"""
_TAKEN = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE)


class SQLiteRunStore:
    """A durable run store at `path`, created (readable by its owner alone) if it is not there.

    `busy_seconds` is how long a step waits for other writers. Threads, event loops and forked
    processes may share one. Every method raises `StoreError` where the file cannot be used.
    """

    durable = True

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = 10.0) -> None:
        self._file = _file(path, _STEPS, busy_seconds, "The run store", "MemoryRunStore")

    def close(self) -> None:
        """Close the idle connections of this process; the next step opens one again."""
        self._file.close()

    async def append(self, record: StepRecord) -> None:
        """Keep a step; raises `DuplicateRecord` where the run has one of that number."""
        await asyncio.to_thread(self._append, record, step_record_to_json(record))

    async def load(self, run_id: str) -> Sequence[StepRecord]:
        """Give the steps of a run in order."""
        return await asyncio.to_thread(self._load, run_id)

    def _append(self, record: StepRecord, text: str) -> None:
        with self._file.step(writes=True) as database:
            try:
                database.execute(
                    "INSERT INTO adjudge_steps VALUES (?, ?, ?)", (record.run_id, record.seq, text)
                )
            except sqlite3.IntegrityError as error:
                if error.sqlite_errorcode in _TAKEN:
                    raise duplicate_record(record) from None
                raise

    def _load(self, run_id: str) -> Sequence[StepRecord]:
        with self._file.step(writes=False) as database:
            rows = database.execute(
                "SELECT seq, record FROM adjudge_steps WHERE run_id = ? ORDER BY seq", (run_id,)
            ).fetchall()
        return tuple(read_step(run_id, seq, text) for seq, text in rows)


class SQLiteSessionStore:
    """A durable session store at `path`, created (readable by its owner alone) if need be.

    `busy_seconds` is how long a step waits for other writers. Threads, event loops and forked
    processes may share one. Every method raises `StoreError` where the file cannot be used.
    """

    durable = True

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = 10.0) -> None:
        self._file = _file(path, _SESSIONS, busy_seconds, "The session store", "MemorySessionStore")

    def close(self) -> None:
        """Close the idle connections of this process; the next step opens one again."""
        self._file.close()

    async def create(self, record: SessionRecord) -> SessionRecord:
        """Keep a new session; raises `SessionExists` where there is one of that id."""
        made = replace(record, version=1)
        await asyncio.to_thread(self._create, made, session_record_to_json(made))
        return made

    async def load(self, session_id: str) -> SessionRecord:
        """Give a session; raises `UnknownSession` where there is none of that id."""
        return await asyncio.to_thread(self._load, session_id)

    async def save(self, record: SessionRecord, *, expected_version: int) -> SessionRecord:
        """Replace the session that is at the expected version, and give what is kept."""
        made = replace(record, version=expected_version + 1)
        await asyncio.to_thread(self._save, made, session_record_to_json(made))
        return made

    async def exists(self, session_id: str) -> bool:
        """Whether there is a session of that id."""
        return await asyncio.to_thread(self._exists, session_id)

    def _create(self, made: SessionRecord, text: str) -> None:
        with self._file.step(writes=True) as database:
            try:
                database.execute(
                    "INSERT INTO adjudge_sessions VALUES (?, ?, ?)", (made.session_id, 1, text)
                )
            except sqlite3.IntegrityError as error:
                if error.sqlite_errorcode in _TAKEN:
                    raise session_exists(made) from None
                raise

    def _load(self, session_id: str) -> SessionRecord:
        with self._file.step(writes=False) as database:
            return _session(database, session_id)

    def _save(self, made: SessionRecord, text: str) -> None:
        expected = made.version - 1
        with self._file.step(writes=True) as database:
            saved = database.execute(
                "UPDATE adjudge_sessions SET version = ?, record = ?"
                " WHERE session_id = ? AND version = ?",
                (made.version, text, made.session_id, expected),
            )
            if saved.rowcount == 1:
                return
            raise session_changed(_session(database, made.session_id), expected)

    def _exists(self, session_id: str) -> bool:
        with self._file.step(writes=False) as database:
            found = database.execute(
                "SELECT 1 FROM adjudge_sessions WHERE session_id = ?", (session_id,)
            ).fetchone()
        return found is not None


def _file(
    path: str | os.PathLike[str], schema: str, busy_seconds: float, name: str, memory: str
) -> SQLiteFile:
    if os.fspath(path) in ("", ":memory:"):
        raise StoreError(f"For memory there is a {memory}; give the path of a file.")
    return SQLiteFile(
        path, schema=(schema,), busy_seconds=busy_seconds, name=name, error=StoreError
    )


def _session(database: sqlite3.Connection, session_id: str) -> SessionRecord:
    row = database.execute(
        "SELECT version, record FROM adjudge_sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    if row is None:
        raise unknown_session(session_id)
    return read_session(session_id, *row)
