"""A ledger in one SQLite file, shared by any number of threads and processes of one machine.

Each step is one transaction, written through to the disk before it counts, so that of any number of
claimants exactly one wins, and a claim outlives a crash. Not for file systems without working locks
(some network mounts).
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from adjudge._ledger.codec import decode_entry, encode_answers, encode_entry, encode_result
from adjudge._ledger.entries import EntryState, LedgerEntry, answered
from adjudge._stores.sqlitefile import SQLiteFile
from adjudge._types import ApprovalDecision
from adjudge.errors import LedgerError

__all__ = ["SQLiteLedger"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS adjudge_entries (
    id TEXT PRIMARY KEY,
    run TEXT,
    record TEXT NOT NULL,
    expires_at REAL NOT NULL,
    state TEXT NOT NULL,
    grants TEXT NOT NULL,
    answers TEXT NOT NULL,
    holder TEXT,
    outcome TEXT,
    result TEXT
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS adjudge_entries_of_run ON adjudge_entries (run)"
_COLUMNS = "id, record, expires_at, state, grants, answers, holder, outcome, result"


class SQLiteLedger:
    """A durable ledger at `path`, created (readable by its owner alone) if it is not there.

    `busy_seconds` is how long a step waits for other writers. Every method raises `LedgerError`
    where the file cannot be used.
    """

    durable = True

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = 10.0) -> None:
        if os.fspath(path) in ("", ":memory:"):
            raise LedgerError(
                "A ledger in memory is a MemoryLedger; give SQLiteLedger the path of a file."
            )
        self._file = SQLiteFile(
            path,
            schema=(_SCHEMA, _INDEX),
            busy_seconds=busy_seconds,
            name="The ledger",
            error=LedgerError,
        )

    def close(self) -> None:
        """Close the idle connections of this process; the next step opens one again."""
        self._file.close()

    def add(self, entry: LedgerEntry) -> None:
        """Keep a new entry; an id that is there already raises `LedgerError`."""
        values = (
            entry.id,
            entry.run,
            encode_entry(entry),
            entry.expires_at.timestamp(),
            entry.state.value,
            json.dumps(entry.grants),
            encode_answers(entry.id, entry.answers),
            entry.holder,
            entry.outcome,
            encode_result(entry.id, entry.result),
        )
        with self._transaction() as database:
            database.execute(
                "INSERT INTO adjudge_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values
            )

    def get(self, id: str) -> LedgerEntry | None:
        """Give the entry of that id, None where there is none."""
        with self._transaction() as database:
            return _read(database, id)

    def of_run(self, run: str) -> tuple[LedgerEntry, ...]:
        """Give the entries of a run, in the order in which they were added."""
        with self._transaction() as database:
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM adjudge_entries WHERE run = ? ORDER BY rowid",  # noqa: S608
                (run,),
            ).fetchall()
        return tuple(_entry(row) for row in rows)

    def answer(self, id: str, answer: ApprovalDecision, *, now: datetime) -> LedgerEntry | None:
        """Add an answer to the entry that is paused and has not expired, or give None."""
        with self._transaction() as database:
            entry = _read(database, id)
            if entry is None or entry.state is not EntryState.PAUSED or entry.expires_at <= now:
                return None
            entry = answered(entry, answer)
            # The transaction has locked the file since before the entry was read.
            database.execute(
                "UPDATE adjudge_entries SET state = ?, answers = ? WHERE id = ?",
                (entry.state.value, encode_answers(id, entry.answers), id),
            )
            return entry

    def claim(
        self, id: str, *, expected: EntryState, holder: str, now: datetime
    ) -> LedgerEntry | None:
        """Take the entry that is in the expected state and has not expired, or None."""
        with self._transaction() as database:
            taken = database.execute(
                "UPDATE adjudge_entries SET state = ?, holder = ?"
                " WHERE id = ? AND state = ? AND holder IS NULL AND (expires_at > ? OR state = ?)",
                (
                    EntryState.CLAIMED.value,
                    holder,
                    id,
                    expected.value,
                    now.timestamp(),
                    EntryState.SUSPENDED.value,
                ),
            )
            # An entry that cannot be read raises here, and the claim is taken back.
            return _read(database, id) if taken.rowcount == 1 else None

    def expire(self, id: str, *, now: datetime) -> bool:
        """Finish an entry that waits and has expired; whether this call did it."""
        with self._transaction() as database:
            ended = database.execute(
                "UPDATE adjudge_entries SET state = ?, outcome = 'expired'"
                " WHERE id = ? AND state NOT IN (?, ?, ?) AND expires_at <= ?",
                (
                    EntryState.FINISHED.value,
                    id,
                    EntryState.SUSPENDED.value,
                    EntryState.CLAIMED.value,
                    EntryState.FINISHED.value,
                    now.timestamp(),
                ),
            )
            return ended.rowcount == 1

    def settle(
        self,
        id: str,
        *,
        holder: str,
        state: EntryState,
        grants: tuple[str, ...],
        outcome: str | None,
        result: Mapping[str, Any] | None = None,
    ) -> bool:
        """Move the entry that this holder has claimed; False where it has it no more."""
        kept = holder if state is EntryState.FINISHED else None
        with self._transaction() as database:
            moved = database.execute(
                "UPDATE adjudge_entries"
                " SET state = ?, grants = ?, outcome = ?, holder = ?, result = ?"
                " WHERE id = ? AND state = ? AND holder = ?",
                (
                    state.value,
                    json.dumps(grants),
                    outcome,
                    kept,
                    encode_result(id, result),
                    id,
                    EntryState.CLAIMED.value,
                    holder,
                ),
            )
            return moved.rowcount == 1

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Lock the file for one step; what raises before its end is taken back."""
        with self._file.step(writes=True) as database:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")


def _read(database: sqlite3.Connection, id: str) -> LedgerEntry | None:
    row = database.execute(
        f"SELECT {_COLUMNS} FROM adjudge_entries WHERE id = ?",  # noqa: S608
        (id,),
    ).fetchone()
    return None if row is None else _entry(row)


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    name, record, expires_at, state, grants, answers, holder, outcome, result = row
    return decode_entry(
        name,
        record,
        expires_at=_moment(name, expires_at),
        state=state,
        grants=_list(grants),
        answers=answers,
        holder=holder,
        outcome=outcome,
        result=result,
    )


def _moment(id: str, value: object) -> datetime:
    try:
        if not isinstance(value, float | int):
            raise TypeError
        return datetime.fromtimestamp(value, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise LedgerError(
            f"The ledger's entry {id!r} is not as it was written: its expires_at is {value!r}."
        ) from None


def _list(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
