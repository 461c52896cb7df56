"""Core's stores pass the contracts of run and session stores, and wrong stores do not."""

import inspect
import sqlite3
import threading
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge import (
    AdjudgeError,
    ConcurrentModification,
    DuplicateRecord,
    MemoryRunStore,
    MemorySessionStore,
    SessionExists,
    SQLiteRunStore,
    SQLiteSessionStore,
    StoreError,
    UnknownSession,
)
from adjudge_conformance.run_stores import DurableRunStoreContract, RunStoreContract
from adjudge_conformance.session_stores import DurableSessionStoreContract, SessionStoreContract


class TestMemoryRunStore(RunStoreContract):
    """A store of its own for each test."""

    @staticmethod
    def open_store(place):
        """Make one."""
        return MemoryRunStore()

    @pytest.fixture
    def place(self):
        """Name nothing."""
        return ""


class TestMemorySessionStore(SessionStoreContract):
    """A store of its own for each test."""

    @staticmethod
    def open_store(place):
        """Make one."""
        return MemorySessionStore()

    @pytest.fixture
    def place(self):
        """Name nothing."""
        return ""


class File:
    """A file of its own for each test."""

    rounds = 10

    @pytest.fixture
    def place(self, tmp_path):
        """Name a file that is not there yet."""
        return str(tmp_path / "store.sqlite")

    def damage_store(self, place):
        """Put something else in the place of the file."""
        for path in Path(place).parent.iterdir():
            path.write_bytes(b"something else" * 1000)


class TestSQLiteRunStore(File, DurableRunStoreContract):
    """A file of its own for each test."""

    @staticmethod
    def open_store(place):
        """Open the file."""
        return SQLiteRunStore(place)

    def damage_step(self, place, run_id, seq):
        """Empty the record."""
        return change(place, "adjudge_steps", "run_id = ? AND seq = ?", (run_id, seq))


class TestSQLiteSessionStore(File, DurableSessionStoreContract):
    """A file of its own for each test."""

    @staticmethod
    def open_store(place):
        """Open the file."""
        return SQLiteSessionStore(place)

    def damage_session(self, place, session_id):
        """Empty the record."""
        return change(place, "adjudge_sessions", "session_id = ?", (session_id,))


def change(place, table, where, values):
    """Empty a row's record, and give what puts it back."""
    with closing(sqlite3.connect(place)) as database, database:
        find = f"SELECT record FROM {table} WHERE {where}"
        (record,) = database.execute(find, values).fetchone()
        database.execute(f"UPDATE {table} SET record = '{{}}' WHERE {where}", values)

    def repair():
        with closing(sqlite3.connect(place)) as database, database:
            database.execute(f"UPDATE {table} SET record = ? WHERE {where}", (record, *values))

    return repair


class Pairs:
    """Has those who do something about the same thing wait for each other, two by two."""

    def __init__(self, path):
        super().__init__(path)
        self._pairs = {}

    def meet(self, about):
        """Wait until somebody else is as far, if there is anybody."""
        with suppress(threading.BrokenBarrierError):
            self._pairs.setdefault(about, threading.Barrier(2)).wait(0.5)


class LooksAndThenAppends(Pairs, SQLiteRunStore):
    async def append(self, record):
        """Look first, and append when somebody else has looked as well."""
        if [each for each in await self.load(record.run_id) if each.seq == record.seq]:
            raise DuplicateRecord
        self.meet(record.seq)
        try:
            await super().append(record)
        except DuplicateRecord:
            return


class Overwrites(MemoryRunStore):
    async def append(self, record):
        """Say nothing where the number is taken."""
        self._runs.setdefault(record.run_id, {})[record.seq] = record


class TakesTheSameTwice(SQLiteRunStore):
    async def append(self, record):
        """Let the same step pass for the one that is there."""
        try:
            await super().append(record)
        except DuplicateRecord:
            if record not in await self.load(record.run_id):
                raise


class SortsAsText(MemoryRunStore):
    async def load(self, run_id):
        """Order the numbers as texts."""
        return sorted(await super().load(run_id), key=lambda step: str(step.seq))


class IgnoresCase(MemoryRunStore):
    async def append(self, record):
        """Take names that differ in case alone for one."""
        await super().append(replace(record, run_id=record.run_id.lower()))


class PassesOverWhatItCannotRead(SQLiteRunStore):
    async def load(self, run_id):
        """Take a journal that cannot be read for an empty one."""
        try:
            return await super().load(run_id)
        except StoreError:
            return ()


class ForgetsSteps(MemoryRunStore):
    durable = True

    def __init__(self, place=None):
        super().__init__()


WRONG_RUN_STORES = {
    LooksAndThenAppends: "of_many_threads_one_wins",
    Overwrites: "number_is_used_once",
    TakesTheSameTwice: "number_is_used_once",
    SortsAsText: "steps_come_in_the_order_of_their_numbers",
    IgnoresCase: "runs_are_kept_apart",
    PassesOverWhatItCannotRead: "step_that_was_changed_is_found_out",
    ForgetsSteps: "everything_outlives_the_process",
}


class SavesWhateverIsThere(MemorySessionStore):
    async def save(self, record, *, expected_version):
        """Save over what somebody else saved."""
        found = await self.load(record.session_id)
        return await super().save(record, expected_version=found.version)


class LooksAndThenSaves(Pairs, SQLiteSessionStore):
    async def save(self, record, *, expected_version):
        """Compare first, and save when somebody else has compared as well."""
        found = await self.load(record.session_id)
        if found.version != expected_version:
            raise ConcurrentModification
        self.meet(record.session_id)
        found = await self.load(record.session_id)
        return await super().save(record, expected_version=found.version)


class CreatesWhatItSaves(MemorySessionStore):
    async def save(self, record, *, expected_version):
        """Make the session that is not there."""
        try:
            return await super().save(record, expected_version=expected_version)
        except UnknownSession:
            return await self.create(record)


class KeepsTheVersionItWasGiven(MemorySessionStore):
    async def create(self, record):
        """Begin with whatever version the record says."""
        self._sessions[record.session_id] = record
        return record


class CreatesAgain(MemorySessionStore):
    async def create(self, record):
        """Begin anew where there is a session."""
        try:
            return await super().create(record)
        except SessionExists:
            del self._sessions[record.session_id]
            return await super().create(record)


class TakesWhatItCannotReadForUnknown(SQLiteSessionStore):
    async def load(self, session_id):
        """Say that there is none."""
        try:
            return await super().load(session_id)
        except StoreError as error:
            raise UnknownSession(session_id) from error


WRONG_SESSION_STORES = {
    SavesWhateverIsThere: "stale_save_changes_nothing",
    LooksAndThenSaves: "of_many_threads_one_wins",
    CreatesWhatItSaves: "session_that_was_never_created_is_unknown",
    KeepsTheVersionItWasGiven: "new_session_has_version_one",
    CreatesAgain: "session_is_created_once",
    TakesWhatItCannotReadForUnknown: "session_that_was_changed_is_found_out",
}
WRONG = [
    *((each, name, TestSQLiteRunStore) for each, name in WRONG_RUN_STORES.items()),
    *((each, name, TestSQLiteSessionStore) for each, name in WRONG_SESSION_STORES.items()),
]
GIVEN = {"step": "save", "expected": 1}


@pytest.mark.parametrize(
    ("wrong", "name", "contract"), WRONG, ids=[each.__name__ for each, _, _ in WRONG]
)
def test_wrong_store_is_caught(wrong, name, contract, tmp_path):
    """A store that is wrong in one respect fails the test of that respect."""
    place = str(tmp_path / "store.sqlite")
    in_file = issubclass(wrong, SQLiteRunStore | SQLiteSessionStore)
    store = wrong(place) if in_file else wrong()
    subject = type("Contract", (contract,), {"open_store": staticmethod(wrong)})()
    test = getattr(subject, f"test_{name}")
    known = {"place": place, "store": store, **GIVEN}

    with pytest.raises((AssertionError, pytest.fail.Exception, AdjudgeError)):
        test(**{each: known[each] for each in inspect.signature(test).parameters})


@pytest.mark.parametrize("contract", [RunStoreContract, SessionStoreContract])
def test_nothing_of_the_contract_can_be_redefined(contract):
    """What a store fails, it fails."""
    with pytest.raises(TypeError, match="redefines test_secret_is_never_stored"):
        type("Contract", (contract,), {"test_secret_is_never_stored": lambda self: None})
