"""A reviewer's edit is a new call under the same grant (clause 23)."""

import pytest

from adjudge._types import ApprovalDecision, Outcome

ASK_OVER_100 = {"match": {"args.amount.gt": 100}, "decision": "approve_required"}
DENY_MALLORY = {"match": {"args.to": "mallory"}, "decision": "deny", "reason": "never"}
ALLOW = {"decision": "allow"}


def edits(**args):
    """Make a handler that grants other arguments."""
    return lambda _: ApprovalDecision(True, "ana", edited_args=args)


@pytest.mark.parametrize("amount", [50, 150], ids=["allowed", "same-rule"])
async def test_an_edit_that_is_allowed_or_asked_by_the_same_rule_runs(bench, check, amount):
    """The edited arguments run, once, and the record shows their judgment."""
    guard = bench.guard(
        DENY_MALLORY, ASK_OVER_100, ALLOW, on_approval=edits(to="bo", amount=amount)
    )

    call = await check(guard, "pay", {"to": "bo", "amount": 500})

    assert call.outcome is Outcome.COMPLETED
    assert bench.ran == [{"to": "bo", "amount": amount}]
    assert call.decision.effective_args == {"to": "bo", "amount": amount}
    assert bench.body("policy.evaluated")["phase"] == "edit"
    assert bench.body("policy.evaluated")["effective_args"] == {"to": "bo", "amount": amount}


async def test_an_edit_into_what_is_denied_denies(bench, check):
    """Fault kind 3: a reviewer cannot edit a call past a rule."""
    guard = bench.guard(
        DENY_MALLORY, ASK_OVER_100, ALLOW, on_approval=edits(to="mallory", amount=1)
    )

    call = await check(guard, "pay", {"to": "bo", "amount": 500})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "edit_denied")
    assert bench.ran == []


async def test_an_edit_that_another_rule_would_ask_about_denies(bench, check):
    """Anything but allow or the same asking rule denies."""
    guard = bench.guard(
        {"match": {"args.to": "bo"}, "decision": "approve_required"},
        ASK_OVER_100,
        ALLOW,
        on_approval=edits(to="bo", amount=1),
    )

    call = await check(guard, "pay", {"to": "ana", "amount": 500})

    assert call.result.code == "edit_denied"
    assert bench.ran == []


async def test_an_edit_that_a_transform_would_rewrite_denies(bench, check):
    """What the reviewer saw is what runs, or nothing does."""
    guard = bench.guard(
        ASK_OVER_100,
        {"decision": "transform", "transform": {"path": "args.to", "set": "acme"}},
        on_approval=edits(to="bo", amount=1),
    )

    call = await check(guard, "pay", {"to": "ana", "amount": 500})

    assert call.result.code == "edit_denied"
    assert bench.ran == []


async def test_an_edit_that_is_asked_about_in_another_form_denies(bench, check):
    """The same rule asking about rewritten arguments is not asking about the edited ones."""
    guard = bench.guard(
        {"decision": "transform", "transform": {"path": "args.to", "set": "acme"}},
        {"match": {"args.to": "acme", "args.amount.gt": 100}, "decision": "approve_required"},
        on_approval=edits(to="bo", amount=150),
    )

    call = await check(guard, "pay", {"to": "ana", "amount": 500})

    assert call.result.code == "edit_denied"
    assert bench.ran == []


@pytest.mark.parametrize(
    "edited",
    [{"to": "bo", "amount": float("nan")}, {"amount": 1}, {"to": "bo", "typo": 1}, "text"],
    ids=["nan", "missing", "unknown", "no-object"],
)
async def test_an_edit_that_does_not_fit_the_tool_denies(bench, check, edited):
    """Edited arguments are read as strictly as the model's."""
    guard = bench.guard(
        ASK_OVER_100,
        ALLOW,
        on_approval=lambda _: ApprovalDecision(True, "ana", edited_args=edited),
    )

    call = await check(guard, "pay", {"to": "ana", "amount": 500})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]


async def test_an_edit_gets_the_defaults_that_the_body_would_see(bench, check):
    """A default that the edit leaves out is judged as the body gets it."""
    guard = bench.guard(
        {"match": {"args.amount": 5, "args.to": "bo"}, "decision": "deny"},
        ASK_OVER_100,
        ALLOW,
        on_approval=edits(to="bo"),
    )

    call = await check(guard, "pay", {"to": "ana", "amount": 500})

    assert call.result.code == "edit_denied"
    assert bench.ran == []


async def test_an_edit_that_changes_nothing_is_no_edit(bench, check):
    """The same arguments again are not judged again."""
    guard = bench.guard(ASK_OVER_100, ALLOW, on_approval=edits(to="bo", amount=500))

    call = await check(guard, "pay", {"to": "bo", "amount": 500})

    assert call.outcome is Outcome.COMPLETED
    assert bench.kinds.count("policy.evaluated") == 1


async def test_one_is_not_true_and_true_is_not_one_in_an_edit(bench, check):
    """Clause 1: an edit from 1 to true is an edit."""
    guard = bench.guard(
        {"match": {"args.amount": 1}, "decision": "approve_required"},
        on_approval=edits(to="bo", amount=True),
    )

    call = await check(guard, "pay", {"to": "bo", "amount": 1})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []


async def test_a_refusal_with_an_edit_is_a_refusal(bench, check):
    """Only a grant carries an edit."""
    guard = bench.guard(
        ASK_OVER_100,
        ALLOW,
        on_approval=lambda _: ApprovalDecision(False, "ana", edited_args={"to": "x"}),
    )

    call = await check(guard, "pay", {"to": "bo", "amount": 500})

    assert call.result.code == "approval_refused"
    assert bench.ran == []


async def test_obligations_of_the_asking_and_of_the_allowing_rule_both_run(bench, check):
    """The grant carries its own obligations, and the edited call those of its rule."""
    ran = []

    def handler(obligation, request, _context):
        ran.append((obligation.id, request.args["amount"]))

    guard = bench.guard(
        {**ASK_OVER_100, "obligations": [{"id": "ask", "phase": "pre"}]},
        {**ALLOW, "obligations": [{"id": "allow", "phase": "post"}]},
        on_approval=edits(to="bo", amount=1),
        obligations={"ask": handler, "allow": handler},
    )

    call = await check(guard, "pay", {"to": "bo", "amount": 500})

    assert call.outcome is Outcome.COMPLETED
    assert ran == [("ask", 1), ("allow", 1)]
