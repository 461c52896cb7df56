"""The key of a call, by which it is known again in another process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adjudge._arguments.proposal import ProposedCall
from adjudge._enforcement.approvals import auto_approve
from adjudge._ledger.entries import MemoryLedger
from adjudge._ledger.keys import ledger_key

CALL = {"run": "r1", "tool": "pay", "args": {"to": "ana", "amount": 1}, "call_id": "c1"}
ASK = {"decision": "approve_required"}


def test_is_the_same_in_every_process():
    """A key depends on the call alone, the order of its arguments apart."""
    script = (
        "from adjudge.integration import ledger_key\n"
        "print(ledger_key(run='r1', tool='pay', call_id='c1', args={'amount': 1, 'to': 'ana'}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    assert ledger_key(**CALL) == told.stdout.strip()


@pytest.mark.parametrize(
    "other",
    [
        {"run": "r2"},
        {"tool": "refund"},
        {"args": {"to": "eve", "amount": 1}},
        {"args": {"to": "ana", "amount": 1.0}},
        {"namespace": "bank"},
        {"call_id": "c2"},
        {"call_id": None},
        {"agent": "helper"},
        {"task": "t"},
        {"occurrence": 2},
    ],
    ids=str,
)
def test_another_call_has_another_key(other):
    """Fault X037: a provider's call id alone names no call."""
    assert ledger_key(**CALL) != ledger_key(**{**CALL, **other})


async def test_binds_what_is_asked_to_the_call(bench, govern):
    """Clause 22: the digest and the ledger's entry are of the keyed call, whichever guard asks."""
    digests = []
    for key in ("k1", "k1", "k2"):
        ledger = MemoryLedger()
        guard = bench.guard(ASK, on_approval=auto_approve(), ledger=ledger)
        await govern(guard, ProposedCall("f", {}, key=key), lambda _: "ran")
        digests.append(bench.body("approval.requested")["digest"])
        bench.events.clear()

    assert digests[0] == digests[1]
    assert digests[0] != digests[2]
