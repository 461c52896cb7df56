"""A schema of its own for each test, on the server that ADJUDGE_POSTGRES_URL names."""

import os
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import conninfo, sql

from adjudge_conformance.relay import Relay


@pytest.fixture(scope="session")
def url():
    """Name the server, which has to be there: nothing here is skipped."""
    found = os.environ.get("ADJUDGE_POSTGRES_URL")
    if not found:
        pytest.fail(
            "ADJUDGE_POSTGRES_URL is not set. Run `.ci/postgres pytest integrations/postgres`, "
            "which starts a server, or set it to the URL of one."
        )
    return found


@pytest.fixture
def execute(url):
    """Give what runs SQL on the server, past any ledger."""
    with psycopg.connect(url, autocommit=True) as connection:

        def run(text, *values, **names):
            whole = sql.SQL(text).format(**{key: sql.Identifier(n) for key, n in names.items()})
            cursor = connection.execute(whole, values or None)
            return cursor.fetchall() if cursor.description else None

        yield run


@pytest.fixture
def schema(execute):
    """Name a schema that is not there yet."""
    name = f"adjudge test {uuid4().hex}"
    yield name
    execute("DROP SCHEMA IF EXISTS {schema} CASCADE", schema=name)


@pytest.fixture
def relay(url):
    """Stand between the ledger and the server."""
    parameters = conninfo.conninfo_to_dict(url)
    host, port = parameters.get("host", "localhost"), int(parameters.get("port") or 5432)
    where = str(Path(host, f".s.PGSQL.{port}")) if host.startswith("/") else (host, port)
    with Relay(where) as between:
        yield between


@pytest.fixture
def through(url, relay):
    """Name the server by way of the relay."""
    return conninfo.make_conninfo(url, host="127.0.0.1", port=relay.port)
