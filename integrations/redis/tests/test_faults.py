"""What goes wrong on the way to the server, and there: a sentence, no grant, and no secret."""

import threading
import time
import traceback
import warnings
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
import redis

from adjudge import (
    DuplicateRecord,
    EphemeralStoreWarning,
    LedgerError,
    Outcome,
    StoreError,
    ToolGuard,
    ToolSet,
    compile_policy,
    pause_approval,
    tool,
)
from adjudge.integration import EntryState
from adjudge_conformance.ledger import ENTRY
from adjudge_conformance.relay import Relay
from adjudge_conformance.run_stores import STEP
from adjudge_conformance.servers import ServerLedgerContract
from adjudge_conformance.session_stores import SESSION
from adjudge_redis import RedisLedger, RedisRunStore, RedisSessionStore

DOORS = [RedisLedger, RedisRunStore, RedisSessionStore]


def address(url):
    """Give where the server of a URL listens: the path of a socket, or a host and a port."""
    parts = urlsplit(url)
    return parts.path if parts.scheme == "unix" else (parts.hostname, parts.port or 6379)


@pytest.fixture
def relay(url):
    """Stand between the ledger and the server."""
    with Relay(address(url)) as between:
        yield between


@pytest.fixture
def through(relay):
    """Name the server by way of the relay."""
    return f"redis://127.0.0.1:{relay.port}"


@pytest.fixture
def options(prefix):
    """Keep what there is under the test's own prefix."""
    return {"prefix": prefix}


class TestConnections(ServerLedgerContract):
    ledger_class = RedisLedger
    # It looks at the entry before it claims it, and was not answered.
    late = (EntryState.PAUSED,)


# Nobody there, or nobody who answers


@pytest.mark.parametrize("door", DOORS)
def test_a_server_that_is_not_there_is_named(door, tmp_path):
    """The sentence says where it was looked for, and opening it fails at once."""
    with pytest.raises(LedgerError if door is RedisLedger else StoreError, match=str(tmp_path)):
        door(f"unix://{tmp_path}/socket")


async def test_a_command_whose_answer_is_lost_is_not_sent_again(relay, through, url, prefix):
    """A second try would meet the first one's step, and call it a rival's."""
    store = RedisRunStore(through, prefix=prefix, busy_seconds=0.5)
    await store.load("run")
    relay.hold()

    with pytest.raises(StoreError):
        await store.append(STEP)

    relay.release()
    near = RedisRunStore(url, prefix=prefix)
    until(lambda: near._load("run"))
    assert (STEP,) == await near.load("run")
    with pytest.raises(DuplicateRecord):
        await store.append(STEP)
    assert 2 == relay.taken


async def test_a_way_that_was_cut_is_found_again(relay, through, prefix):
    """The server was restarted, or a firewall forgot: the next step opens another connection."""
    store = RedisSessionStore(through, prefix=prefix)
    await store.create(SESSION)
    relay.cut()

    assert await store.exists("s") is True


def test_no_free_connection_is_waited_for_so_long(relay, through, prefix):
    """All of them stuck: the step fails with a sentence."""
    narrow = RedisLedger(through, prefix=prefix, connections=1, busy_seconds=0.5)
    narrow.add(ENTRY)
    relay.hold()
    errors = []

    def use():
        try:
            narrow.get("e1")
        except BaseException as error:
            errors.append(type(error))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert [LedgerError] * 4 == errors


def until(holds):
    """Wait until something holds."""
    limit = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)


# A server that forgets


@pytest.fixture
def settings(server):
    """Set what is asked for, and set it back."""
    names = ("appendonly", "appendfsync", "maxmemory", "maxmemory-policy")
    before = {name: server.config_get(name)[name] for name in names}
    yield lambda name, value: server.config_set(name, value)
    for name, value in before.items():
        server.config_set(name, value)


@pytest.mark.parametrize("door", DOORS)
def test_a_server_that_keeps_what_it_acknowledges_is_durable(door, url, prefix):
    """With appendonly yes, appendfsync always and nothing evicted."""
    assert door(url, prefix=prefix).durable is True


FORGETS = {
    "no append-only file": [("appendonly", "no")],
    "before a write is on its disk": [("appendfsync", "everysec")],
    "drops keys": [("maxmemory", "1gb"), ("maxmemory-policy", "allkeys-lru")],
}


@pytest.mark.parametrize("why", FORGETS)
def test_a_server_that_may_forget_is_not_durable(url, prefix, settings, why):
    """And whoever opens it is warned, in the line that does so."""
    for name, value in FORGETS[why]:
        settings(name, value)

    with pytest.warns(EphemeralStoreWarning, match=why) as warned:
        ledger = RedisLedger(url, prefix=prefix)

    assert ledger.durable is False
    assert [__file__] == [each.filename for each in warned]


def test_a_server_that_drops_only_what_expires_is_durable(url, prefix, settings):
    """None of our keys has a time to live."""
    settings("maxmemory", "1gb")
    settings("maxmemory-policy", "volatile-lru")

    assert RedisLedger(url, prefix=prefix).durable is True


def test_a_server_that_does_not_say_is_not_durable(server, as_user, user, prefix):
    """Whoever knows better says so, and is not warned."""
    server.execute_command("ACL", "SETUSER", user, "-config|get")

    with pytest.warns(EphemeralStoreWarning, match="does not tell"):
        assert RedisRunStore(as_user, prefix=prefix).durable is False

    assert RedisRunStore(as_user, prefix=prefix, durable=True).durable is True
    assert RedisRunStore(as_user, prefix=prefix, durable=False).durable is False


# What is given is checked


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("connections", 0, ValueError),
        ("connections", True, ValueError),
        ("connect_seconds", 0, ValueError),
        ("connect_seconds", "10", TypeError),
        ("busy_seconds", -1, ValueError),
        ("busy_seconds", True, TypeError),
        ("busy_seconds", 10**6, ValueError),
        ("prefix", "", ValueError),
        ("durable", 1, TypeError),
    ],
)
def test_what_cannot_be_is_refused(url, name, value, error):
    """The sentence names the parameter."""
    with pytest.raises(error, match=name):
        RedisLedger(url, **{name: value})


BAD_URLS = [
    "",
    "localhost:6379",
    "http://ana:hunter2@host",
    "redis://ana:hunter2@host:port",
    "redis://ana:hun/ter2@host:70000",
    "redis://[::1",
]


@pytest.mark.parametrize("bad", BAD_URLS)
def test_a_url_that_cannot_be_read_is_not_shown(bad):
    """There may be a password in it."""
    with pytest.raises(LedgerError) as raised:
        RedisLedger(bad, connect_seconds=1)

    told = "".join(traceback.format_exception(raised.value))
    assert "hun" not in str(raised.value)
    assert "hunter2" not in told


def test_a_password_is_in_no_error(url, server, prefix):
    """A server that refuses it says who was refused, and not with what."""
    wrong = f"unix://ana:hunter2@{address(url)}"

    with pytest.raises(StoreError) as raised:
        RedisRunStore(wrong, prefix=prefix)

    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


async def test_an_argument_is_in_no_error(server, as_user, user, prefix):
    """A command that is refused is named without what it was to write."""
    store = RedisRunStore(as_user, prefix=prefix)
    step = replace(STEP, body={"card": "4242"})
    server.execute_command("ACL", "SETUSER", user, "-hsetnx")

    with pytest.raises(StoreError) as raised:
        await store.append(step)

    assert "hsetnx" in str(raised.value)
    assert "4242" not in "".join(traceback.format_exception(raised.value))


def test_an_argument_of_an_unknown_command_is_in_no_error(url, prefix):
    """The server says how the arguments begin; we do not."""
    store = RedisRunStore(url, prefix=prefix)

    with pytest.raises(StoreError) as raised:
        store._server.do(lambda client: client.execute_command("NOSUCH", "4242"))

    assert "NOSUCH" in str(raised.value)
    assert "4242" not in str(raised.value)


# A guard


def test_a_guard_whose_ledger_is_gone_denies(as_user, server, user, prefix):
    """Law 4: the call does not run, and the record says why."""
    ran = []

    @tool(reversible=False)
    def pay(to: str) -> str:
        """Pay somebody."""
        ran.append(to)
        return "paid"

    rules = [{"id": "ask", "match": {"tool": "pay"}, "decision": "approve_required"}]
    guard = ToolGuard(
        policy=compile_policy({"version": 1, "rules": rules}),
        tools=ToolSet.from_functions(pay),
        on_approval=pause_approval(RedisLedger(as_user, prefix=prefix)),
    )
    server.execute_command("ACL", "DELUSER", user)

    asked = guard.check_sync("pay", {"to": "x"})

    assert (Outcome.DENIED, "ledger_failed") == (asked.outcome, asked.result.code)
    assert [] == ran


def test_opening_warns_of_nothing_else(url, prefix):
    """Neither this package nor the client that it uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RedisLedger(url, prefix=prefix).get("e1") is None
        assert redis.__version__
