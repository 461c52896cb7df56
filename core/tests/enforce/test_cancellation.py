"""A cancellation at any point goes through, is on record once, and runs nothing more."""

import asyncio
import threading

import pytest

from adjudge._arguments.proposal import ProposedCall
from adjudge._enforcement.approvals import auto_approve
from adjudge._enforcement.tools import tool
from adjudge._ledger.entries import EntryState, MemoryLedger
from adjudge._types import ApprovalDecision, CallContext, Principal


class Gate:
    """Holds whoever comes through until it is opened, and says when somebody came."""

    def __init__(self):
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, *_args, **_kwargs):
        """Come to the gate, and wait."""
        self.reached.set()
        await self.opened.wait()


async def cancel_at(gate, running):
    """Cancel a call once it has come to the gate."""
    task = asyncio.ensure_future(running)
    await gate.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_in_the_body(bench):
    """Cancelled while the body runs: action.cancelled, and the body was told."""
    gate = Gate()

    @tool()
    async def wait():
        await gate()

    guard = bench.guard({"decision": "allow"}, tools=[wait])

    await cancel_at(gate, guard.check("wait", {}))

    assert bench.terminals == ["action.cancelled"]
    assert bench.last.body["started"] is True


async def test_while_a_person_is_asked(bench):
    """Cancelled while a handler is asked: nothing runs, and the handler is cancelled too."""
    gate = Gate()
    guard = bench.guard({"decision": "approve_required"}, on_approval=gate)

    await cancel_at(gate, guard.check("note", {"text": "x"}))

    assert bench.ran == []
    assert bench.terminals == ["action.cancelled"]


async def test_while_the_context_is_asked(bench):
    """Cancelled before anything is known: proposed and cancelled are both on record."""
    gate = Gate()
    guard = bench.guard({"decision": "allow"})

    async def run(_):
        bench.ran.append(1)

    await cancel_at(gate, guard.govern_call(ProposedCall("f", {}), run, context=gate))

    assert bench.ran == []
    assert bench.kinds == ["step.proposed", "action.cancelled"]


async def test_in_a_shadow(bench):
    """Cancelled while the shadow runs."""
    gate = Gate()
    guard = bench.guard({"decision": "dry_run"}, shadows={"note": gate})

    await cancel_at(gate, guard.check("note", {"text": "x"}))

    assert bench.terminals == ["action.cancelled"]


async def test_in_an_obligation_before_the_body(bench):
    """Cancelled while a `pre` obligation runs: the body never does."""
    gate = Gate()
    guard = bench.guard(
        {"decision": "allow", "obligations": [{"id": "log", "phase": "pre"}]},
        obligations={"log": gate},
    )

    await cancel_at(gate, guard.check("note", {"text": "x"}))

    assert bench.ran == []
    assert bench.terminals == ["action.cancelled"]


async def test_in_an_obligation_after_the_body(bench):
    """Cancelled after the body has ended: the record says what the body came to."""
    gate = Gate()
    guard = bench.guard(
        {"decision": "allow", "obligations": [{"id": "log", "phase": "post"}]},
        obligations={"log": gate},
    )

    await cancel_at(gate, guard.check("note", {"text": "x"}))

    assert bench.ran == [{"text": "x"}]
    assert bench.terminals == ["action.completed"]


@pytest.mark.parametrize(
    "kind", ["step.proposed", "policy.evaluated", "action.completed", "action.denied"]
)
async def test_while_an_event_is_written(bench, kind):
    """Cancelled in the middle of any write: each event arrives, and the terminal one is single."""
    gate = Gate()

    async def sink(event):
        bench.sink(event)
        if event.kind == kind:
            await gate()

    guard = bench.guard(
        {"match": {"args.text": "no"}, "decision": "deny"}, {"decision": "allow"}, sinks=[sink]
    )
    text = "no" if kind == "action.denied" else "yes"
    task = asyncio.ensure_future(guard.check("note", {"text": text}))
    await gate.reached.wait()
    task.cancel()
    gate.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(bench.terminals) == 1
    if kind in ("step.proposed", "policy.evaluated"):
        assert (bench.ran, bench.terminals) == ([], ["action.cancelled"])
    else:
        assert bench.terminals == [kind]


async def test_a_cancelled_ask_leaves_no_grant_behind(bench):
    """Clause 22: the ledger's entry of a cancelled call is finished and grants nothing."""
    gate = Gate()
    ledger = MemoryLedger()
    guard = bench.guard({"decision": "approve_required"}, on_approval=gate, ledger=ledger)

    await cancel_at(gate, guard.check("note", {"text": "x"}))
    entry = ledger.get(bench.body("approval.requested")["approval_id"])
    late = await guard.resume(entry.id, ApprovalDecision(True, "ana"))

    assert (entry.state, entry.outcome) == (EntryState.FINISHED, "cancelled")
    assert (late.result.code, bench.ran) == ("approval_spent", [])


async def test_cancelled_in_the_middle_of_a_claim_the_entry_is_finished(bench):
    """A claim that goes through although its caller was cancelled is finished as cancelled."""
    reached, release = threading.Event(), threading.Event()

    class Slow(MemoryLedger):
        def claim(self, *args, **kwargs):
            reached.set()
            release.wait(5)
            return super().claim(*args, **kwargs)

    ledger = Slow()
    guard = bench.guard({"decision": "approve_required"}, on_approval=auto_approve(), ledger=ledger)
    task = asyncio.ensure_future(guard.check("note", {"text": "x"}))
    await asyncio.to_thread(reached.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    entry = ledger.get(bench.body("approval.requested")["approval_id"])

    assert bench.ran == []
    assert (entry.state, entry.outcome) == (EntryState.FINISHED, "cancelled")


async def test_a_body_that_cancels_itself_counts_as_cancelled(bench):
    """A CancelledError of the body's own passes unchanged, as it would without a guard."""
    error = asyncio.CancelledError("mine")

    async def run(_):
        raise error

    guard = bench.guard({"decision": "allow"})
    with pytest.raises(asyncio.CancelledError) as raised:
        await guard.govern_call(ProposedCall("f", {}), run)

    assert raised.value is error
    assert bench.terminals == ["action.cancelled"]


async def test_a_handler_that_is_cancelled_from_inside_is_a_failed_handler(bench):
    """Fault B027: a handler that raises CancelledError denies; the call itself goes on."""

    async def handler(_):
        raise asyncio.CancelledError

    guard = bench.guard({"decision": "approve_required"}, on_approval=handler)

    call = await guard.check("note", {"text": "x"})

    assert call.result.code == "approval_failed"
    assert bench.ran == []


async def test_a_timeout_around_a_call_works_as_ever(bench):
    """`asyncio.timeout` around a governed call sees its own cancellation."""

    @tool()
    async def wait():
        await asyncio.Event().wait()

    guard = bench.guard({"decision": "allow"}, tools=[wait])

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await guard.check("wait", {})

    assert bench.terminals == ["action.cancelled"]


async def test_context_of_this_call_is_its_own(bench):
    """Two calls at once never see each other's principal."""
    guard = bench.guard({"decision": "allow"})
    seen = {}

    async def call(name):
        async def who():
            await asyncio.sleep(0)
            return CallContext(Principal("user", name))

        async def run(_):
            await asyncio.sleep(0)

        governed = await guard.govern_call(ProposedCall("f", {}), run, context=who)
        seen[name] = governed.request.context.principal.id

    await asyncio.gather(*(call(f"p{n}") for n in range(20)))

    assert seen == {f"p{n}": f"p{n}" for n in range(20)}


async def test_twice_while_the_ledger_is_written(bench):
    """Law 7: a second cancellation, in the middle of settling the entry, costs no event."""
    body, settling = Gate(), Gate()

    class SlowLedger(MemoryLedger):
        async def settle(self, *args, **kwargs):
            await settling()
            return MemoryLedger.settle(self, *args, **kwargs)

    @tool()
    async def wait():
        await body()

    guard = bench.guard(
        {"decision": "approve_required"},
        tools=[wait],
        on_approval=auto_approve(),
        ledger=SlowLedger(),
    )
    task = asyncio.ensure_future(guard.check("wait", {}))
    await body.reached.wait()
    task.cancel()
    await settling.reached.wait()
    task.cancel()
    settling.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert bench.terminals == ["action.cancelled"]
