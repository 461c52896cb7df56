"""A ledger in a PostgreSQL database, shared by any number of processes on any number of machines.

Each step is one transaction on the row of one entry, on the disk before it counts, so that of any
number of claimants exactly one wins, and a claim outlives a crash of whoever made it, and of the
server. A step that fails, or of whose commit nobody can tell, raises `LedgerError` and grants
nothing. Whether an entry has expired goes by the clock of the guard that asks, not the server's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from psycopg import errors, sql

from adjudge import ApprovalDecision, LedgerError
from adjudge.integration import (
    EntryState,
    LedgerEntry,
    answered,
    decode_entry,
    encode_answers,
    encode_entry,
    encode_result,
)
from adjudge_postgres._door import Door
from adjudge_postgres._table import ENTRIES

__all__ = ["PostgresLedger"]

_COLUMNS = sql.SQL("id, record, expires_at, state, grants, answers, holder, outcome, result")
_ADD = sql.SQL("""\
INSERT INTO {table} (run, {columns})
VALUES (%(run)s, %(id)s, %(record)s, %(expires_at)s, %(state)s, %(grants)s, %(answers)s,
    %(holder)s, %(outcome)s, %(result)s)
""")
_GET = sql.SQL("SELECT {columns} FROM {table} WHERE id = %(id)s")
_LOCK = sql.SQL("SELECT {columns} FROM {table} WHERE id = %(id)s FOR UPDATE")
_OF_RUN = sql.SQL("SELECT {columns} FROM {table} WHERE run = %(run)s ORDER BY number")
_ANSWER = sql.SQL("UPDATE {table} SET state = %(state)s, answers = %(answers)s WHERE id = %(id)s")
_CLAIM = sql.SQL("""\
UPDATE {table} SET state = 'claimed', holder = %(holder)s
WHERE id = %(id)s AND state = %(expected)s AND holder IS NULL
    AND (expires_at > %(now)s OR state = 'suspended')
RETURNING {columns}
""")
_EXPIRE = sql.SQL("""\
UPDATE {table} SET state = 'finished', outcome = 'expired'
WHERE id = %(id)s AND state IN ('asked', 'paused', 'answered') AND expires_at <= %(now)s
""")
_SETTLE = sql.SQL("""\
UPDATE {table} SET state = %(state)s, grants = %(grants)s, outcome = %(outcome)s,
    holder = %(kept)s, result = %(result)s
WHERE id = %(id)s AND state = 'claimed' AND holder = %(holder)s
""")


class PostgresLedger(Door):
    """A durable ledger in a schema of the database that `conninfo` names, as libpq takes it.

    The schema and its table are made if they are missing; with `create=False`, or for a role that
    may not, `create_sql` gives the SQL. `connections` is how many this process has at once, for as
    many steps at a time. `connect_seconds` is how long to wait for a connection, and `busy_seconds`
    how long for a free one of those and for other writers; a step takes no longer than both and a
    second, also where the server is silent. Every method raises `LedgerError` where the server or
    the table cannot be used. Threads and forked processes may share one.
    """

    _name = "the PostgreSQL ledger"
    _error = LedgerError
    _kept_in = ENTRIES
    _columns = _COLUMNS

    def add(self, entry: LedgerEntry) -> None:
        """Keep a new entry; an id that is there already raises `LedgerError`."""
        values = {
            "run": entry.run,
            "id": entry.id,
            "record": encode_entry(entry),
            "expires_at": entry.expires_at,
            "state": entry.state.value,
            "grants": json.dumps(entry.grants),
            "answers": encode_answers(entry.id, entry.answers),
            "holder": entry.holder,
            "outcome": entry.outcome,
            "result": encode_result(entry.id, entry.result),
        }
        with self._step() as step:
            try:
                step.run(_ADD, values)
            except errors.UniqueViolation:
                raise LedgerError(f"There is an entry {entry.id!r} already.") from None

    def get(self, id: str) -> LedgerEntry | None:
        """Give the entry of that id, None where there is none."""
        with self._step() as step:
            return _one(step.rows(_GET, {"id": id}))

    def of_run(self, run: str) -> tuple[LedgerEntry, ...]:
        """Give the entries of a run, in the order in which they were added."""
        with self._step() as step:
            return tuple(_entry(row) for row in step.rows(_OF_RUN, {"run": run}))

    def answer(self, id: str, answer: ApprovalDecision, *, now: datetime) -> LedgerEntry | None:
        """Add an answer to the entry that is paused and has not expired, or give None."""
        with self._step() as step:
            # The row is locked from here on: a rival waits, and then reads what this one wrote.
            entry = _one(step.rows(_LOCK, {"id": id}))
            if entry is None or entry.state is not EntryState.PAUSED or entry.expires_at <= now:
                return None
            entry = answered(entry, answer)
            answers = encode_answers(id, entry.answers)
            step.run(_ANSWER, {"id": id, "state": entry.state.value, "answers": answers})
            return entry

    def claim(
        self, id: str, *, expected: EntryState, holder: str, now: datetime
    ) -> LedgerEntry | None:
        """Take the entry that is in the expected state and has not expired, or None."""
        with self._step() as step:
            # One that cannot be read raises here, and the claim is taken back.
            values = {"id": id, "expected": expected.value, "holder": holder, "now": now}
            return _one(step.rows(_CLAIM, values))

    def expire(self, id: str, *, now: datetime) -> bool:
        """Finish an entry that waits and has expired; whether this call did it."""
        with self._step() as step:
            return step.run(_EXPIRE, {"id": id, "now": now}) == 1

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
        values = {
            "id": id,
            "holder": holder,
            "kept": holder if state is EntryState.FINISHED else None,
            "state": state.value,
            "grants": json.dumps(grants),
            "outcome": outcome,
            "result": encode_result(id, result),
        }
        with self._step() as step:
            return step.run(_SETTLE, values) == 1


def _one(rows: Sequence[tuple[Any, ...]]) -> LedgerEntry | None:
    """Give the one entry that was found, if one was."""
    return _entry(rows[0]) if rows else None


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    name, record, expires_at, state, grants, answers, holder, outcome, result = row
    return decode_entry(
        name,
        record,
        expires_at=expires_at.astimezone(UTC),
        state=state,
        grants=_list(grants),
        answers=answers,
        holder=holder,
        outcome=outcome,
        result=result,
    )


def _list(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # which is no list, as `decode_entry` will say
