"""The tables of the ledger and the stores: the SQL that makes them, and whether they are such.

Made once, by whoever comes first, or beforehand by somebody who may. A table that lacks what is
counted on (its columns, what is unique in it, being there after a crash) is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

from adjudge_postgres._connections import Connection, Connections

__all__ = ["ENTRIES", "SESSIONS", "STEPS", "Table", "checked_schema", "create_sql", "prepare_table"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns' types, the columns that are unique together, and what makes it.

    `rights` is what its user needs besides reading it.
    """

    name: str
    use: str
    columns: Mapping[str, str]
    unique: tuple[str, ...]
    rights: tuple[str, ...]
    make: LiteralString


ENTRIES = Table(
    name="entries",
    use="a ledger",
    columns={
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
    },
    unique=("id",),
    rights=("INSERT", "UPDATE"),
    make="""\
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
""",
)
STEPS = Table(
    name="steps",
    use="a run store",
    columns={"run_id": "text", "seq": "bigint", "record": "text"},
    unique=("run_id", "seq"),
    rights=("INSERT",),
    make="""\
CREATE TABLE IF NOT EXISTS {schema}.steps (
    run_id text NOT NULL,
    seq bigint NOT NULL,
    record text NOT NULL,
    PRIMARY KEY (run_id, seq)
);
""",
)
SESSIONS = Table(
    name="sessions",
    use="a session store",
    columns={"session_id": "text", "version": "bigint", "record": "text"},
    unique=("session_id",),
    rights=("INSERT", "UPDATE"),
    make="""\
CREATE TABLE IF NOT EXISTS {schema}.sessions (
    session_id text PRIMARY KEY,
    version bigint NOT NULL,
    record text NOT NULL
);
""",
)

_SCHEMA = """\
CREATE SCHEMA IF NOT EXISTS {schema};
"""

_FIND_SCHEMA = "SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s"
_FIND_TABLE = """\
SELECT
    c.oid,
    c.relkind = 'r' AND c.relpersistence = 'p',
    EXISTS (
        SELECT FROM pg_catalog.pg_index i
        WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
            AND i.indpred IS NULL AND (
                SELECT array_agg(a.attname::text ORDER BY a.attname)
                FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = i.indrelid
                    AND a.attnum = ANY ((i.indkey::smallint[])[0:i.indnkeyatts - 1])
            ) = %(unique)s::text[]
    ),
    has_schema_privilege(n.oid, 'USAGE') AND (
        SELECT bool_and(has_table_privilege(c.oid, each)) FROM unnest(%(rights)s::text[]) each
    )
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(table)s
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
    """Give the SQL that makes the schema and its tables, for a role that may run it."""
    quoted = _quoted(checked_schema(schema))
    makes = (_SCHEMA, ENTRIES.make, STEPS.make, SESSIONS.make)
    return "".join(makes).format(schema=quoted)


def checked_schema(schema: str) -> str:
    """Give the schema's name, if it can be one; else raise `ValueError`."""
    if not schema or "\0" in schema or len(schema.encode()) > 63:
        raise ValueError(f"schema is {schema!r}; give the name of one, 63 bytes at most.")
    return schema


def prepare_table(connections: Connections, table: Table, schema: str, *, create: bool) -> None:
    """Make what is missing, if `create` says so; raise an error where there is no good table.

    Any number of processes may do this at once.
    """
    with connections.step() as connection:
        if _has_table(connections, connection, table, schema):
            return
        if not create:
            raise connections.error(
                f"There is no table for {table.use} in the schema {schema!r}; {_remedy(schema)}."
            )
        connection.execute(_TAKE_TURN)
        if _has_table(connections, connection, table, schema):
            return  # somebody else was first
        try:
            if connection.execute(_FIND_SCHEMA, (schema,)).fetchone() is None:
                _run(connection, _SCHEMA, schema)
            _run(connection, table.make, schema)
        except psycopg.errors.InsufficientPrivilege as error:
            raise connections.error(
                f"The table for {table.use} cannot be made: {error.diag.message_primary}; "
                f"{_remedy(schema)}."
            ) from None


def _run(connection: Connection, text: LiteralString, schema: str) -> None:
    connection.execute(sql.SQL(text).format(schema=sql.Identifier(schema)))


def _has_table(connections: Connections, connection: Connection, table: Table, schema: str) -> bool:
    """Whether the table is there; raises an error if it is none that can be used."""
    wanted = {
        "schema": schema,
        "table": table.name,
        "unique": sorted(table.unique),
        "rights": ["SELECT", *table.rights],
    }
    found = connection.execute(_FIND_TABLE, wanted).fetchone()
    if found is None:
        return False
    oid, kept, unique, allowed = found
    types: dict[str, str] = dict(connection.execute(_FIND_COLUMNS, (oid,)).fetchall())
    wrong = [name for name, type_ in table.columns.items() if types.get(name) != type_]
    if wrong:
        why = f"its column {wrong[0]} is missing or has another type"
    elif not kept:
        why = "it is no table that is there after a crash"
    elif not unique:
        why = f"its {' and '.join(table.unique)} is not unique"
    elif not allowed:
        why = "this role may not read and write it"
    else:
        return True
    raise connections.error(f"{_quoted(schema)}.{table.name} is no table for {table.use}: {why}.")


def _remedy(schema: str) -> str:
    return f"have somebody who may run the SQL of adjudge_postgres.create_sql({schema!r})"


def _quoted(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'
