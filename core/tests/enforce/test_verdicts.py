"""The verdict table of the design, through both doors of `check`."""

import hashlib

from adjudge._enforcement.approvals import auto_approve, auto_deny
from adjudge._types import Outcome, Verdict

PROPOSED = ["step.proposed", "policy.evaluated"]


async def test_allow_runs_the_body_once(bench, check):
    """An allowed call runs once and its result comes back untouched."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "pay", {"to": "ana", "amount": 7})

    assert call.outcome is Outcome.COMPLETED
    assert call.result.value == "paid 7"
    assert call.text is None
    assert bench.ran == [{"to": "ana", "amount": 7}]
    assert bench.kinds == [*PROPOSED, "action.completed"]


async def test_deny_never_runs_the_body(bench, check):
    """A denied call never runs, and the model is told the reason."""
    guard = bench.guard({"decision": "deny", "reason": "not today"})

    call = await check(guard, "pay", {"to": "ana"})

    assert call.outcome is Outcome.DENIED
    assert call.text == "[denied] not today"
    assert bench.ran == []
    assert bench.kinds == [*PROPOSED, "action.denied"]


async def test_a_denial_without_reason_still_says_something(bench, check):
    """An empty reason reads as `not permitted by policy`."""
    guard = bench.guard({"decision": "deny"})

    call = await check(guard, "pay", {"to": "ana"})

    assert call.text == "[denied] not permitted by policy"


async def test_dry_run_runs_the_shadow_alone(bench, check):
    """A previewed call runs the shadow, never the body."""
    guard = bench.guard({"decision": "dry_run"})

    call = await check(guard, "pay", {"to": "ana", "amount": 9})

    assert call.outcome is Outcome.PREVIEWED
    assert call.text == '[dry_run] not executed; preview: {"would_pay": 9}'
    assert call.result.value == {"would_pay": 9}
    assert (bench.ran, bench.shadowed) == ([], [{"to": "ana", "amount": 9}])
    assert bench.kinds == [*PROPOSED, "action.previewed"]


async def test_dry_run_without_a_shadow_denies_and_says_so(bench, check):
    """A dry_run of a tool that has no shadow is a denial by value."""
    guard = bench.guard({"decision": "dry_run"})

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "no_shadow")
    assert "no shadow" in call.text
    assert bench.ran == []
    assert bench.kinds == [*PROPOSED, "action.denied"]


async def test_transform_runs_the_rewritten_arguments(bench, check):
    """A transformed call runs once, with the rewritten arguments."""
    guard = bench.guard({"decision": "transform", "transform": {"path": "args.amount", "set": 1}})

    call = await check(guard, "pay", {"to": "ana", "amount": 9})

    assert call.outcome is Outcome.COMPLETED
    assert bench.ran == [{"to": "ana", "amount": 1}]
    assert bench.body("policy.evaluated")["effective_args"] == {"to": "ana", "amount": 1}


async def test_an_approval_that_is_granted_runs_the_body(bench, check):
    """A granted call runs once, and the record names the approver."""
    guard = bench.guard({"decision": "approve_required"}, on_approval=auto_approve("ana"))

    call = await check(guard, "pay", {"to": "bo"})

    assert call.outcome is Outcome.COMPLETED
    assert bench.ran == [{"to": "bo", "amount": 5}]
    assert bench.kinds == [
        *PROPOSED,
        "approval.requested",
        "approval.granted",
        "action.completed",
    ]
    assert bench.body("approval.granted")["approver"] == "ana"


async def test_an_approval_that_is_refused_denies(bench, check):
    """A refused call never runs, and the reason says who refused and why."""
    guard = bench.guard({"decision": "approve_required"}, on_approval=auto_deny("too much"))

    call = await check(guard, "pay", {"to": "bo"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "approval_refused")
    assert call.text == "[denied] approval refused by system: too much"
    assert bench.ran == []
    assert bench.kinds == [
        *PROPOSED,
        "approval.requested",
        "approval.refused",
        "action.denied",
    ]


async def test_without_a_handler_what_needs_approval_is_refused(bench, check):
    """Fault kind 1: a missing handler is no permission."""
    guard = bench.guard({"decision": "approve_required"})

    call = await check(guard, "pay", {"to": "bo"})

    assert call.result.code == "approval_refused"
    assert bench.ran == []


async def test_a_failing_body_is_a_value_at_check(bench, check):
    """The exception of a tool's body is recorded and told, not raised."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "breaks", {"text": "k"})

    assert (call.outcome, call.result.ok) == (Outcome.FAILED, False)
    assert (call.result.error, call.result.code) == ("KeyError: 'k'", "tool_error")
    assert bench.kinds == [*PROPOSED, "action.failed"]


async def test_an_unknown_tool_is_denied_and_recorded(bench, check):
    """Clause 17: a name that no tool has is denied under any policy."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "nope", {"x": 1})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "unknown_tool")
    assert call.decision.verdict is Verdict.DENY
    assert bench.kinds == ["step.proposed", "action.denied"]


async def test_a_sync_tool_runs_through_both_doors(bench, check):
    """A plain `def` is a tool as good as an `async def`."""
    guard = bench.guard({"decision": "allow"})

    call = await check(guard, "note", {"text": "hi"})

    assert call.result.value == "hi"
    assert bench.ran == [{"text": "hi"}]


async def test_every_event_names_tool_attempt_and_call(bench, check):
    """All events of one call share its number and name its tool and attempt."""
    guard = bench.guard({"decision": "allow"})

    await check(guard, "note", {"text": "a"})
    await check(guard, "note", {"text": "b"})

    assert [event.seq for event in bench.events] == [0, 0, 0, 1, 1, 1]
    assert {(event.body["tool"], event.body["attempt"]) for event in bench.events} == {("note", 1)}
    assert {event.correlation_id for event in bench.events} == {guard.correlation_id}


async def test_no_event_holds_a_result(bench, check):
    """Result values may be secret and are not recorded."""
    guard = bench.guard({"decision": "allow"})

    await check(guard, "pay", {"to": "bo", "amount": 41})

    assert "paid 41" not in repr(bench.events[-1].body)


async def test_without_sinks_no_event_is_built(bench, check, monkeypatch):
    """Clause 29: a guard without sinks asks for no digest and builds no event."""
    guard = bench.guard({"decision": "allow"}, sinks=[])
    monkeypatch.delattr(hashlib, "sha256")

    call = await check(guard, "pay", {"to": "bo"})

    assert call.result.ok is True
    assert bench.events == []


async def test_bodies_get_plain_values_of_their_own(bench, check):
    """Clause 29: what a body does to its arguments reaches neither the caller nor the request."""
    from adjudge._enforcement.tools import tool

    seen = []

    @tool()
    async def spoil(items: list):
        seen.append(type(items))
        items.append("spoilt")
        return items

    guard = bench.guard({"decision": "allow"}, tools=[spoil])
    items = ["a"]

    call = await check(guard, "spoil", {"items": items})

    assert seen == [list]
    assert items == ["a"]
    assert call.request.args == {"items": ["a"]}


async def test_what_the_caller_changes_later_is_not_run(bench):
    """Fault kind 3, law 5: arguments are frozen at the door, before anything waits."""
    held = {"to": "bo", "amount": 1}

    async def change_meanwhile(request):
        from adjudge._types import ApprovalDecision

        held["amount"] = 9999
        return ApprovalDecision(True, "ana")

    guard = bench.guard({"decision": "approve_required"}, on_approval=change_meanwhile)

    await guard.check("pay", held)

    assert bench.ran == [{"to": "bo", "amount": 1}]
