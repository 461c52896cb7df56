"""Journals and sessions in a PostgreSQL database, for workers on any number of machines.

A step or a session is on the server's disk when the call returns. The primary key refuses a second
step of the same number; a session is saved under its row's lock, and only at the version that the
saver saw. The work is done in a thread, so that an event loop never waits for the network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from psycopg import errors, sql

from adjudge import SessionRecord, StepRecord, StoreError, step_record_to_json
from adjudge.integration import (
    duplicate_record,
    read_session,
    read_step,
    session_changed,
    session_exists,
    session_record_to_json,
    unknown_session,
)
from adjudge_postgres._door import Door, Step
from adjudge_postgres._table import SESSIONS, STEPS

__all__ = ["PostgresRunStore", "PostgresSessionStore"]

_APPEND = sql.SQL(
    "INSERT INTO {table} (run_id, seq, record) VALUES (%(run_id)s, %(seq)s, %(record)s)"
)
_STEPS = sql.SQL("SELECT seq, record FROM {table} WHERE run_id = %(run_id)s ORDER BY seq")
_CREATE = sql.SQL(
    "INSERT INTO {table} (session_id, version, record) VALUES (%(id)s, %(version)s, %(record)s)"
)
_SESSION = sql.SQL("SELECT version, record FROM {table} WHERE session_id = %(id)s")
_SAVE = sql.SQL("""\
UPDATE {table} SET version = %(version)s, record = %(record)s
WHERE session_id = %(id)s AND version = %(expected)s
""")


class PostgresRunStore(Door):
    """A durable run store in a schema of the database that `conninfo` names, as libpq takes it.

    The parameters are those of `PostgresLedger`. Every method raises `StoreError` where the server
    or the table cannot be used. Threads, event loops and forked processes may share one.
    """

    _name = "the PostgreSQL run store"
    _error = StoreError
    _kept_in = STEPS

    async def append(self, record: StepRecord) -> None:
        """Keep a step; raises `DuplicateRecord` where the run has one of that number."""
        await asyncio.to_thread(self._append, record, step_record_to_json(record))

    async def load(self, run_id: str) -> Sequence[StepRecord]:
        """Give the steps of a run in order."""
        return await asyncio.to_thread(self._load, run_id)

    def _append(self, record: StepRecord, text: str) -> None:
        with self._step() as step:
            try:
                step.run(_APPEND, {"run_id": record.run_id, "seq": record.seq, "record": text})
            except errors.UniqueViolation:
                raise duplicate_record(record) from None

    def _load(self, run_id: str) -> Sequence[StepRecord]:
        with self._step() as step:
            rows = step.rows(_STEPS, {"run_id": run_id})
        return tuple(read_step(run_id, seq, text) for seq, text in rows)


class PostgresSessionStore(Door):
    """A durable session store in a schema of the database that `conninfo` names.

    The parameters are those of `PostgresLedger`. Every method raises `StoreError` where the server
    or the table cannot be used. Threads, event loops and forked processes may share one.
    """

    _name = "the PostgreSQL session store"
    _error = StoreError
    _kept_in = SESSIONS

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
        with self._step() as step:
            try:
                step.run(_CREATE, {"id": made.session_id, "version": 1, "record": text})
            except errors.UniqueViolation:
                raise session_exists(made) from None

    def _load(self, session_id: str) -> SessionRecord:
        with self._step() as step:
            return _session(step, session_id)

    def _save(self, made: SessionRecord, text: str) -> None:
        expected = made.version - 1
        with self._step() as step:
            # A rival's save is waited for, and then the row is at another version.
            saved = step.run(
                _SAVE,
                {
                    "id": made.session_id,
                    "version": made.version,
                    "record": text,
                    "expected": expected,
                },
            )
            if saved != 1:
                raise session_changed(_session(step, made.session_id), expected)

    def _exists(self, session_id: str) -> bool:
        with self._step() as step:
            return bool(step.rows(_SESSION, {"id": session_id}))


def _session(step: Step, session_id: str) -> SessionRecord:
    rows = step.rows(_SESSION, {"id": session_id})
    if not rows:
        raise unknown_session(session_id)
    return read_session(session_id, *rows[0])
