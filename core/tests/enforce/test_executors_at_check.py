"""Executors and isolation at `check` (clause 32)."""

import pytest

from adjudge._enforcement.tools import tool
from adjudge._executors.routing import inline_executor, route_executor
from adjudge._types import ActionResult, Outcome


@pytest.fixture
def boxed(bench):
    """A tool that wants isolation."""

    @tool(isolation="container")
    async def boxed(x: int = 1):
        bench.ran.append(x)
        return x

    return boxed


async def test_an_isolation_without_an_executor_denies(bench, check, boxed):
    """A tool is never run somewhere else than it asked for."""
    guard = bench.guard({"decision": "allow"}, tools=[boxed])

    call = await check(guard, "boxed", {})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "isolation_unrouted")
    assert bench.ran == []


async def test_an_executor_gets_the_effective_arguments(bench, check, boxed):
    """The executor runs what was judged, and sees the isolation."""
    seen = []

    async def execute(request, definition):
        seen.append((dict(request.args), definition.metadata.isolation))
        return await inline_executor()(request, definition)

    guard = bench.guard(
        {"decision": "transform", "transform": {"path": "args.x", "set": 3}},
        tools=[boxed],
        executor=route_executor({"container": execute}),
    )

    call = await check(guard, "boxed", {})

    assert (call.outcome, call.result.value) == (Outcome.COMPLETED, 3)
    assert seen == [({"x": 3}, "container")]


async def test_the_policy_can_ask_for_isolation(bench, check):
    """What `tools:` in the policy says of a tool reaches the executor."""
    from adjudge.policy import compile_policy

    seen = []

    async def execute(_request, definition):
        seen.append(definition.metadata.isolation)
        return ActionResult(True, "ran")

    policy = compile_policy(
        {
            "version": 1,
            "tools": {"note": {"isolation": "vm"}},
            "rules": [{"id": "r", "match": "always", "decision": "allow"}],
        }
    )
    guard = bench.guard(policy=policy, executor=execute)

    call = await check(guard, "note", {"text": "x"})

    assert (call.result.value, seen) == ("ran", ["vm"])


@pytest.mark.parametrize(
    "answer", ["done", None, True, {"ok": True}, ActionResult("yes")], ids=repr
)
async def test_an_executor_that_answers_oddly_failed(bench, check, answer):
    """Only an ActionResult whose `ok` is a bool says that a body succeeded."""

    async def execute(_request, _definition):
        return answer

    guard = bench.guard({"decision": "allow"}, executor=execute)

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.code) == (Outcome.FAILED, "executor_failed")
    assert bench.terminals == ["action.failed"]


@pytest.mark.parametrize("lasted", [float("nan"), float("inf"), 1e308, 10**400, -1, None, "1"])
async def test_a_duration_that_is_none_loses_no_result(bench, check, lasted):
    """Law 7: a body that has run ends on record, however long its executor says that it took."""

    @tool()
    async def look():
        """Look."""

    async def execute(_request, _definition):
        return ActionResult(True, "seen", duration_ms=lasted)

    guard = bench.guard({"decision": "allow"}, tools=[look], executor=execute)

    call = await check(guard, "look", {})

    assert ("seen", ["action.completed"]) == (call.result.value, bench.terminals)
    assert 0 <= call.result.duration_ms < 60_000


async def test_an_executor_that_raises_failed(bench, check):
    """An executor's exception is a failed call."""

    async def execute(_request, _definition):
        raise OSError("no daemon")

    guard = bench.guard({"decision": "allow"}, executor=execute)

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.error) == (Outcome.FAILED, "OSError: no daemon")


async def test_a_preview_needs_no_executor(bench, check):
    """Shadows run in the process."""

    async def execute(_request, _definition):
        raise AssertionError("not for previews")

    guard = bench.guard({"decision": "dry_run"}, executor=execute)

    call = await check(guard, "pay", {"to": "x"})

    assert call.outcome is Outcome.PREVIEWED
