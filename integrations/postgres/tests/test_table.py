"""The ledger's table: made once by whoever comes first, and refused where it is another."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from adjudge import LedgerError
from adjudge_conformance.ledger import ENTRY
from adjudge_postgres import PostgresLedger, create_sql

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "postgres.md"


@pytest.fixture
def role(execute, schema):
    """Give a role that may log in, and do nothing else."""
    execute("CREATE ROLE {role} LOGIN", role=schema)
    yield schema
    execute("DROP OWNED BY {role}", role=schema)
    execute("DROP ROLE {role}", role=schema)


@pytest.fixture
def as_role(url, role):
    """Give the URL of the server for that role."""
    return psycopg.conninfo.make_conninfo(url, user=role)


def test_it_is_made_where_it_is_missing(url, schema):
    """A first ledger makes schema and table, a second one finds them."""
    PostgresLedger(url, schema=schema).add(ENTRY)

    assert ENTRY == PostgresLedger(url, schema=schema, create=False).get("e1")


def test_a_name_is_no_sql(url, schema, execute):
    """Quotes and braces in the name of a schema are part of it."""
    name = f'{schema}"; {{DROP}} %s é'
    try:
        PostgresLedger(url, schema=name).add(ENTRY)

        assert [("e1",)] == execute("SELECT id FROM {schema}.entries", schema=name)
    finally:
        execute("DROP SCHEMA {schema} CASCADE", schema=name)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 64])
def test_a_schema_that_cannot_be_is_refused(url, name):
    """PostgreSQL would cut a long name short, and find another's schema."""
    with pytest.raises(ValueError, match="schema"):
        PostgresLedger(url, schema=name)


MAKE = """
import sys
from adjudge_postgres import PostgresLedger
print("ready", flush=True)
sys.stdin.readline()
PostgresLedger(*sys.argv[1:2], schema=sys.argv[2])
"""


def test_many_processes_make_it_at_once(url, schema):
    """Each of them finds it made, whoever was first."""
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, url, schema],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    assert ["ready\n"] * 4 == [maker.stdout.readline() for maker in makers]
    for maker in makers:
        maker.stdin.write("go\n")
        maker.stdin.flush()

    for maker in makers:
        maker.communicate(timeout=60)

    assert [0] * 4 == [maker.returncode for maker in makers]


def test_a_schema_that_is_missing_is_named(url, schema):
    """With create=False nothing is made, and the error says what to run."""
    with pytest.raises(LedgerError, match="create_sql"):
        PostgresLedger(url, schema=schema, create=False)


def test_a_role_that_may_not_make_it_is_told_how(as_role, schema):
    """The error names the SQL that somebody else may run."""
    with pytest.raises(LedgerError, match="create_sql"):
        PostgresLedger(as_role, schema=schema)


def test_a_role_that_makes_nothing_uses_what_was_made(url, as_role, schema, execute):
    """Four rights are enough, and it has to have them from the start."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(create_sql(schema))
    with pytest.raises(LedgerError, match="may not read and write"):
        PostgresLedger(as_role, schema=schema)
    execute("GRANT USAGE ON SCHEMA {schema} TO {role}", schema=schema, role=schema)
    execute(
        "GRANT SELECT, INSERT, UPDATE ON {schema}.entries TO {role}", schema=schema, role=schema
    )

    ledger = PostgresLedger(as_role, schema=schema)
    ledger.add(ENTRY)

    assert ENTRY == ledger.get("e1")


def test_a_role_that_may_make_tables_in_a_schema_makes_it(as_role, schema, execute):
    """A schema that is there already needs no right to make one."""
    execute("CREATE SCHEMA {schema} AUTHORIZATION {role}", schema=schema, role=schema)

    PostgresLedger(as_role, schema=schema).add(ENTRY)

    assert [("e1",)] == execute("SELECT id FROM {schema}.entries", schema=schema)


WRONG = {
    "a column is missing": "ALTER TABLE {schema}.entries DROP COLUMN result",
    "a column has another type": "ALTER TABLE {schema}.entries ALTER expires_at TYPE text",
    "it is lost in a crash": "ALTER TABLE {schema}.entries SET UNLOGGED",
    "ids are not unique": "ALTER TABLE {schema}.entries DROP CONSTRAINT entries_pkey",
    "ids are unique too late": "ALTER TABLE {schema}.entries DROP CONSTRAINT entries_pkey,"
    " ADD UNIQUE (id) DEFERRABLE",
    "ids are unique in part": "ALTER TABLE {schema}.entries DROP CONSTRAINT entries_pkey;"
    " CREATE UNIQUE INDEX ON {schema}.entries (id) WHERE state = 'paused'",
    "two columns are unique": "ALTER TABLE {schema}.entries DROP CONSTRAINT entries_pkey,"
    " ADD UNIQUE (id, run)",
    "it is a view": "ALTER TABLE {schema}.entries RENAME TO others;"
    " CREATE VIEW {schema}.entries AS SELECT * FROM {schema}.others",
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_table_that_cannot_be_counted_on_is_refused(url, schema, execute, change):
    """A claim would be lost or made twice in it."""
    PostgresLedger(url, schema=schema)
    execute(change, schema=schema)

    with pytest.raises(LedgerError, match="is no table for a ledger"):
        PostgresLedger(url, schema=schema)


def test_a_table_with_more_in_it_is_used(url, schema, execute):
    """A column of somebody else's does not matter."""
    PostgresLedger(url, schema=schema)
    execute("ALTER TABLE {schema}.entries ADD COLUMN note text", schema=schema)

    PostgresLedger(url, schema=schema).add(ENTRY)

    assert ENTRY == PostgresLedger(url, schema=schema).get("e1")


def test_the_guide_shows_the_sql():
    """Who copies it from there has the same table."""
    assert create_sql() in PAGE.read_text(encoding="utf-8")
