"""What a ledger on a server owes besides `LedgerContract`: connections, and a network that fails.

    class TestConnections(ServerLedgerContract):
        ledger_class = AcmeLedger

The test module has three fixtures: `relay`, a `Relay` before the server; `through`, the server's
URL by way of it; `options`, keywords of the ledger, with which it opens an empty store.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from adjudge import LedgerError
from adjudge.integration import EntryState
from adjudge_conformance._contract import Contract
from adjudge_conformance._steps import ENTRY, NOW
from adjudge_conformance.relay import Relay

__all__ = ["ServerLedgerContract"]

Options = Mapping[str, Any]

_HASTY: Options = {"busy_seconds": 0.5, "connect_seconds": 2}
_A_WHILE = 5.0
"""Seconds that a busy machine may add."""

_FORKING = """
import os, sys
from dataclasses import replace
from adjudge_conformance.ledger import ENTRY
from {module} import {name}
ledger = {name}({url!r}, **{options!r})
ledger.add(ENTRY)
children = []
for n in range(3):
    child = os.fork()
    if not child:
        for m in range(20):
            ledger.add(replace(ENTRY, id=f"{{n}} {{m}}"))
        sys.exit(0 if ledger.get("e1") == ENTRY else 1)
    children.append(child)
for m in range(20):
    ledger.add(replace(ENTRY, id=f"parent {{m}}"))
assert [0] * 3 == [os.waitpid(child, 0)[1] for child in children]
assert ledger.get("e1") == ENTRY
print(len(ledger.of_run("run")))
"""


class ServerLedgerContract(Contract):
    """Subclass it, and name the ledger.

    `ledger_class` takes a URL, `busy_seconds`, `connect_seconds` and `connections`. `late` are the
    states in which a claim may leave its entry that reached the server after it was given up.
    """

    ledger_class: ClassVar[Any]
    late: ClassVar[Collection[EntryState]] = (EntryState.PAUSED, EntryState.CLAIMED)

    def test_a_server_that_falls_silent_is_waited_for_so_long(
        self, relay: Relay, through: str, options: Options
    ) -> None:
        """Fault: a server that hangs. The step ends in its time, with a sentence, and no grant."""
        ledger = self.ledger_class(through, **options, **_HASTY)
        ledger.add(ENTRY)
        relay.hold()
        began = time.monotonic()

        with pytest.raises(LedgerError, match=r"in time|[Tt]imeout"):
            ledger.claim("e1", expected=EntryState.PAUSED, holder="h", now=NOW)

        assert time.monotonic() - began < 1.5 + _A_WHILE
        relay.release()
        assert ledger.get("e1").state in self.late

    def test_a_server_that_never_says_a_word_is_given_up(
        self, relay: Relay, through: str, options: Options
    ) -> None:
        """Opening is bounded as well."""
        relay.hold()
        began = time.monotonic()

        with pytest.raises(LedgerError, match=r"[Tt]imeout"):
            self.ledger_class(through, **options, **_HASTY)

        assert time.monotonic() - began < 2 + _A_WHILE

    def test_connections_are_kept(self, relay: Relay, through: str, options: Options) -> None:
        """A step after another opens no new one; after `close` it does."""
        ledger = self.ledger_class(through, **options)
        ledger.add(ENTRY)
        assert 1 == relay.taken

        with ledger:
            ledger.get("e1")

        assert ENTRY == ledger.get("e1")
        assert 2 == relay.taken

    def test_more_steps_than_connections_wait_for_each_other(
        self, relay: Relay, through: str, options: Options
    ) -> None:
        """Twenty at once with two connections, and all are done."""
        ledger = self.ledger_class(through, connections=2, **options)
        threads = [
            threading.Thread(target=ledger.add, args=(replace(ENTRY, id=f"e{n}"),))
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert 20 == len(ledger.of_run("run"))
        assert relay.taken <= 2

    def test_a_fork_does_not_share_its_parents_connections(
        self, relay: Relay, through: str, options: Options
    ) -> None:
        """Both go on with their ledger, in whatever order, and the parent's outlives the child."""
        kind = self.ledger_class
        names = {"module": kind.__module__, "name": kind.__name__}
        program = _FORKING.format(**names, url=through, options=dict(options))

        ran = subprocess.run(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ,
            timeout=60,
        )

        assert ("81\n", "", 0) == (ran.stdout, ran.stderr, ran.returncode)
        assert 4 == relay.taken
