"""Sinks that must take the record, and sinks that need not (design, section 5)."""

import pytest

from adjudge._enforcement.approvals import auto_approve
from adjudge._record.sinks import required_sink
from adjudge._types import Outcome


class Breakable:
    """A sink that fails for some kinds of event."""

    def __init__(self, bench, *kinds):
        self._bench = bench
        self.kinds = set(kinds)

    def __call__(self, event):
        """Take the event, or fail."""
        if event.kind in self.kinds:
            raise OSError("disk full")
        self._bench.sink(event)


@pytest.mark.parametrize("kind", ["step.proposed", "policy.evaluated"])
async def test_a_required_record_that_fails_before_the_body_denies(bench, check, kind):
    """What a required sink does not take does not run."""
    sink = Breakable(bench, kind)
    guard = bench.guard({"decision": "allow"}, sinks=[required_sink(sink)])

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "record_failed")
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]


@pytest.mark.parametrize("kind", ["approval.requested", "approval.granted", "obligation.required"])
async def test_any_step_before_the_body_must_be_on_record(bench, check, kind):
    """A grant or an obligation that is not on record lets nothing run."""
    guard = bench.guard(
        {"decision": "approve_required", "obligations": [{"id": "log", "phase": "pre"}]},
        sinks=[required_sink(Breakable(bench, kind))],
        on_approval=auto_approve(),
        obligations={"log": lambda *_: None},
    )

    call = await check(guard, "note", {"text": "x"})

    assert call.result.code == "record_failed"
    assert bench.ran == []


async def test_after_the_body_the_result_is_returned_and_the_guard_denies(bench, check):
    """A terminal event that is lost keeps the result; then nothing runs until the sink is back."""
    sink = Breakable(bench, "action.completed")
    guard = bench.guard({"decision": "allow"}, sinks=[required_sink(sink)])

    first = await check(guard, "note", {"text": "1"})
    sink.kinds = {"action.completed", "policy.evaluated", "step.proposed"}
    second = await check(guard, "note", {"text": "2"})
    sink.kinds = set()
    third = await check(guard, "note", {"text": "3"})

    assert (first.outcome, first.result.value) == (Outcome.COMPLETED, "1")
    assert (second.outcome, second.result.code) == (Outcome.DENIED, "record_failed")
    assert third.outcome is Outcome.COMPLETED
    assert bench.ran == [{"text": "1"}, {"text": "3"}]


@pytest.mark.parametrize("kind", ["step.proposed", "policy.evaluated", "action.completed"])
async def test_a_sink_that_is_not_required_changes_nothing(bench, check, kind):
    """A known fault: a sink that raises is no refusal and no exception."""
    guard = bench.guard({"decision": "allow"}, sinks=[Breakable(bench, kind)])

    call = await check(guard, "note", {"text": "x"})

    assert call.outcome is Outcome.COMPLETED


async def test_a_failing_required_sink_does_not_starve_the_others(bench, check):
    """The other sinks still get every event, the denial included."""

    def broken(event):
        raise OSError("disk full")

    guard = bench.guard({"decision": "allow"}, sinks=[required_sink(broken), bench.sink])

    await check(guard, "note", {"text": "x"})

    assert bench.kinds == ["step.proposed", "action.denied"]


async def test_secrets_are_out_of_the_record_and_in_the_body(bench, check):
    """Redaction is on by default, and changes nothing that runs."""
    from adjudge._enforcement.tools import tool

    @tool()
    async def login(user: str, password: str):
        bench.ran.append(password)
        raise PermissionError(f"password={password}")

    guard = bench.guard({"decision": "allow"}, tools=[login])

    call = await check(guard, "login", {"user": "eve", "password": "hunter2"})

    assert bench.ran == ["hunter2"]
    assert call.request.args["password"] == "hunter2"
    assert "hunter2" not in repr([event.body for event in bench.events])
