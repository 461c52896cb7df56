"""Six runs on two workers, of which one is killed while it works.

Shows: runs spread over the workers that there are; what a killed worker left is taken over by the
other; every refund is made once, and the one that the kill caught halfway is reported instead of
made a second time. Needs: `adjudge-dbos`, and a PostgreSQL server whose URL is in
ADJUDGE_POSTGRES_URL, where it makes a database and drops it; no key, no network.

    .ci/postgres python examples/runs_on_two_workers/run.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from dbos import DBOSClient, run_dbos_database_migrations
from sqlalchemy import make_url

from adjudge_dbos import RunOrder, start, take_over
from adjudge_runtime import idempotency_key

WORKER = Path(__file__).with_name("worker.py")
RUNS = [f"batch-{number}" for number in range(1, 7)]
REFUNDS = 3

Worker = subprocess.Popen[str]


def main() -> int:
    """Run it; 0 where every refund was made once or is reported, 1 otherwise."""
    with database(os.environ["ADJUDGE_POSTGRES_URL"]) as url:
        client = DBOSClient(system_database_url=url)
        workers = {name: begin(name, url) for name in ("one", "two")}
        try:
            let_go(workers["one"])
            wait_for(workers["one"], "one is ready")
            for run_id in RUNS:
                start(client, RunOrder("clerk", "Refund three customers.", run_id))
            wait_for(workers["one"], "one begins a refund")
            # Not before: it could have done everything by now.
            let_go(workers["two"])
            kill_in_the_middle(workers["one"])
            left = take_over(client, "one")
            print(f"worker one was killed; it left {', '.join(sorted(left))} to worker two")
            told = [
                client.retrieve_workflow(run_id).get_result(polling_interval_sec=0.1)
                for run_id in RUNS
            ]
        finally:
            for worker in workers.values():
                end(worker)
            client.destroy()
        return report(told, url)


def kill_in_the_middle(worker: Worker) -> None:
    """Wait until it is about to make its next refund, and kill it."""
    wait_for(worker, "one begins a refund")
    worker.kill()


def report(told: list[dict[str, Any]], url: str) -> int:
    """Print what became of each run, and give how many refunds are as they may not be."""
    with psycopg.connect(url) as connection:
        made = Counter(key for (key,) in connection.execute("SELECT key FROM refunds"))
    wrong = 0
    for run in told:
        unknown = {each["step"] for each in run["uncertain"]}
        notes = []
        for step in range(REFUNDS):
            key = idempotency_key(run["run_id"], step, "refund", {"customer": step + 1})
            note = f"{made[key]}x"
            if step in unknown:
                note += " (uncertain, not made again)"
            notes.append(note)
            wrong += not (made[key] == 1 or (made[key] == 0 and step in unknown))
        print(f"{run['run_id']}: finished by worker {run['executor']}; refunds {', '.join(notes)}")
    twice = sum(times > 1 for times in made.values())
    print(f"refunds made: {made.total()}; made twice: {twice}")
    return 1 if wrong or twice else 0


def begin(name: str, url: str) -> Worker:
    """Start a worker in a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(WORKER), name, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def let_go(worker: Worker) -> None:
    """Have a worker that has started begin to take runs."""
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


def wait_for(worker: Worker, line: str) -> None:
    """Read what a worker prints until it says this."""
    assert worker.stdout is not None
    for said in worker.stdout:
        if said.strip() == line:
            return
    raise SystemExit(f"a worker ended before it said {line!r}")


def end(worker: Worker) -> None:
    """Let a worker end, if it still lives."""
    worker.communicate()


@contextmanager
def database(url: str) -> Iterator[str]:
    """Make a database with the tables of DBOS and the one for refunds, and drop it in the end."""
    name = f"refunds_{uuid4().hex}"
    whole = make_url(url).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            run_dbos_database_migrations(whole)
            with psycopg.connect(whole) as connection:
                connection.execute("CREATE TABLE refunds (key text, worker text)")
            yield whole
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


if __name__ == "__main__":
    sys.exit(main())
