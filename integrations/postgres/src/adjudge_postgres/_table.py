"""The one table of the ledger: the SQL that makes it, and whether what is there is such a table.

Made once, by whoever comes first, or beforehand by somebody who may. A table that lacks what the
ledger counts on (its columns, a unique id, being there after a crash) is refused.
"""

from __future__ import annotations

from typing import LiteralString

import psycopg
from psycopg import sql

from adjudge import LedgerError
from adjudge_postgres._connections import Connection, Connections

__all__ = ["checked_schema", "create_sql", "prepare_table"]

_COLUMNS = {
    "number": "bigint",
    "id": "text",
    "run": "text",
    "record": "text",
    "expires_at": "timestamp with time zone",
    "state": "text",
    "grants": "text",
    "answers": "text",
    "holder": "text",
    "outcome": "text",
    "result": "text",
}
_SCHEMA = """\
CREATE SCHEMA IF NOT EXISTS {schema};
"""
_TABLE = """\
CREATE TABLE IF NOT EXISTS {schema}.entries (
    number bigint GENERATED ALWAYS AS IDENTITY,
    id text PRIMARY KEY,
    run text,
    record text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    grants text NOT NULL,
    answers text NOT NULL,
    holder text,
    outcome text,
    result text
);
CREATE INDEX IF NOT EXISTS entries_of_run ON {schema}.entries (run, number);
"""

_FIND_SCHEMA = "SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s"
_FIND_TABLE = """\
SELECT
    c.oid,
    c.relkind = 'r' AND c.relpersistence = 'p',
    EXISTS (
        SELECT FROM pg_catalog.pg_index i
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = c.oid AND a.attname = 'id' AND i.indnkeyatts = 1 AND i.indisunique
            AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
    ),
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
        AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = 'entries'
"""
_FIND_COLUMNS = """\
SELECT attname::text, pg_catalog.format_type(atttypid, NULL)
FROM pg_catalog.pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
"""
# One at a time until the transaction ends: two that make the same thing at once make one fail,
# IF NOT EXISTS or not. The number is ours, and any number that nobody else has.
_TAKE_TURN = "SELECT pg_catalog.pg_advisory_xact_lock(7021950164213375)"


def create_sql(schema: str = "adjudge") -> str:
    """Give the SQL that makes the ledger's schema and table, for a role that may run it."""
    quoted = _quoted(checked_schema(schema))
    return (_SCHEMA + _TABLE).format(schema=quoted)


def checked_schema(schema: str) -> str:
    """Give the schema's name, if it can be one; else raise `ValueError`."""
    if not schema or "\0" in schema or len(schema.encode()) > 63:
        raise ValueError(f"schema is {schema!r}; give the name of one, 63 bytes at most.")
    return schema


def prepare_table(connections: Connections, schema: str, *, create: bool) -> None:
    """Make what is missing, if `create` says so; raise `LedgerError` where there is no good table.

    Any number of processes may do this at once.
    """
    with connections.step() as connection:
        if _has_table(connection, schema):
            return
        if not create:
            raise LedgerError(f"There is no ledger in the schema {schema!r}; {_remedy(schema)}.")
        connection.execute(_TAKE_TURN)
        if _has_table(connection, schema):
            return  # somebody else was first
        try:
            if connection.execute(_FIND_SCHEMA, (schema,)).fetchone() is None:
                _run(connection, _SCHEMA, schema)
            _run(connection, _TABLE, schema)
        except psycopg.errors.InsufficientPrivilege as error:
            raise LedgerError(
                f"The ledger's table cannot be made: {error.diag.message_primary}; "
                f"{_remedy(schema)}."
            ) from None


def _run(connection: Connection, text: LiteralString, schema: str) -> None:
    connection.execute(sql.SQL(text).format(schema=sql.Identifier(schema)))


def _has_table(connection: Connection, schema: str) -> bool:
    """Whether the table is there; raises `LedgerError` if it is none that a ledger can use."""
    found = connection.execute(_FIND_TABLE, (schema,)).fetchone()
    if found is None:
        return False
    oid, kept, unique, allowed = found
    types: dict[str, str] = dict(connection.execute(_FIND_COLUMNS, (oid,)).fetchall())
    wrong = [name for name, type_ in _COLUMNS.items() if types.get(name) != type_]
    if wrong:
        why = f"its column {wrong[0]} is missing or has another type"
    elif not kept:
        why = "it is no table that is there after a crash"
    elif not unique:
        why = "its id is not unique"
    elif not allowed:
        why = "this role may not read and write it"
    else:
        return True
    raise LedgerError(f"{_quoted(schema)}.entries is no table for a ledger: {why}.")


def _remedy(schema: str) -> str:
    return f"have somebody who may run the SQL of adjudge_postgres.create_sql({schema!r})"


def _quoted(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'
