"""The ledger: one claim, no grant after expiry, nothing taken on trust."""

import functools
import sqlite3
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from adjudge._ledger.codec import decode_entry, encode_entry
from adjudge._ledger.entries import EntryState, LedgerEntry, MemoryLedger
from adjudge._ledger.sqlite import SQLiteLedger
from adjudge._types import Principal
from adjudge._values import FrozenDict, OpaqueValue, freeze_object
from adjudge.errors import LedgerError

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request, tmp_path):
    """Make an empty ledger of each kind."""
    if request.param == "memory":
        return MemoryLedger()
    return SQLiteLedger(tmp_path / "ledger.sqlite")


def entry(**changed):
    """Make an entry that waits for a minute from `NOW`."""
    fields = {
        "id": "e1",
        "tool": "pay",
        "namespace": None,
        "args": FrozenDict({"to": "x"}),
        "digest": "0" * 64,
        "principal": Principal("user", "eve"),
        "occurrence": "run/0/1",
        "policy_id": "p",
        "matched_rules": ("r0",),
        "approver_sets": (("ana", "bo"),),
        "correlation_id": "run",
        "seq": 0,
        "call_id": None,
        "attempt": 1,
        "environment": None,
        "workspace": ".",
        "extra": FrozenDict(),
        "session": None,
        "injected": FrozenDict(),
        "expires_at": NOW + timedelta(seconds=60),
        "state": EntryState.PAUSED,
    }
    return LedgerEntry(**{**fields, **changed})


def claim(ledger, holder="h", now=NOW, expected=EntryState.PAUSED):
    """Claim the entry."""
    return ledger.claim("e1", expected=expected, holder=holder, now=now)


def test_an_entry_comes_back_as_it_was_added(ledger):
    """What is stored is what is read, numbers exact and keys untouched."""
    added = entry(
        args=FrozenDict({"$decimal": "1", "n": Decimal("1.10"), "i": 1, "f": 1.0, "b": True}),
        session=FrozenDict({"labels": FrozenDict()}),
        environment="prod",
    )
    ledger.add(added)

    found = ledger.get("e1")

    assert found == added
    assert str(found.args["n"]) == "1.10"
    assert type(found.args["f"]) is float


def test_an_id_is_used_once(ledger):
    """Adding an id again is an error, not a replacement."""
    ledger.add(entry())

    with pytest.raises(LedgerError):
        ledger.add(entry(tool="other"))

    assert ledger.get("e1").tool == "pay"


def test_a_claim_succeeds_once(ledger):
    """Clause 22: claimed atomically, once."""
    ledger.add(entry())

    first, second = claim(ledger, "h1"), claim(ledger, "h2")

    assert (first.state, first.holder) == (EntryState.CLAIMED, "h1")
    assert second is None
    assert ledger.get("e1").holder == "h1"


def test_of_many_threads_one_claims(ledger):
    """Any number of claimants at once: exactly one wins."""
    ledger.add(entry())
    won = []
    start = threading.Barrier(8)

    def run(name):
        start.wait()
        if claim(ledger, name) is not None:
            won.append(name)

    threads = [threading.Thread(target=run, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(won) == 1
    assert ledger.get("e1").holder == won[0]


@pytest.mark.parametrize("place", range(8))
def test_a_claim_in_the_middle_of_a_claim_leaves_one_winner(place, tmp_path, monkeypatch):
    """Clause 22: whenever a rival gets a chance during a claim, one of the two has the entry."""
    path = tmp_path / "ledger.sqlite"
    ledger, rival = SQLiteLedger(path), SQLiteLedger(path)
    ledger.add(entry())
    chances = iter(range(100))
    won = []

    class Interrupted(sqlite3.Connection):
        def execute(self, *args):
            if not self.in_transaction and next(chances) == place:
                won.append(claim(rival, "rival"))
            return super().execute(*args)

    connect = functools.partial(sqlite3.connect, factory=Interrupted)
    monkeypatch.setattr(sqlite3, "connect", connect)

    won.append(claim(ledger, "h"))

    assert sum(each is not None for each in won) == 1


def test_an_expired_entry_is_never_claimed(ledger):
    """Expired from its very second on."""
    ledger.add(entry())

    assert claim(ledger, now=NOW + timedelta(seconds=60)) is None
    assert claim(ledger, now=NOW + timedelta(seconds=59)) is not None


def test_an_entry_expires_once(ledger):
    """Whoever finishes an expired entry first is told so, the others not."""
    ledger.add(entry())
    late = NOW + timedelta(seconds=60)

    early, first, second = (ledger.expire("e1", now=now) for now in (NOW, late, late))

    assert (early, first, second) == (False, True, False)
    assert (ledger.get("e1").state, ledger.get("e1").outcome) == (EntryState.FINISHED, "expired")


def test_a_claimed_entry_does_not_expire(ledger):
    """What was started is not ended by the clock."""
    ledger.add(entry())
    claim(ledger)

    assert ledger.expire("e1", now=NOW + timedelta(days=1)) is False


def test_only_the_expected_state_is_claimed(ledger):
    """An entry that a handler is being asked about cannot be resumed."""
    ledger.add(entry(state=EntryState.ASKED))

    assert claim(ledger) is None
    assert claim(ledger, expected=EntryState.ASKED) is not None


def test_only_the_holder_settles(ledger):
    """Somebody else's claim cannot be finished or given back."""
    ledger.add(entry())
    claim(ledger, "h1")
    how = {"state": EntryState.FINISHED, "grants": (), "outcome": "completed"}

    other, own, again = (ledger.settle("e1", holder=h, **how) for h in ("h2", "h1", "h1"))

    assert (other, own, again) == (False, True, False)
    assert ledger.get("e1").outcome == "completed"


def test_an_entry_that_is_given_back_can_be_claimed_again(ledger):
    """Between two approver sets the entry waits again, with the grants so far."""
    ledger.add(entry())
    claim(ledger, "h1")
    ledger.settle("e1", holder="h1", state=EntryState.PAUSED, grants=("ana",), outcome=None)

    found = claim(ledger, "h2")

    assert (found.grants, found.holder) == (("ana",), "h2")


def test_a_finished_entry_keeps_what_its_call_gave(ledger):
    """What is to be given again is read as it was settled, and is frozen."""
    ledger.add(entry())
    claim(ledger)
    how = {"state": EntryState.FINISHED, "grants": (), "outcome": "completed"}
    ledger.settle("e1", holder="h", **how, result=freeze_object({"gave": "1", "n": 1.5}))

    assert {"gave": "1", "n": 1.5} == ledger.get("e1").result
    assert isinstance(ledger.get("e1").result, FrozenDict)


def test_an_entry_can_be_added_finished(ledger):
    """A denial is kept in one step."""
    done = entry(
        state=EntryState.FINISHED, holder="h1", outcome="denied", result=FrozenDict({"code": "x"})
    )
    ledger.add(done)

    assert done == ledger.get("e1")


def test_nothing_is_found_under_an_unknown_id(ledger):
    """An id that is not there gives nothing, and raises nothing."""
    assert ledger.get("nope") is None
    assert ledger.claim("nope", expected=EntryState.PAUSED, holder="h", now=NOW) is None
    assert ledger.expire("nope", now=NOW) is False


@pytest.fixture
def stored(tmp_path):
    """A SQLite ledger that holds an entry, and a way to change its row."""
    path = tmp_path / "ledger.sqlite"
    ledger = SQLiteLedger(path)
    ledger.add(entry())

    def change(column, value):
        database = sqlite3.connect(path)
        with database:
            database.execute(f"UPDATE adjudge_entries SET {column} = ?", (value,))
        database.close()

    return ledger, change


CORRUPT = [
    ("state", "approved"),
    ("state", b"paused"),
    ("grants", '"ana"'),
    ("grants", "[1]"),
    ("grants", '["ana", "bo", "cy"]'),
    ("grants", "{"),
    ("holder", 7),
    ("outcome", "granted"),
    ("outcome", "completed"),
    ("expires_at", "never"),
    ("record", "{"),
    ("record", "[]"),
    ("record", b"{}"),
    ("result", "{"),
    ("result", "[]"),
    ("result", b"{}"),
    ("result", '{"$pickle": "x"}'),
    ("result", "{}"),
]


@pytest.mark.parametrize(("column", "value"), CORRUPT, ids=[f"{c}-{v!r}" for c, v in CORRUPT])
def test_a_row_that_was_changed_grants_nothing(stored, column, value):
    """Fault B017: a changed row raises LedgerError, which names the field."""
    ledger, change = stored
    change(column, value)

    with pytest.raises(LedgerError, match=column) as raised:
        ledger.get("e1")

    assert raised.value.code == "ledger"


def test_a_claim_of_a_changed_row_is_taken_back(stored):
    """An entry that cannot be read is not claimed either."""
    ledger, change = stored
    change("record", "{}")
    with pytest.raises(LedgerError):
        claim(ledger)
    change("record", encode_entry(entry()))

    assert ledger.get("e1").state is EntryState.PAUSED


DAMAGE = {
    "version": 2,
    "id": "e2",
    "tool": None,
    "namespace": 1,
    "args": [],
    "digest": "x",
    "principal": {"kind": "root", "id": "eve", "name": None},
    "occurrence": 1,
    "policy_id": None,
    "matched_rules": "r0",
    "approver_sets": [["ana"], "bo"],
    "correlation_id": 1,
    "seq": True,
    "call_id": 1,
    "attempt": -1,
    "environment": [],
    "workspace": None,
    "extra": None,
    "session": [],
    "injected": "x",
    "surplus": 1,
}


@pytest.mark.parametrize("field", DAMAGE)
def test_a_record_with_a_bad_field_is_refused_by_name(field):
    """Fault B017: every field is checked, and the error names the one that is wrong."""
    import json

    fields = json.loads(encode_entry(entry()))
    fields[field] = DAMAGE[field]

    with pytest.raises(LedgerError, match=f"its {field} "):
        decode(json.dumps(fields))


@pytest.mark.parametrize("field", sorted(DAMAGE.keys() - {"surplus"}))
def test_a_record_without_a_field_is_refused_by_name(field):
    """A field that is missing is named."""
    import json

    fields = json.loads(encode_entry(entry()))
    del fields[field]

    with pytest.raises(LedgerError, match=f"its {field} "):
        decode(json.dumps(fields))


@pytest.mark.parametrize(
    "args",
    ['{"$pickle": "x"}', '{"$decimal": "NaN"}', '{"$decimal": "x"}', '{"a": 1, "a": 2}', "NaN"],
)
def test_a_record_with_odd_arguments_is_refused(args):
    """No tag but a decimal's is understood, and nothing executable is."""
    text = encode_entry(entry(args=FrozenDict({"marker": 1}))).replace('{"marker":1}', args)

    with pytest.raises(LedgerError):
        decode(text)


def decode(text):
    """Read a record as of a paused entry."""
    return decode_entry(
        "e1",
        text,
        expires_at=NOW,
        state="paused",
        grants=[],
        answers="[]",
        holder=None,
        outcome=None,
        result=None,
    )


def test_secrets_are_never_stored():
    """An argument that is a secret cannot be entered."""
    with pytest.raises(LedgerError):
        encode_entry(entry(args=FrozenDict({"key": OpaqueValue()})))


def test_a_text_that_looks_like_a_secret_is_none():
    """Only the marker itself counts as a secret."""
    looks = entry(args=FrozenDict({"x": '{"$secret":true}', "$secret": True}))

    assert decode(encode_entry(looks)).args == looks.args


def test_the_file_is_readable_by_its_owner_alone(tmp_path):
    """The arguments of paused calls are nobody else's business."""
    path = tmp_path / "ledger.sqlite"
    SQLiteLedger(path)

    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("path", [":memory:", "", "/no/such/folder/ledger.sqlite"])
def test_a_path_that_cannot_hold_a_ledger_is_refused(path):
    """A durable ledger is a file, and says so."""
    with pytest.raises(LedgerError):
        SQLiteLedger(path)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    """Something else under that path is an error, not an empty ledger."""
    path = tmp_path / "ledger.sqlite"
    path.write_text("something else, long enough to be no header of a database at all" * 20)

    with pytest.raises(LedgerError):
        SQLiteLedger(path)
