"""The ledger and the stores pass their contracts, on a real server."""

import json
from contextlib import suppress

import pytest

from adjudge import ApprovalDecision, LedgerError, StoreError
from adjudge.integration import EntryState
from adjudge_conformance.ledger import ENTRY, NOW, LedgerContract
from adjudge_conformance.run_stores import STEP, DurableRunStoreContract
from adjudge_conformance.session_stores import SESSION, DurableSessionStoreContract
from adjudge_redis import RedisLedger, RedisRunStore, RedisSessionStore


class OnServer:
    """A user of its own for each test, who may not do more than the guide says."""

    rounds = 20

    @pytest.fixture
    def place(self, server, user, as_user, prefix):
        """Name the server as the user does, and the prefix."""
        self.server, self.user, self.prefix = server, user, prefix
        return json.dumps([as_user, prefix])

    def damage_store(self, place):
        """Take the user away, and with it their connections."""
        self.server.execute_command("ACL", "DELUSER", self.user)

    def empty(self, kind, field):
        """Empty a field, and give what puts it back."""
        key = f"{self.prefix}:{kind}"
        kept = self.server.hget(key, field)
        self.server.hset(key, field, "{}")
        return lambda: self.server.hset(key, field, kept)


def opened(door, place):
    """Open a ledger or a store as a user, under a prefix."""
    url, prefix = json.loads(place)
    return door(url, prefix=prefix)


class TestRedisLedger(OnServer, LedgerContract):
    """The ledger."""

    @staticmethod
    def open_ledger(place):
        """Open it."""
        return opened(RedisLedger, place)

    def damage_entry(self, place, id):
        """Empty the record."""
        return self.empty(f"entry:{id}", "record")


class TestRedisRunStore(OnServer, DurableRunStoreContract):
    """The run store."""

    @staticmethod
    def open_store(place):
        """Open it."""
        return opened(RedisRunStore, place)

    def damage_step(self, place, run_id, seq):
        """Empty the record."""
        return self.empty(f"steps:{run_id}", str(seq))


class TestRedisSessionStore(OnServer, DurableSessionStoreContract):
    """The session store."""

    @staticmethod
    def open_store(place):
        """Open it."""
        return opened(RedisSessionStore, place)

    def damage_session(self, place, session_id):
        """Empty the record."""
        return self.empty(f"session:{session_id}", "record")


GOOD = json.dumps({"approver": "ana", "edited_args": None, "granted": True, "reason": ""})
CHANGED = {
    "record": ["{", "[]", "", b"\xff"],
    "state": ["approved", "", "PAUSED", "finished", "claimed"],
    "grants": ["{", '"ana"', "[1]", '["ana", "bo"]', "[" * 100_000],
    "answers": ["", "{}", "[true]", f"[{GOOD},{GOOD}]", f"[{GOOD.replace('true', '1')}]"],
    "holder": ["somebody", ""],
    "outcome": ["granted", "completed"],
    "result": ["{}", "[", "7"],
    "expires_at": ["", "inf", "9" * 18, "-1", "1" * 17, "1" * 19],
    "unknown": ["x"],
}
EACH = [(field, value) for field, values in CHANGED.items() for value in values]
IDS = [f"{field}-{number}" for number, (field, _) in enumerate(EACH)]


@pytest.mark.parametrize(("field", "value"), EACH, ids=IDS)
def test_entry_that_was_changed_grants_nothing(url, server, prefix, field, value):
    """Fault B017: it raises `LedgerError` where it is read, and nothing takes it."""
    ledger = RedisLedger(url, prefix=prefix)
    ledger.add(ENTRY)
    key = f"{prefix}:entry:e1"
    server.hset(key, field, value)
    before = server.hgetall(key)

    for read in (
        lambda: ledger.get("e1"),
        lambda: ledger.of_run("run"),
        lambda: ledger.answer("e1", ApprovalDecision(True, "ana"), now=NOW),
    ):
        with pytest.raises(LedgerError):
            read()
    with suppress(LedgerError):
        assert ledger.claim("e1", expected=EntryState.PAUSED, holder="h", now=NOW) is None

    assert before == server.hgetall(key)


@pytest.mark.parametrize("field", ["record", "expires_at", "state", "grants", "answers"])
def test_entry_that_lacks_something_grants_nothing(url, server, prefix, field):
    """Fault B017: a hash with a field too few is no entry."""
    ledger = RedisLedger(url, prefix=prefix)
    ledger.add(ENTRY)
    server.hdel(f"{prefix}:entry:e1", field)

    with pytest.raises(LedgerError, match=field):
        ledger.get("e1")


def test_run_whose_entry_was_deleted_is_found_out(url, server, prefix):
    """It raises, and is not taken for one in which nothing waits."""
    ledger = RedisLedger(url, prefix=prefix)
    ledger.add(ENTRY)
    server.delete(f"{prefix}:entry:e1")

    with pytest.raises(LedgerError):
        ledger.of_run("run")


@pytest.mark.parametrize("seq", ["x", "", "-1", "00", "0.0", "1", "9" * 17, b"\xff"])
async def test_step_under_another_number_is_found_out(url, server, prefix, seq):
    """What a number means is in the step as well."""
    store = RedisRunStore(url, prefix=prefix)
    await store.append(STEP)
    key = f"{prefix}:steps:run"
    server.hset(key, seq, server.hget(key, "0"))

    with pytest.raises(StoreError):
        await store.load("run")


@pytest.mark.parametrize("change", [("version", "2"), ("version", "x"), ("record", b"\xff")])
async def test_session_at_another_version_is_found_out(url, server, prefix, change):
    """What its version is is in the session as well."""
    store = RedisSessionStore(url, prefix=prefix)
    await store.create(SESSION)
    server.hset(f"{prefix}:session:s", *change)

    with pytest.raises(StoreError):
        await store.load("s")


@pytest.mark.parametrize("change", [("hdel", "record"), ("hdel", "version"), ("hset", "more", "x")])
async def test_session_with_other_fields_is_found_out(url, server, prefix, change):
    """One too few or too many: it is no session."""
    store = RedisSessionStore(url, prefix=prefix)
    await store.create(SESSION)
    getattr(server, change[0])(f"{prefix}:session:s", *change[1:])

    with pytest.raises(StoreError):
        await store.load("s")


@pytest.mark.parametrize("kind", ["entry:e1", "steps:run", "session:s"])
async def test_key_of_another_type_is_found_out(url, server, prefix, kind):
    """Somebody else's key under our name is an error, and nothing is written to it."""
    server.set(f"{prefix}:{kind}", "x")
    uses = {
        "entry:e1": (LedgerError, lambda: RedisLedger(url, prefix=prefix).get("e1")),
        "steps:run": (StoreError, lambda: RedisRunStore(url, prefix=prefix).append(STEP)),
        "session:s": (StoreError, lambda: RedisSessionStore(url, prefix=prefix).create(SESSION)),
    }
    error, use = uses[kind]

    with pytest.raises(error, match="WRONGTYPE"):
        await use()

    assert b"x" == server.get(f"{prefix}:{kind}")
