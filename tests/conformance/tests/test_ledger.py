"""Core's ledger in a file passes the contract of ledgers, and wrong ledgers do not."""

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge import LedgerError, MemoryLedger, SQLiteLedger
from adjudge.integration import EntryState
from adjudge_conformance.ledger import LedgerContract


class TestSQLiteLedger(LedgerContract):
    """A file of its own for each test."""

    rounds = 10

    @staticmethod
    def open_ledger(place):
        """Open the file."""
        return SQLiteLedger(place)

    @pytest.fixture
    def place(self, tmp_path):
        """Name a file that is not there yet."""
        return str(tmp_path / "ledger.sqlite")

    def damage_entry(self, place, id):
        """Empty the record."""
        with closing(sqlite3.connect(place)) as database, database:
            (record,) = database.execute(
                "SELECT record FROM adjudge_entries WHERE id = ?", (id,)
            ).fetchone()
            database.execute("UPDATE adjudge_entries SET record = '{}' WHERE id = ?", (id,))

        def repair():
            with closing(sqlite3.connect(place)) as database, database:
                database.execute("UPDATE adjudge_entries SET record = ? WHERE id = ?", (record, id))

        return repair

    def damage_store(self, place):
        """Put something else in the place of the file."""
        for path in Path(place).parent.iterdir():
            path.write_bytes(b"something else" * 1000)


class ClaimsWithoutLooking(SQLiteLedger):
    def claim(self, id, *, expected, holder, now):
        """Take the entry, whoever has it."""
        taken = super().claim(id, expected=expected, holder=holder, now=now)
        return taken or replace(self.get(id), state=EntryState.CLAIMED, holder=holder)


class LooksAndThenClaims(SQLiteLedger):
    def claim(self, id, *, expected, holder, now):
        """Look first, and take it a moment later."""
        free = self.get(id).state is expected
        time.sleep(0.01)
        taken = super().claim(id, expected=expected, holder=holder, now=now)
        return taken or (self.get(id) if free else None)


class Overwrites(SQLiteLedger):
    def add(self, entry):
        """Say nothing where the id is taken."""
        try:
            super().add(entry)
        except LedgerError:
            return


class ForgetsResults(SQLiteLedger):
    def settle(self, id, *, result=None, **how):
        """Keep all but the result."""
        return super().settle(id, **how)


class LetsAnybodySettle(SQLiteLedger):
    def settle(self, id, *, holder, **how):
        """Settle in the name of whoever has it."""
        return super().settle(id, holder=self.get(id).holder, **how)


class EndsWhatHasBegun(SQLiteLedger):
    def claim(self, id, *, expected, holder, now):
        """Refuse what has expired, begun or not."""
        if self.get(id).expires_at <= now:
            return None
        return super().claim(id, expected=expected, holder=holder, now=now)


class ToldTheWrongTime(SQLiteLedger):
    def claim(self, id, *, expected, holder, now):
        """Drop the zone of the caller's clock."""
        return super().claim(id, expected=expected, holder=holder, now=now.replace(tzinfo=None))


class KeepsTwoOfOneClick(SQLiteLedger):
    def answer(self, id, answer, *, now):
        """Take the same grant for another's."""
        again = replace(answer, approver=f"{answer.approver} at {time.monotonic()}")
        return super().answer(id, again, now=now)


class TakesWhatItCannotRead(SQLiteLedger):
    def get(self, id):
        """Pass over what is no entry."""
        try:
            return super().get(id)
        except LedgerError:
            return None


class Forgets(MemoryLedger):
    durable = True

    def __init__(self, place):
        super().__init__()


CAUGHT = {
    ClaimsWithoutLooking: ("claim_succeeds_once", {}),
    LooksAndThenClaims: ("of_many_threads_one_wins", {"step": "claim"}),
    Overwrites: ("id_is_used_once", {}),
    ForgetsResults: ("result_is_kept_as_it_was", {}),
    LetsAnybodySettle: ("only_the_holder_settles", {}),
    EndsWhatHasBegun: ("body_that_has_begun_goes_on_whenever", {}),
    ToldTheWrongTime: ("entry_expires_to_the_microsecond", {}),
    KeepsTwoOfOneClick: ("call_is_answered_once_each_has_granted", {}),
    TakesWhatItCannotRead: ("entry_that_was_changed_grants_nothing", {"place": True}),
    Forgets: ("everything_outlives_the_process", {"place": True}),
}


@pytest.mark.parametrize("wrong", CAUGHT, ids=lambda wrong: wrong.__name__)
def test_wrong_ledger_is_caught(wrong, tmp_path):
    """A ledger that is wrong in one respect fails the test of that respect."""
    contract = type("Contract", (TestSQLiteLedger,), {"open_ledger": staticmethod(wrong)})()
    name, given = CAUGHT[wrong]
    place = str(tmp_path / "ledger.sqlite")
    if "place" in given or "step" in given:
        given = {**given, "place": place}

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(contract, f"test_{name}")(ledger=wrong(place), **given)


def test_nothing_of_the_contract_can_be_redefined():
    """What a ledger fails, it fails."""
    with pytest.raises(TypeError, match="redefines test_claim_succeeds_once"):
        type("Contract", (LedgerContract,), {"test_claim_succeeds_once": lambda self: None})
