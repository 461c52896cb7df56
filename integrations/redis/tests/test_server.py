"""A server that is killed, restarted or stopped: nothing is lost, nothing is granted twice.

The server is one of this module's own, which `.ci/redis` starts.
"""

import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from adjudge import DuplicateRecord, LedgerError, StoreError, step_record_to_json
from adjudge.integration import EntryState
from adjudge_conformance.ledger import ENTRY, NOW
from adjudge_conformance.run_stores import STEP
from adjudge_conformance.session_stores import SESSION
from adjudge_redis import RedisLedger, RedisRunStore, RedisSessionStore

SCRIPT = Path(__file__).parents[3] / ".ci" / "redis"
SAYS = 'echo "$ADJUDGE_REDIS_URL"; echo "$ADJUDGE_REDIS_CONTROL"; cat >/dev/null'


class Server:
    """A server that can be done all manner of things to."""

    def __init__(self, url, control):
        self.url = url
        self._control = control

    def control(self, what):
        """Start, stop or kill it."""
        subprocess.run([self._control, what], check=True, timeout=60)

    @property
    def process(self):
        """The id of the server's process."""
        return int((Path(urlsplit(self.url).path).parent / "pid").read_text("utf-8"))


def started():
    """Start the script, and give it with what it says."""
    own = {name: value for name, value in os.environ.items() if name != "ADJUDGE_REDIS_URL"}
    script = subprocess.Popen(
        [SCRIPT, "bash", "-c", SAYS],
        env=own,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    url, control = (script.stdout.readline().strip() for _ in range(2))
    return script, Server(url, control)


@pytest.fixture(scope="module")
def server():
    """Start a server of our own, which ends with this module."""
    script, own = started()
    yield own
    script.communicate(timeout=60)
    assert 0 == script.returncode
    assert not Path(own._control).exists()


@pytest.fixture
def prefix(request):
    """Name a prefix by the test."""
    return request.node.name


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_what_was_acknowledged_outlives_the_server(server, prefix, how):
    """Entries, claims, steps and sessions are there after it has crashed, or was restarted."""
    ledger = RedisLedger(server.url, prefix=prefix)
    journal = RedisRunStore(server.url, prefix=prefix)
    sessions = RedisSessionStore(server.url, prefix=prefix)
    ledger.add(ENTRY)
    ledger.claim("e1", expected=EntryState.PAUSED, holder="h", now=NOW)
    await journal.append(STEP)
    await sessions.create(SESSION)

    server.control(how)
    server.control("start")

    assert replace(ENTRY, state=EntryState.CLAIMED, holder="h") == ledger.get("e1")
    assert (STEP,) == await journal.load("run")
    assert 1 == (await sessions.load("s")).version
    with pytest.raises(DuplicateRecord):
        await journal.append(STEP)


async def test_a_server_that_is_down_is_said_to_be(server, prefix):
    """Nothing is granted meanwhile, and all goes on when it is up again."""
    ledger = RedisLedger(server.url, prefix=prefix)
    journal = RedisRunStore(server.url, prefix=prefix)
    ledger.add(ENTRY)
    server.control("stop")
    try:
        with pytest.raises(LedgerError):
            ledger.claim("e1", expected=EntryState.PAUSED, holder="h", now=NOW)
        with pytest.raises(StoreError):
            await journal.append(STEP)
    finally:
        server.control("start")

    assert () == await journal.load("run")
    assert ledger.claim("e1", expected=EntryState.PAUSED, holder="h", now=NOW) is not None


async def test_a_server_that_is_stopped_is_not_waited_for(server, prefix):
    """Fault: a server that hangs. The append ends in its time, and what it wrote is told later."""
    store = RedisRunStore(server.url, prefix=prefix, busy_seconds=0.5)
    await store.load("run")
    os.kill(server.process, signal.SIGSTOP)
    began = time.monotonic()
    try:
        with pytest.raises(StoreError, match="imeout"):
            await store.append(STEP)
        took = time.monotonic() - began
    finally:
        os.kill(server.process, signal.SIGCONT)

    assert took < 4
    assert await store.load("run") in ((), (STEP,))


async def test_a_crash_in_the_middle_leaves_no_gap(server, prefix):
    """The server is killed while steps are appended: what was acknowledged is there, in order."""
    store = RedisRunStore(server.url, prefix=prefix)
    acknowledged = []

    def append_all():
        for seq in range(100_000):
            try:
                store._append(*_step(seq))
            except StoreError:
                return
            acknowledged.append(seq)

    thread = threading.Thread(target=append_all)
    thread.start()
    until(lambda: len(acknowledged) >= 50)
    server.control("kill")
    thread.join(60)
    server.control("start")

    kept = [step.seq for step in await store.load("run")]
    assert acknowledged == kept[: len(acknowledged)]
    assert kept in (acknowledged, [*acknowledged, len(acknowledged)])


def _step(seq):
    step = replace(STEP, seq=seq)
    return step, step_record_to_json(step)


def test_a_script_that_is_killed_leaves_no_server_behind():
    """Neither its process nor its folder."""
    script, own = started()
    process, folder = own.process, Path(own._control).parent

    os.kill(script.pid, signal.SIGKILL)
    script.stdin.close()
    script.stdout.close()
    script.wait(60)

    until(lambda: not folder.exists())
    until(lambda: not _lives(process))


def _lives(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_server_that_is_given_is_used(server):
    """With ADJUDGE_REDIS_URL set, the script starts none."""
    ran = subprocess.run(
        [SCRIPT, "bash", "-c", 'echo "$ADJUDGE_REDIS_URL${ADJUDGE_REDIS_CONTROL:-}"'],
        env={**os.environ, "ADJUDGE_REDIS_URL": server.url, "ADJUDGE_REDIS_CONTROL": ""},
        capture_output=True,
        text=True,
        check=True,
    )

    assert f"{server.url}\n" == ran.stdout
    assert redis.Redis.from_url(server.url).ping() is True


def until(holds):
    """Wait until something holds."""
    limit = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)
