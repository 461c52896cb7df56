"""A server that is restarted, killed or stopped: nothing is lost, nothing is granted twice.

The server is one of this module's own, which `.ci/postgres` starts.
"""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import psycopg
import pytest

from adjudge import (
    ApprovalDecision,
    LedgerError,
    Outcome,
    ToolGuard,
    ToolSet,
    compile_policy,
    pause_approval,
    tool,
)
from adjudge.integration import EntryState
from adjudge_conformance.ledger import ENTRY, NOW
from adjudge_postgres import PostgresLedger

SCRIPT = Path(__file__).parents[3] / ".ci" / "postgres"
SAYS = 'echo "$ADJUDGE_POSTGRES_URL"; echo "$ADJUDGE_POSTGRES_CONTROL"; cat >/dev/null'


class Server:
    """A server that can be done all manner of things to."""

    def __init__(self, url, control):
        self.url = url
        self._control = control
        self._folder = Path(psycopg.conninfo.conninfo_to_dict(url)["host"])

    def control(self, *what):
        """Tell pg_ctl what to do."""
        subprocess.run([self._control, *what, "--silent"], check=True, timeout=60)

    @property
    def process(self):
        """The id of the server's first process."""
        return int((self._folder / "postmaster.pid").read_text("utf-8").split()[0])

    def backends(self):
        """Give the processes that serve a connection of a ledger."""
        with psycopg.connect(self.url) as connection:
            return [
                row[0]
                for row in connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE application_name = 'adjudge'"
                )
            ]


@pytest.fixture(scope="module")
def server():
    """Start a server of our own, which ends with this module."""
    own = {name: value for name, value in os.environ.items() if name != "ADJUDGE_POSTGRES_URL"}
    script = subprocess.Popen(
        [SCRIPT, "bash", "-c", SAYS],
        env=own,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    url, control = (script.stdout.readline().strip() for _ in range(2))
    yield Server(url, control)
    script.communicate(timeout=60)
    assert 0 == script.returncode
    assert not Path(control).exists()


@pytest.fixture
def ledger(server):
    """Open the ledger, emptied, with one entry."""
    with PostgresLedger(server.url, busy_seconds=2) as opened:
        with psycopg.connect(server.url) as connection:
            connection.execute("DELETE FROM adjudge.entries")
        opened.add(ENTRY)
        until(lambda: len(server.backends()) == 1)
        yield opened


def claim(ledger, holder="h"):
    """Claim the entry."""
    return ledger.claim("e1", expected=EntryState.PAUSED, holder=holder, now=NOW)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_is_restarted_has_what_it_had(server, ledger, mode):
    """Whether it was asked to stop or made to, the claim is there and no step fails after it."""
    claimed = claim(ledger)

    server.control("restart", f"--mode={mode}")

    assert claimed == ledger.get("e1")
    assert claim(ledger, "other") is None


def test_a_server_that_is_down_grants_nothing(server, ledger):
    """A step says so; the next one after it is up again goes through."""
    server.control("stop", "--mode=immediate")
    try:
        with pytest.raises(LedgerError):
            claim(ledger)
        with pytest.raises(LedgerError):
            PostgresLedger(server.url)
    finally:
        server.control("start")

    assert claim(ledger) is not None


def test_a_server_that_is_killed_in_a_step_takes_the_step_back(server, ledger):
    """Kill -9 of the process that serves it, while it waits for a lock: not claimed."""
    raised = []

    def step():
        try:
            claim(ledger)
        except LedgerError as error:
            raised.append(error)

    (backend,) = server.backends()
    with psycopg.connect(server.url) as rival:
        rival.execute("SELECT FROM adjudge.entries FOR UPDATE")
        thread = threading.Thread(target=step)
        thread.start()
        until(lambda: _waits(server, backend))
        os.kill(backend, signal.SIGKILL)
        thread.join(30)
        # The whole server starts anew when one of its processes dies, and drops everybody.
        until(lambda: _is_dropped(rival))
    until(lambda: _is_up(server))

    assert 1 == len(raised)
    assert ENTRY == ledger.get("e1")
    assert claim(ledger) is not None


def test_a_server_that_is_stopped_is_not_waited_for(server, ledger):
    """SIGSTOP of the process that serves it: a sentence, in time, and no second claim after it."""
    (backend,) = server.backends()
    os.kill(backend, signal.SIGSTOP)
    began = time.monotonic()
    try:
        with pytest.raises(LedgerError, match="did not answer in time"):
            claim(ledger)
        took = time.monotonic() - began
    finally:
        os.kill(backend, signal.SIGCONT)

    assert took < 8
    assert claim(ledger) is not None


def test_a_call_that_waits_goes_on_after_a_restart(server, ledger):
    """Clause 24: the pause is as durable as the server is."""
    paid = []

    @tool(name="pay")
    def pay(to: str) -> str:
        paid.append(to)
        return "paid"

    def build_guard():
        rules = [{"id": "r0", "match": "always", "decision": "approve_required"}]
        return ToolGuard(
            policy=compile_policy({"version": 1, "rules": rules}),
            tools=ToolSet.from_functions(pay),
            on_approval=pause_approval(ledger),
        )

    waiting = build_guard().check_sync("pay", {"to": "x"})
    server.control("restart", "--mode=immediate")
    grant = ApprovalDecision(True, "ana")

    done = [build_guard().resume_sync(waiting.pending.id, grant).outcome for _ in range(2)]

    assert [Outcome.COMPLETED, Outcome.DENIED] == done
    assert ["x"] == paid


def test_a_call_whose_ledger_is_gone_is_denied(server, ledger):
    """A guard that cannot claim denies by value, and the body does not run."""
    rules = [{"id": "r0", "match": "always", "decision": "approve_required"}]

    @tool(name="pay")
    def pay(to: str) -> str:
        raise AssertionError(to)

    guard = ToolGuard(
        policy=compile_policy({"version": 1, "rules": rules}),
        tools=ToolSet.from_functions(pay),
        on_approval=pause_approval(ledger),
    )
    waiting = guard.check_sync("pay", {"to": "x"})
    server.control("stop", "--mode=immediate")
    try:
        gone = guard.resume_sync(waiting.pending.id, ApprovalDecision(True, "ana"))
        asked = guard.check_sync("pay", {"to": "x"})
    finally:
        server.control("start")

    assert [(Outcome.DENIED, "ledger_failed")] * 2 == [
        (each.outcome, each.result.code) for each in (gone, asked)
    ]


def until(holds):
    """Wait until something holds."""
    limit = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)


def _waits(server, backend):
    with psycopg.connect(server.url) as connection:
        found = connection.execute(
            "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", (backend,)
        ).fetchone()
    return found == ("Lock",)


def _is_dropped(connection):
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        connection.close()
        return True
    return False


def _is_up(server):
    try:
        with psycopg.connect(server.url):
            return True
    except psycopg.OperationalError:
        return False
