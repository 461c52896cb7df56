"""The stores in a file: what is shared, what outlives whom, and what goes wrong with a file.

What every store owes is in the contracts of `adjudge_conformance`.
"""

import asyncio
import dataclasses
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime

import pytest

from adjudge import (
    DuplicateRecord,
    SessionRecord,
    SQLiteLedger,
    SQLiteRunStore,
    SQLiteSessionStore,
    StepRecord,
    StoreError,
)

STEP = StepRecord("run", 0, "intent", "key", {"tool": "pay"}, datetime(2026, 1, 2, tzinfo=UTC))
STORES = [SQLiteRunStore, SQLiteSessionStore]


@pytest.fixture
def path(tmp_path):
    """Name a file that is not there yet."""
    return tmp_path / "store.sqlite"


@pytest.mark.parametrize("store", STORES)
def test_a_file_is_its_owners_alone(store, path):
    """Arguments and results are in it."""
    store(path)

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


async def test_one_file_serves_for_all(path):
    """Steps, sessions and a ledger are in tables of their own."""
    runs, sessions = SQLiteRunStore(path), SQLiteSessionStore(path)
    SQLiteLedger(path)
    await runs.append(STEP)
    await sessions.create(SessionRecord("run", 0, {}))

    assert (STEP,) == await runs.load("run")
    assert await sessions.exists("run") is True


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", ["", ":memory:"])
def test_memory_is_another_store(store, name):
    """A file of that name would be gone with the first step."""
    with pytest.raises(StoreError, match="Memory"):
        store(name)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("name", ["missing/store", ".", "a\0b"])
def test_a_file_that_cannot_be_made_is_named(store, name, tmp_path, monkeypatch):
    """Opening it fails, and no step of a run is begun."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreError, match=r"cannot be used|failed"):
        store(name)


async def test_a_relative_path_stays_where_it_is(tmp_path, monkeypatch):
    """A process that changes its folder has the same store."""
    monkeypatch.chdir(tmp_path)
    store = SQLiteRunStore("store.sqlite")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")

    await store.append(STEP)

    assert (STEP,) == await SQLiteRunStore(tmp_path / "store.sqlite").load("run")


async def test_a_name_with_signs_of_a_url_is_a_name(tmp_path):
    """What SQLite takes for parameters is part of it."""
    path = tmp_path / "a?mode=memory&x#y%20é"
    await SQLiteRunStore(path).append(STEP)

    assert (STEP,) == await SQLiteRunStore(path).load("run")


# On the disk


def test_a_commit_waits_for_the_disk(path):
    """Synchronous is FULL (2) in every connection, and the log is written ahead."""
    store = SQLiteRunStore(path)

    with store._file.step(writes=True) as database:
        found = [
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode")
        ]

    assert [2, "wal"] == found


async def test_a_connection_is_kept(path):
    """A step after another opens the file no more; after `close` the next one does."""
    store = SQLiteRunStore(path)
    await store.append(STEP)
    (kept,) = next(iter(store._file._kept.values())).idle
    with pytest.raises(DuplicateRecord):
        await store.append(STEP)
    await store.append(dataclasses.replace(STEP, seq=1))

    assert (kept,) == tuple(next(iter(store._file._kept.values())).idle)
    store.close()
    assert 2 == len(await store.load("run"))


# A file that goes away


async def test_a_file_that_was_removed_is_missed(path):
    """What would be written to it is lost: the step raises, and no empty file takes its place."""
    store = SQLiteRunStore(path)
    await store.append(STEP)
    path.unlink()

    with pytest.raises(StoreError):
        await store.append(dataclasses.replace(STEP, seq=1))
    with pytest.raises(StoreError):
        await store.load("run")
    assert not path.exists()


async def test_a_file_that_was_replaced_is_the_store(path, tmp_path):
    """A kept connection to the old one is given up."""
    other = dataclasses.replace(STEP, kind="other")
    elsewhere = SQLiteRunStore(tmp_path / "other.sqlite")
    await elsewhere.append(other)
    elsewhere.close()
    store = SQLiteRunStore(path)
    await store.append(STEP)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    (tmp_path / "other.sqlite").replace(path)

    assert (other,) == await store.load("run")


def test_a_file_that_is_replaced_during_a_step_is_noticed(path, tmp_path):
    """What was written is in no store, and the step says so."""
    store = SQLiteRunStore(path)
    other = tmp_path / "other"
    other.touch()

    def write():
        with store._file.step(writes=True):
            other.replace(path)

    with pytest.raises(StoreError, match="replaced"):
        write()


# Others at it


async def test_another_writer_is_waited_for_so_long(path):
    """Whoever holds the file for longer than `busy_seconds` has the step fail, and not hang."""
    store = SQLiteRunStore(path, busy_seconds=0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        began = time.monotonic()

        with pytest.raises(StoreError, match="locked"):
            await store.append(STEP)

        assert time.monotonic() - began < 5
        assert () == await store.load("run")
        rival.execute("ROLLBACK")

    await store.append(STEP)
    assert (STEP,) == await store.load("run")


async def test_a_loop_goes_on_while_a_step_waits(path):
    """The work is done in a thread."""
    store = SQLiteRunStore(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(store.append(STEP))
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert not task.done()
        rival.execute("ROLLBACK")

    await task
    assert (STEP,) == await store.load("run")


def test_writers_of_a_process_take_turns(path):
    """Whoever waits for another thread too long is told."""
    store = SQLiteRunStore(path, busy_seconds=0.2)
    held, done = threading.Event(), threading.Event()

    def hold():
        with store._file.step(writes=True):
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    with pytest.raises(StoreError, match="busy"):
        asyncio.run(store.append(STEP))
    done.set()
    thread.join()

    asyncio.run(store.append(STEP))
    assert (STEP,) == asyncio.run(store.load("run"))


FORK = """
import asyncio, dataclasses, os, sys
from datetime import UTC, datetime
from adjudge import SQLiteRunStore, StepRecord
step = StepRecord("run", 0, "intent", "key", {}, datetime.now(UTC))
store = SQLiteRunStore(sys.argv[1])
def append(first):
    async def go():
        for seq in range(first, first + 20):
            await store.append(dataclasses.replace(step, seq=seq))
    asyncio.run(go())
append(0)
children = []
for n in range(1, 4):
    child = os.fork()
    if not child:
        append(100 * n)
        sys.exit(0)
    children.append(child)
append(20)
assert [0] * 3 == [os.waitpid(child, 0)[1] for child in children]
append(40)
print(len(asyncio.run(store.load("run"))))
"""


def test_a_fork_does_not_share_its_parents_connections(path):
    """Both go on with their store, in whatever order, and nothing is lost."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
        timeout=60,
    )

    assert (0, "120\n", "") == (ran.returncode, ran.stdout, ran.stderr)
    with closing(sqlite3.connect(path)) as database:
        assert [("ok",)] == database.execute("PRAGMA integrity_check").fetchall()


KILLED = """
import asyncio, dataclasses, sys
from datetime import UTC, datetime
from adjudge import SQLiteRunStore, StepRecord
step = StepRecord("run", 0, "intent", "key", {"text": "x" * 3000}, datetime.now(UTC))
store = SQLiteRunStore(sys.argv[1])
async def go():
    for seq in range(10**6):
        await store.append(dataclasses.replace(step, seq=seq))
        print(seq, flush=True)
asyncio.run(go())
"""


@pytest.mark.parametrize("after", [1, 30])
def test_what_a_killed_process_was_told_is_there(path, after):
    """Every append that returned is kept, and at most the one that was on its way besides."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    told = [process.stdout.readline() for _ in range(after)]
    process.kill()
    told += process.stdout.readlines()
    process.stdout.close()
    process.wait(60)
    acknowledged = [int(line) for line in told if line.endswith("\n")]

    kept = [step.seq for step in asyncio.run(SQLiteRunStore(path).load("run"))]

    assert acknowledged == kept[: len(acknowledged)]
    assert len(kept) - len(acknowledged) in (0, 1)


# Rows


@pytest.mark.parametrize(
    "change",
    ["record = ''", "record = x'00'", "record = 7", "seq = 7", "seq = 'x'", "run_id = 'b'"],
)
async def test_a_row_that_was_changed_is_found_out(path, change):
    """It raises `StoreError`, and the run is not gone on with."""
    store = SQLiteRunStore(path)
    await store.append(STEP)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE adjudge_steps SET {change}")

    with pytest.raises(StoreError):
        await store.load("b" if "'b'" in change else "run")


@pytest.mark.parametrize("change", ["record = ''", "version = 2", "version = 'x'", "version = -1"])
async def test_a_session_that_was_changed_is_found_out(path, change):
    """It raises `StoreError`, wherever it is read."""
    store = SQLiteSessionStore(path)
    made = await store.create(SessionRecord("s", 0, {}))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"UPDATE adjudge_sessions SET {change}")

    with pytest.raises(StoreError):
        await store.load("s")
    with pytest.raises(StoreError):
        await store.save(made, expected_version=9)
