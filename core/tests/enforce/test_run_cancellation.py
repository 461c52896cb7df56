"""A cancellation at each step of a run that can pause: nothing is lost, nothing runs twice."""

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from adjudge._arguments.proposal import ProposedCall
from adjudge._enforcement.approvals import pause_approval
from adjudge._enforcement.runs import GovernedRun
from adjudge._enforcement.tools import tool
from adjudge._ledger.entries import EntryState, MemoryLedger
from adjudge._ledger.sqlite import SQLiteLedger
from adjudge._types import ApprovalDecision, Outcome

ASK = {"match": {"tool": "pay"}, "decision": "approve_required"}
ALLOW = {"decision": "allow"}
GRANT = ApprovalDecision(True, "ana", "fine")


class Suspended(BaseException):
    """How the framework leaves a body whose inside waits."""


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request, tmp_path):
    """Make an empty ledger of each kind."""
    if request.param == "memory":
        return MemoryLedger()
    return SQLiteLedger(tmp_path / "ledger.sqlite")


@pytest.fixture
def guard(bench, ledger):
    """A guard that pauses."""
    return bench.guard(ASK, ALLOW, on_approval=pause_approval(ledger))


@pytest.fixture
def pay(bench):
    """A body that counts."""

    async def pay(effective):
        bench.ran.append(effective.args)
        return "paid"

    return pay


def call_of(run, **changed):
    """Propose to pay."""
    return ProposedCall("pay", {"to": "x"}, call_id="c1", run=run, **changed)


@asynccontextmanager
async def cancelled_in(ledger, operation, running):
    """Cancel what runs while the ledger is at an operation, which then goes through."""
    reached, release = threading.Event(), threading.Event()
    right = getattr(ledger, operation)

    def slow(*args, **kwargs):
        reached.set()
        assert release.wait(10)
        return right(*args, **kwargs)

    setattr(ledger, operation, slow)
    task = asyncio.ensure_future(running)
    assert await asyncio.to_thread(reached.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    setattr(ledger, operation, right)
    yield


async def granted(guard, ledger, run, pay):
    """Have what waits in a run granted, and go on with it in a run that is opened again."""
    waiting = await guard.waiting(run.id)
    again = await guard.reopen({pending.id: GRANT for pending in waiting})
    return await guard.govern_call(call_of(again), pay)


@pytest.mark.parametrize("point", ["look", "body"])
async def test_while_the_call_is_entered(bench, guard, ledger, pay, point):
    """The call has ended as cancelled and waits for nobody; proposed again it is a new one."""
    run = GovernedRun()
    running = (
        guard.pause_call(call_of(run)) if point == "look" else guard.govern_call(call_of(run), pay)
    )

    async with cancelled_in(ledger, "add", running):
        (entry,) = ledger.of_run(run.id)
        waiting = await guard.waiting(run.id)
    await guard.govern_call(call_of(run), pay)
    done = await granted(guard, ledger, run, pay)

    assert (EntryState.FINISHED, "cancelled") == (entry.state, entry.outcome)
    assert ((), ()) == (waiting, run.entries[1:])
    assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))
    assert ["action.cancelled", "action.completed"] == bench.terminals


@pytest.mark.parametrize("operation", ["get", "answer", "of_run"])
async def test_while_the_run_is_opened_again(bench, guard, ledger, pay, operation):
    """The answers can be given again, or count already: the call goes on once."""
    run = GovernedRun()
    pending = (await guard.govern_call(call_of(run), pay)).pending

    async with cancelled_in(ledger, operation, guard.reopen({pending.id: GRANT})):
        again = await guard.reopen({pending.id: GRANT})
    done = await guard.govern_call(call_of(again), pay)

    assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))


async def test_while_the_call_is_claimed(bench, guard, ledger, pay):
    """The claim is given back: the call still has its answers, and goes on later."""
    run = GovernedRun()
    pending = (await guard.govern_call(call_of(run), pay)).pending
    first, second = [await guard.reopen({pending.id: GRANT}) for _ in range(2)]

    async with cancelled_in(ledger, "claim", guard.govern_call(call_of(first), pay)):
        entry = ledger.get(pending.id)
    done = await guard.govern_call(call_of(second), pay)

    assert (EntryState.ANSWERED, (GRANT,)) == (entry.state, entry.answers)
    assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))
    assert ["action.completed"] == bench.terminals


async def test_while_the_end_is_put_down(bench, guard, ledger, pay):
    """The body has run: the entry is finished, the record says so, and it never runs again."""
    run = GovernedRun()
    pending = (await guard.govern_call(call_of(run), pay)).pending
    first, second = [await guard.reopen({pending.id: GRANT}) for _ in range(2)]

    async with cancelled_in(ledger, "settle", guard.govern_call(call_of(first), pay)):
        entry = ledger.get(pending.id)
    again = await guard.govern_call(call_of(second), pay)

    assert (EntryState.FINISHED, "completed") == (entry.state, entry.outcome)
    assert ("approval_spent", 1) == (again.result.code, len(bench.ran))
    assert ["action.completed", "action.denied"] == bench.terminals


class TestSuspended:
    @staticmethod
    async def _suspend(_):
        raise Suspended

    def _outer(self, run):
        return ProposedCall("ask", {}, call_id="c0", run=run, control_flow=(Suspended,))

    async def _begin(self, guard, run):
        with pytest.raises(Suspended):
            await guard.govern_call(self._outer(run), self._suspend)

    async def test_while_it_is_claimed(self, bench, guard, ledger, pay):
        """The claim is given back: the body still waits, and is entered again later."""
        run = GovernedRun()
        await self._begin(guard, run)
        first, second = [GovernedRun(run.id, ledger.of_run(run.id)) for _ in range(2)]

        async with cancelled_in(ledger, "claim", guard.govern_call(self._outer(first), pay)):
            (entry,) = ledger.of_run(run.id)
        done = await guard.govern_call(self._outer(second), pay)

        assert EntryState.SUSPENDED is entry.state
        assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))
        assert ["action.completed"] == bench.terminals

    @pytest.mark.parametrize("operation", ["add", "settle"])
    async def test_while_it_is_put_down(self, bench, guard, ledger, pay, operation):
        """Cancelled is cancelled: there is one terminal event, and no body is entered again."""
        run = GovernedRun()
        if operation == "settle":
            await self._begin(guard, run)
            run = GovernedRun(run.id, ledger.of_run(run.id))
        running = guard.govern_call(self._outer(run), self._suspend)

        async with cancelled_in(ledger, operation, running):
            entries = ledger.of_run(run.id)
        again = GovernedRun(run.id, entries)
        await guard.govern_call(self._outer(again), pay)

        assert [(EntryState.FINISHED, "cancelled")] == [(e.state, e.outcome) for e in entries]
        assert ["action.cancelled"] == bench.terminals[:1]
        assert [] == bench.ran


async def test_in_the_body(bench, guard, ledger):
    """A body that is cancelled has ended so, and its grant is used up."""
    run, reached = GovernedRun(), asyncio.Event()

    async def wait(effective):
        bench.ran.append(effective.args)
        reached.set()
        await asyncio.Event().wait()

    pending = (await guard.govern_call(call_of(run), wait)).pending
    first, second = [await guard.reopen({pending.id: GRANT}) for _ in range(2)]
    task = asyncio.ensure_future(guard.govern_call(call_of(first), wait))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    again = await guard.govern_call(replace(call_of(second)), wait)

    assert ("cancelled", "approval_spent") == (ledger.get(pending.id).outcome, again.result.code)
    assert 1 == len(bench.ran)


class InPlace:
    """A sink that is called at once, so that it is when a coroutine is closed."""

    never_blocks = True

    def __init__(self, bench):
        self._bench = bench

    def __call__(self, event):
        """Keep an event."""
        self._bench.sink(event)


class TestClosing:
    """A coroutine that is closed can await nothing, and still puts down what became of the call."""

    @staticmethod
    def _guard(bench, ledger, **settings):
        return bench.guard(
            ASK, ALLOW, on_approval=pause_approval(ledger), sinks=[InPlace(bench)], **settings
        )

    async def test_in_the_body(self, bench, ledger):
        """Its grant is used up, and nobody runs it again."""
        guard, run = self._guard(bench, ledger), GovernedRun()
        entered = asyncio.Event()

        async def wait(effective):
            bench.ran.append(effective.args)
            entered.set()
            await asyncio.Event().wait()

        pending = (await guard.govern_call(call_of(run), wait)).pending
        first, second = [await guard.reopen({pending.id: GRANT}) for _ in range(2)]
        await closed(guard.govern_call(call_of(first), wait), entered)
        again = await guard.govern_call(call_of(second), wait)

        assert "cancelled" == ledger.get(pending.id).outcome
        assert ("approval_spent", 1) == (again.result.code, len(bench.ran))
        assert ["action.cancelled", "action.denied"] == bench.terminals

    async def test_a_paused_call_of_check(self, bench, ledger):
        """Clause 24: what `resume` began and was closed has ended, and its grant is used up."""
        entered = asyncio.Event()

        @tool(name="pay")
        async def wait(to: str):
            bench.ran.append(to)
            entered.set()
            await asyncio.Event().wait()

        guard = self._guard(bench, ledger, tools=[wait])
        pending = (await guard.check("pay", {"to": "x"})).pending
        await closed(guard.resume(pending.id, GRANT), entered)
        again = await guard.resume(pending.id, GRANT)

        assert ("cancelled", ["x"]) == (ledger.get(pending.id).outcome, bench.ran)
        assert "approval_spent" == again.result.code
        assert ["action.cancelled", "action.denied"] == bench.terminals

    async def test_while_who_is_calling_is_asked(self, bench, ledger, pay):
        """The call was not claimed yet, and keeps its answer."""
        guard, run = self._guard(bench, ledger), GovernedRun()
        asked = asyncio.Event()

        async def who():
            asked.set()
            await asyncio.Event().wait()

        pending = (await guard.govern_call(call_of(run), pay)).pending
        again = await guard.reopen({pending.id: GRANT})
        await closed(guard.govern_call(call_of(again), pay, context=who), asked)
        entry = ledger.get(pending.id)

        assert (EntryState.ANSWERED, None) == (entry.state, entry.outcome)
        assert [] == bench.ran

    async def test_with_a_ledger_that_must_be_awaited(self, bench, pay):
        """What cannot be put down stays claimed, is on record, and never runs again."""

        class Async(MemoryLedger):
            async def settle(self, *args, **kwargs):
                return MemoryLedger.settle(self, *args, **kwargs)

        ledger = Async()
        guard, run, entered = self._guard(bench, ledger), GovernedRun(), asyncio.Event()

        async def wait(_):
            entered.set()
            await asyncio.Event().wait()

        pending = (await guard.govern_call(call_of(run), pay)).pending
        first, second = [await guard.reopen({pending.id: GRANT}) for _ in range(2)]
        await closed(guard.govern_call(call_of(first), wait), entered)
        again = await guard.govern_call(call_of(second), pay)

        assert ("uncertain", []) == (again.result.code, bench.ran)
        assert ["action.cancelled", "action.denied"] == bench.terminals


async def closed(running, reached):
    """Run a coroutine until it has come somewhere, and close it there."""
    task = asyncio.ensure_future(running)
    await reached.wait()
    running.close()
    task.cancel()
    with pytest.raises((RuntimeError, asyncio.CancelledError)):
        await task
