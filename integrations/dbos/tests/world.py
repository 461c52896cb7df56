"""A database of its own, workers in processes, and a desk that has no agents."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psycopg
from dbos import DBOSClient, run_dbos_database_migrations
from psycopg import sql
from sqlalchemy import make_url

from adjudge_postgres import PostgresLedger, PostgresRunStore

WORKER = Path(__file__).with_name("worker.py")


@dataclass
class Worker:
    """A worker's process, and what it has printed so far."""

    executor: str
    process: subprocess.Popen[str]
    seen: list[str] = field(default_factory=list)

    def until(self, wanted: str) -> str:
        """Wait for a line that begins like this, and give it; its end is a failure."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen.append(line.strip())
            if line.startswith(wanted):
                return line.strip()
        raise AssertionError(f"the worker ended before {wanted!r}: {self.seen}")

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def ended(self) -> int:
        """Wait for its end, and give its exit code."""
        assert self.process.stdout is not None
        self.seen += [line.strip() for line in self.process.stdout]
        return self.process.wait(60)


@dataclass
class World:
    """What all processes of a test have in common."""

    url: str
    schema: str = "adjudge"
    workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = DBOSClient(system_database_url=self.url)
        self.ledger = PostgresLedger(self.url, schema=self.schema)
        self.store = PostgresRunStore(self.url, schema=self.schema)
        self.sql(f"CREATE TABLE {self.schema}.paid (key text, worker text)")

    def begin(self, executor: str, **settings: object) -> Worker:
        """Start a worker, which listens to a queue of its own name."""
        told = {
            "url": self.url,
            "schema": self.schema,
            "executor": executor,
            "queues": [executor],
            **settings,
        }
        process = subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        worker = Worker(executor, process)
        self.workers.append(worker)
        return worker

    def worker(self, executor: str, **settings: object) -> Worker:
        """Start a worker, and wait until it runs."""
        worker = self.begin(executor, **settings)
        worker.until("ready")
        return worker

    def result(self, run_id: str) -> dict[str, object]:
        """Wait for the end of a run, and give its result."""
        return dict(self.client.retrieve_workflow(run_id).get_result(polling_interval_sec=0.1))

    def sql(self, text: str) -> list[tuple[object, ...]]:
        """Run SQL past everything."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    def paid(self) -> list[tuple[object, ...]]:
        """Give how often each payment was made."""
        return self.sql(f"SELECT key, count(*) FROM {self.schema}.paid GROUP BY key ORDER BY key")

    def close(self) -> None:
        """End what still runs."""
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
            assert worker.process.stdin is not None
            assert worker.process.stdout is not None
            worker.process.stdin.close()
            worker.process.stdout.close()
        self.ledger.close()
        self.store.close()
        self.client.destroy()


@contextmanager
def fresh_world(url: str) -> Iterator[World]:
    """Make a database with the tables of DBOS in it, and drop it in the end."""
    name = f"adjudge_test_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    whole = make_url(url).set(database=name).render_as_string(hide_password=False)
    run_dbos_database_migrations(whole)
    world = World(whole)
    try:
        yield world
    finally:
        world.close()
        with psycopg.connect(url, autocommit=True) as connection:
            gone = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(gone)
