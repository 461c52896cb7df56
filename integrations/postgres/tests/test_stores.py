"""The stores pass their contracts on a real server, and say what goes wrong there."""

import os
import threading
import time
from dataclasses import replace

import psycopg
import pytest

from adjudge import ConcurrentModification, StoreError
from adjudge.integration import session_record_to_json
from adjudge_conformance.run_stores import STEP, DurableRunStoreContract
from adjudge_conformance.session_stores import SESSION, DurableSessionStoreContract
from adjudge_postgres import PostgresRunStore, PostgresSessionStore, create_sql


class OnServer:
    """A schema of its own for each test."""

    rounds = 20

    @pytest.fixture
    def place(self, schema, execute):
        """Name the schema."""
        self.execute = execute
        return schema

    def change(self, place, table, where, *values):
        """Empty a row's record, and give what puts it back."""
        find = f"SELECT record FROM {{schema}}.{table} WHERE {where}"
        change = f"UPDATE {{schema}}.{table} SET record = %s WHERE {where}"
        ((record,),) = self.execute(find, *values, schema=place)
        self.execute(change, "{}", *values, schema=place)
        return lambda: self.execute(change, record, *values, schema=place)


class TestPostgresRunStore(OnServer, DurableRunStoreContract):
    """The run store."""

    @staticmethod
    def open_store(place):
        """Open the store of a schema."""
        return PostgresRunStore(os.environ["ADJUDGE_POSTGRES_URL"], schema=place)

    def damage_step(self, place, run_id, seq):
        """Empty the record."""
        return self.change(place, "steps", "run_id = %s AND seq = %s", run_id, seq)

    def damage_store(self, place):
        """Put another table in the place of the store's."""
        self.execute("ALTER TABLE {schema}.steps DROP COLUMN record", schema=place)


class TestPostgresSessionStore(OnServer, DurableSessionStoreContract):
    """The session store."""

    @staticmethod
    def open_store(place):
        """Open the store of a schema."""
        return PostgresSessionStore(os.environ["ADJUDGE_POSTGRES_URL"], schema=place)

    def damage_session(self, place, session_id):
        """Empty the record."""
        return self.change(place, "sessions", "session_id = %s", session_id)

    def damage_store(self, place):
        """Put another table in the place of the store's."""
        self.execute("ALTER TABLE {schema}.sessions RENAME session_id TO id", schema=place)


# Tables


WRONG = {
    "a number may come twice": "ALTER TABLE {schema}.steps DROP CONSTRAINT steps_pkey",
    "a run has one step": "ALTER TABLE {schema}.steps DROP CONSTRAINT steps_pkey, ADD UNIQUE (seq)",
    "more is unique together": "ALTER TABLE {schema}.steps DROP CONSTRAINT steps_pkey,"
    " ADD UNIQUE (run_id, seq, record)",
    "a column has another type": "ALTER TABLE {schema}.steps ALTER seq TYPE text",
    "it is lost in a crash": "ALTER TABLE {schema}.steps SET UNLOGGED",
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_table_that_cannot_be_counted_on_is_refused(url, schema, execute, change):
    """A step would be lost or written twice in it."""
    PostgresRunStore(url, schema=schema)
    execute(change, schema=schema)

    with pytest.raises(StoreError, match="is no table for a run store"):
        PostgresRunStore(url, schema=schema)


@pytest.mark.parametrize("change", ["", " INCLUDE (record)"])
def test_table_that_is_unique_in_another_way_serves_as_well(url, schema, execute, change):
    """The order of the columns, and what else the index holds, do not matter."""
    PostgresRunStore(url, schema=schema)
    execute("ALTER TABLE {schema}.steps DROP CONSTRAINT steps_pkey", schema=schema)
    execute(f"CREATE UNIQUE INDEX ON {{schema}}.steps (seq, run_id){change}", schema=schema)

    assert PostgresRunStore(url, schema=schema).durable is True


@pytest.fixture
def role(execute, schema):
    """Give a role that may log in, and do nothing else."""
    execute("CREATE ROLE {role} LOGIN", role=schema)
    yield schema
    execute("DROP OWNED BY {role}", role=schema)
    execute("DROP ROLE {role}", role=schema)


async def test_role_that_makes_nothing_uses_what_was_made(url, role, schema, execute):
    """A journal is added to and read: its role need not be able to change a step."""
    as_role = psycopg.conninfo.make_conninfo(url, user=role)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(create_sql(schema))
    execute("GRANT USAGE ON SCHEMA {schema} TO {role}", schema=schema, role=role)
    execute("GRANT SELECT, INSERT ON {schema}.steps TO {role}", schema=schema, role=role)
    execute("GRANT SELECT, INSERT ON {schema}.sessions TO {role}", schema=schema, role=role)

    await PostgresRunStore(as_role, schema=schema).append(STEP)

    assert (STEP,) == await PostgresRunStore(url, schema=schema).load("run")
    with pytest.raises(StoreError, match="may not read and write"):
        PostgresSessionStore(as_role, schema=schema)


def test_store_that_is_not_there_is_named(url, schema):
    """With create=False nothing is made, and the error says what to run."""
    with pytest.raises(StoreError, match="create_sql"):
        PostgresRunStore(url, schema=schema, create=False)


# On the way


async def test_server_that_falls_silent_is_waited_for_so_long(relay, through, schema):
    """Fault: a server that hangs. The step ends in its time, with a sentence."""
    store = PostgresRunStore(through, schema=schema, busy_seconds=0.5)
    await store.append(STEP)
    relay.hold()
    began = time.monotonic()

    with pytest.raises(StoreError, match="did not answer in time"):
        await store.load("run")

    assert time.monotonic() - began < 6.5
    relay.release()
    assert (STEP,) == await store.load("run")


async def test_way_that_was_cut_is_found_again(relay, through, schema):
    """A kept connection that died is replaced before anything is asked of the server."""
    store = PostgresSessionStore(through, schema=schema)
    await store.create(SESSION)
    relay.cut()

    assert await store.exists("s") is True


async def test_save_waits_for_a_rivals_and_then_is_stale(url, schema, execute):
    """The row is locked by whoever comes first; what the second saw is not there any more."""
    store = PostgresSessionStore(url, schema=schema)
    await store.create(SESSION)
    raised = []

    def save():
        try:
            store._save(*_next())
        except ConcurrentModification as error:
            raised.append(error)

    with psycopg.connect(url) as rival:
        rival.execute(f'UPDATE "{schema}".sessions SET version = 2, record = %s', (_next()[1],))
        thread = threading.Thread(target=save)
        thread.start()
        _until_waiting(execute)
    thread.join(30)

    assert 1 == len(raised)


def _next():
    made = replace(SESSION, version=2)
    return made, session_record_to_json(made)


def _until_waiting(execute):
    """Wait until a step of ours waits for another's lock."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE application_name = 'adjudge' AND wait_event_type = 'Lock'"
        ):
            return
    raise AssertionError("nothing waits")


# Rows


@pytest.mark.parametrize("change", ["record = ''", "record = '[]'", "seq = 7", "run_id = 'other'"])
async def test_step_that_was_changed_is_found_out(url, schema, execute, change):
    """It raises `StoreError`, and the run is not gone on with."""
    store = PostgresRunStore(url, schema=schema)
    await store.append(STEP)
    execute(f"UPDATE {{schema}}.steps SET {change}", schema=schema)

    with pytest.raises(StoreError):
        await store.load("other" if "other" in change else "run")


@pytest.mark.parametrize("change", ["record = ''", "version = 2", "version = -1"])
async def test_session_that_was_changed_is_found_out(url, schema, execute, change):
    """It raises `StoreError`, wherever it is read."""
    store = PostgresSessionStore(url, schema=schema)
    await store.create(SESSION)
    execute(f"UPDATE {{schema}}.sessions SET {change}", schema=schema)

    with pytest.raises(StoreError):
        await store.load("s")
    with pytest.raises(StoreError):
        await store.save(SESSION, expected_version=3)
