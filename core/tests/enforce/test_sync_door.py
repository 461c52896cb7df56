"""The sync door: no caller's loop is used, and everything async runs on the guard's one thread."""

import asyncio
import contextvars
import threading

from adjudge._arguments.proposal import ProposedCall
from adjudge._enforcement.tools import tool
from adjudge._types import ApprovalDecision, CallContext, Outcome, Principal

LOCAL = contextvars.ContextVar("LOCAL", default="unset")


def loop_threads():
    """Count the loop threads that are alive."""
    return sum(thread.name == "adjudge-loop" for thread in threading.enumerate())


def test_without_anything_async_no_thread_is_started(bench):
    """The loop thread is started only when something async needs it."""
    before = loop_threads()
    guard = bench.guard({"decision": "allow"})

    guard.check_sync("note", {"text": "x"})

    assert loop_threads() == before


def test_everything_async_runs_on_one_thread_that_close_ends(bench):
    """Handler, obligation, tool, shadow and context share the guard's thread."""
    names = []

    def here():
        names.append(threading.current_thread().name)

    async def approve(_):
        here()
        return ApprovalDecision(True, "ana")

    async def oblige(*_):
        here()

    async def who():
        here()
        return CallContext(Principal("user", "eve"))

    async def body(_):
        here()

    guard = bench.guard(
        {"decision": "approve_required", "obligations": [{"id": "log", "phase": "pre"}]},
        on_approval=approve,
        obligations={"log": oblige},
    )
    call = guard.govern_call_sync(ProposedCall("f", {}), body, context=who)
    guard.close()

    assert call.outcome is Outcome.COMPLETED
    assert names == ["adjudge-loop"] * 4
    assert loop_threads() == 0


def test_a_closed_guard_can_be_used_again(bench):
    """Closing stops the thread, not the guard."""
    with bench.guard({"decision": "allow"}) as guard:
        guard.check_sync("pay", {"to": "x"})

    assert guard.check_sync("pay", {"to": "y"}).outcome is Outcome.COMPLETED


async def test_it_works_inside_a_running_loop(bench):
    """Clause 31: called from a coroutine, it touches the caller's loop not at all."""
    loops = []

    async def approve(_):
        loops.append(asyncio.get_running_loop())
        return ApprovalDecision(True, "ana")

    guard = bench.guard({"decision": "approve_required"}, on_approval=approve)

    call = guard.check_sync("pay", {"to": "x"})

    assert call.outcome is Outcome.COMPLETED
    assert loops[0] is not asyncio.get_running_loop()


def test_context_variables_reach_what_runs_elsewhere(bench):
    """A ContextVar that the caller set is seen by handlers, sync and async."""
    seen = []

    def approve(_):
        seen.append(LOCAL.get())
        return ApprovalDecision(True, "ana")

    async def oblige(*_):
        seen.append(LOCAL.get())

    guard = bench.guard(
        {"decision": "approve_required", "obligations": [{"id": "log", "phase": "pre"}]},
        on_approval=approve,
        obligations={"log": oblige},
    )
    token = LOCAL.set("mine")
    guard.check_sync("note", {"text": "x"})
    LOCAL.reset(token)

    assert seen == ["mine", "mine"]


def test_on_its_own_loop_thread_it_denies_rather_than_waits_for_ever(bench):
    """A handler that uses the sync door of its own guard is told so instead of hanging."""
    guards = []

    async def approve(_):
        inner = guards[0].check_sync("pay", {"to": "inner"})
        return ApprovalDecision(inner.result.ok, "ana", inner.result.error or "")

    guard = bench.guard(
        {"match": {"args.to": "inner"}, "decision": "allow"},
        {"decision": "approve_required"},
        on_approval=approve,
    )
    guards.append(guard)

    call = guard.check_sync("pay", {"to": "outer"})

    assert call.outcome is Outcome.DENIED
    assert "own loop thread" in call.text
    assert bench.ran == []


def test_a_sync_tool_runs_in_the_callers_thread(bench):
    """What is bound to a thread, such as a database connection, stays usable."""
    threads = []

    @tool()
    def where():
        threads.append(threading.current_thread())

    bench.guard({"decision": "allow"}, tools=[where]).check_sync("where", {})

    assert threads == [threading.current_thread()]


def test_close_ends_what_still_runs(bench):
    """A handler that is still waiting when the guard is closed is cancelled."""
    ended = threading.Event()

    async def approve(_):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    guard = bench.guard(
        {"decision": "approve_required", "timeout_seconds": 0.02}, on_approval=approve
    )

    call = guard.check_sync("note", {"text": "x"})
    guard.close()

    assert call.result.code == "approval_timed_out"
    assert ended.wait(5)


def test_many_threads_share_one_guard(bench):
    """Numbers are unique, events of a call stay in order, and nothing crosses over."""
    guard = bench.guard({"decision": "allow"})
    results = {}

    def run(name):
        for turn in range(20):
            text = f"{name}/{turn}"
            results[text] = guard.check_sync("note", {"text": text}).result.value

    pool = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    by_call = {}
    for event in bench.events:
        by_call.setdefault(event.seq, []).append(event)

    assert results == {text: text for text in results}
    assert len(by_call) == 8 * 20
    for events in by_call.values():
        kinds = [event.kind for event in events]
        assert kinds == ["step.proposed", "policy.evaluated", "action.completed"]
    proposed = {events[0].seq: events[0].body["args"]["text"] for events in by_call.values()}
    assert sorted(proposed.values()) == sorted(results)
