"""What appending a step costs in each store, beside the bare write that it is made of.

    .ci/redis .ci/postgres python integrations/redis/benchmarks/stores.py

SQLite and memory are always measured, Redis and PostgreSQL where `ADJUDGE_REDIS_URL` and
`ADJUDGE_POSTGRES_URL` name a server. The bare write is one of the same text, through the same
client with the same durability, from the same event loop: in a thread, as a loop has to wait for a
disk. Both take turns in short batches, and the ratio is the median of the ratios of neighbours: it
holds on a busy machine, the microseconds only on this one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis

from adjudge import MemoryRunStore, SQLiteRunStore, StepRecord, step_record_to_json
from adjudge_redis import RedisRunStore

BODY = {"tool": "refund", "args": {"order": 8, "amount": 60.0, "to": "ana"}, "result": "ok " * 60}
BATCH = 20

Write = Callable[[int, str], Any]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25, help=f"of {BATCH} steps each")
    options = parser.parse_args()
    print("| store | a step, µs | the bare write, µs | ratio | a step of a loaded run, µs |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for name, store, bare in pairs(Path(folder), stack):
            print(asyncio.run(compared(name, store, bare, options.rounds)))


def pairs(folder: Path, stack: ExitStack) -> list[tuple[str, Any, Write]]:
    """Open each store, and what writes to its like without it."""
    journal: dict[int, str] = {}
    found: list[tuple[str, Any, Write]] = [
        ("memory", MemoryRunStore(), journal.__setitem__),
        ("SQLite", SQLiteRunStore(folder / "store.sqlite"), sqlite_write(folder, stack)),
    ]
    if url := os.environ.get("ADJUDGE_REDIS_URL"):
        found.append(("Redis", *redis_pair(url, stack)))
    if url := os.environ.get("ADJUDGE_POSTGRES_URL"):
        found.append(("PostgreSQL", *postgres_pair(url, stack)))
    return found


def sqlite_write(folder: Path, stack: ExitStack) -> Write:
    """Give what inserts a row, on the disk when it returns."""
    database = sqlite3.connect(
        folder / "bare.sqlite", isolation_level=None, check_same_thread=False
    )
    stack.callback(database.close)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE steps (run TEXT, seq INTEGER, record TEXT, UNIQUE (run, seq))")
    return lambda seq, text: database.execute(
        "INSERT INTO steps VALUES (?, ?, ?)", ("run", seq, text)
    )


def redis_pair(url: str, stack: ExitStack) -> tuple[RedisRunStore, Write]:
    """Open a store under a prefix of its own, and give what sets a field."""
    prefix = f"adjudge-benchmark-{uuid4().hex}"
    client = stack.enter_context(redis.Redis.from_url(url))
    stack.callback(client.delete, f"{prefix}:steps:run", f"{prefix}:bare")
    store = stack.enter_context(RedisRunStore(url, prefix=prefix))
    return store, lambda seq, text: client.hsetnx(f"{prefix}:bare", str(seq), text)


def postgres_pair(url: str, stack: ExitStack) -> tuple[Any, Write]:
    """Open a store in a schema of its own, and give what inserts a row in a transaction."""
    import psycopg

    from adjudge_postgres import PostgresRunStore

    schema = f"adjudge_benchmark_{uuid4().hex}"
    connection = stack.enter_context(psycopg.connect(url, autocommit=True))
    store = stack.enter_context(PostgresRunStore(url, schema=schema))
    stack.callback(connection.execute, f"DROP SCHEMA {schema} CASCADE")
    connection.execute(
        f"CREATE TABLE {schema}.bare (run text, seq bigint, record text, PRIMARY KEY (run, seq))"
    )

    def write(seq: int, text: str) -> None:
        with connection.transaction():
            connection.execute(f"INSERT INTO {schema}.bare VALUES (%s, %s, %s)", ("run", seq, text))

    return store, write


async def compared(name: str, store: Any, bare: Write, rounds: int) -> str:
    """Measure a store beside its bare write; give the row of the table."""
    steps = [
        StepRecord("run", seq, "result", "key", BODY, datetime.now(UTC))
        for seq in range((rounds + 1) * BATCH)
    ]
    texts = [step_record_to_json(step) for step in steps]

    async def write(seq: int) -> None:
        if name == "memory":
            bare(seq, texts[seq])
        else:
            await asyncio.to_thread(bare, seq, texts[seq])

    ours, theirs = [], []
    for number in range(rounds + 1):
        batch = range(number * BATCH, (number + 1) * BATCH)
        ours.append(await timed(lambda seq: store.append(steps[seq]), batch))
        theirs.append(await timed(write, batch))
    ours, theirs = ours[1:], theirs[1:]  # the first of each opens what there is to open
    began = time.perf_counter()
    loaded = await store.load("run")
    load = (time.perf_counter() - began) / len(loaded) * 1e6
    assert len(steps) == len(loaded)
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    cells = (statistics.median(ours), statistics.median(theirs))
    return f"| {name} | {cells[0]:.0f} | {cells[1]:.0f} | {ratio:.2f} | {load:.0f} |"


async def timed(write: Callable[[int], Awaitable[object]], batch: range) -> float:
    """Give the microseconds that one write of a batch takes."""
    began = time.perf_counter()
    for seq in batch:
        await write(seq)
    return (time.perf_counter() - began) / len(batch) * 1e6


if __name__ == "__main__":
    main()
