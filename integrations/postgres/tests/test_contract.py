"""The ledger passes the contract of ledgers, on a real server."""

import json
import os
from contextlib import suppress

import pytest

from adjudge import ApprovalDecision, LedgerError
from adjudge.integration import EntryState
from adjudge_conformance.ledger import ENTRY, NOW, LedgerContract
from adjudge_postgres import PostgresLedger


class TestPostgresLedger(LedgerContract):
    """A schema of its own for each test."""

    @staticmethod
    def open_ledger(place):
        """Open the ledger of a schema."""
        return PostgresLedger(os.environ["ADJUDGE_POSTGRES_URL"], schema=place)

    @pytest.fixture
    def place(self, schema, execute):
        """Name the schema."""
        self.execute = execute
        return schema

    def damage_entry(self, place, id):
        """Empty the record."""
        change = "UPDATE {schema}.entries SET record = %s WHERE id = %s"
        find = "SELECT record FROM {schema}.entries WHERE id = %s"
        ((record,),) = self.execute(find, id, schema=place)
        self.execute(change, "{}", id, schema=place)
        return lambda: self.execute(change, record, id, schema=place)

    def damage_store(self, place):
        """Put another table in the place of the ledger's."""
        self.execute("ALTER TABLE {schema}.entries DROP COLUMN state", schema=place)


GOOD = json.dumps({"approver": "ana", "edited_args": None, "granted": True, "reason": ""})
CHANGED = {
    "record": ["{", "[]", ""],
    "state": ["approved", "", "PAUSED", "finished", "claimed"],
    "grants": ["{", '"ana"', "[1]", '["ana", "bo"]', "[" * 100_000],
    "answers": ["", "{}", "[true]", f"[{GOOD},{GOOD}]", f"[{GOOD.replace('true', '1')}]"],
    "holder": ["somebody"],
    "outcome": ["granted", "completed"],
    "result": ["{}", "[", "7"],
    "expires_at": ["infinity", "-infinity"],
}


EACH = [(column, value) for column, values in CHANGED.items() for value in values]
IDS = [f"{column}-{number}" for number, (column, _) in enumerate(EACH)]


@pytest.mark.parametrize(("column", "value"), EACH, ids=IDS)
def test_row_that_was_changed_grants_nothing(url, schema, execute, column, value):
    """Fault B017: it raises `LedgerError` where it is read, and nothing takes it."""
    ledger = PostgresLedger(url, schema=schema)
    ledger.add(ENTRY)
    execute(f"UPDATE {{schema}}.entries SET {column} = %s", value, schema=schema)

    for read in (
        lambda: ledger.get("e1"),
        lambda: ledger.of_run("run"),
        lambda: ledger.answer("e1", ApprovalDecision(True, "ana"), now=NOW),
    ):
        with pytest.raises(LedgerError):
            read()
    with suppress(LedgerError):
        assert ledger.claim("e1", expected=EntryState.PAUSED, holder="h", now=NOW) is None

    kept = execute(f"SELECT {column}::text, answers FROM {{schema}}.entries", schema=schema)
    assert [(value, value if column == "answers" else "[]")] == kept
