"""Obligations: when they run, how often, and what their failure means (clause 25)."""

import asyncio

import pytest

from adjudge._arguments.proposal import ProposedCall
from adjudge._enforcement.approvals import auto_approve, auto_deny
from adjudge._types import Outcome

PRE = {"id": "pre", "phase": "pre"}
POST = {"id": "post", "phase": "post"}
PRE_ALWAYS = {"id": "pre-always", "phase": "pre", "on": "always"}
POST_ALWAYS = {"id": "post-always", "phase": "post", "on": "always"}
ALL = [PRE, POST, PRE_ALWAYS, POST_ALWAYS]


@pytest.fixture
def registry(bench):
    """Handlers that put their id among what ran."""

    def handler(obligation, _request, _context):
        bench.ran.append(obligation.id)

    async def async_handler(obligation, _request, _context):
        await asyncio.sleep(0)
        bench.ran.append(obligation.id)

    return {
        "pre": handler,
        "post": async_handler,
        "pre-always": async_handler,
        "post-always": handler,
    }


async def test_pre_runs_before_the_body_and_post_after_it(bench, check, registry):
    """Around a body that runs: each once, in order."""
    guard = bench.guard({"decision": "allow", "obligations": ALL}, obligations=registry)

    call = await check(guard, "note", {"text": "x"})

    assert bench.ran == ["pre", "pre-always", {"text": "x"}, "post", "post-always"]
    assert [outcome.id for outcome in call.result.obligations] == [
        "pre",
        "pre-always",
        "post",
        "post-always",
    ]
    assert all(outcome.fulfilled for outcome in call.result.obligations)
    assert bench.kinds.count("obligation.required") == 4
    assert bench.kinds.count("obligation.fulfilled") == 4
    assert bench.kinds[-1] == "action.completed"


async def test_post_runs_after_a_body_that_failed(bench, check, registry):
    """`post` follows the body, whatever came of it."""
    guard = bench.guard({"decision": "allow", "obligations": [POST]}, obligations=registry)

    call = await check(guard, "breaks", {})

    assert call.outcome is Outcome.FAILED
    assert bench.ran == [{"text": ""}, "post"]


async def test_after_an_approval_pre_runs_only_once_it_is_granted(bench, check, registry):
    """`pre` comes after the grant and immediately before the body."""
    guard = bench.guard(
        {"decision": "approve_required", "obligations": [PRE]},
        obligations=registry,
        on_approval=auto_approve(),
    )

    await check(guard, "note", {"text": "x"})

    assert bench.ran == ["pre", {"text": "x"}]
    assert bench.kinds.index("approval.granted") < bench.kinds.index("obligation.required")


def raising(*_):
    """Fail."""
    raise OSError("mail server down")


@pytest.mark.parametrize(
    ("registry", "error"),
    [
        (None, "no obligations are configured"),
        ({}, "no obligation is called 'pre'"),
        ({"pre": raising}, "OSError: mail server down"),
        ({"pre": lambda *_: False}, "the handler answered False"),
    ],
    ids=["no-registry", "unknown", "raises", "false"],
)
async def test_a_pre_that_fails_denies(bench, check, registry, error):
    """A `pre` that fails, is unknown or has no registry denies, and the reason says so."""
    guard = bench.guard({"decision": "allow", "obligations": [PRE]}, obligations=registry)

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "obligation_failed")
    assert error in call.text
    assert bench.ran == []
    assert bench.body("obligation.failed")["error"] == error
    assert bench.terminals == ["action.denied"]


async def test_the_first_pre_that_fails_ends_it(bench, check, registry):
    """After a failed `pre` no further one runs but those for every ending, each once."""
    guard = bench.guard(
        {
            "decision": "allow",
            "obligations": [{"id": "bad", "phase": "pre", "on": "always"}, *ALL],
        },
        obligations={**registry, "bad": raising},
    )

    await check(guard, "note", {"text": "x"})

    assert bench.ran == ["pre-always", "post-always"]
    assert bench.kinds.count("obligation.failed") == 1


async def test_a_post_that_fails_changes_no_outcome(bench, check):
    """The body has run; a failed `post` is on record and in the result."""
    guard = bench.guard({"decision": "allow", "obligations": [POST]}, obligations={"post": raising})

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.value) == (Outcome.COMPLETED, "x")
    assert call.result.obligations[0].fulfilled is False
    assert bench.kinds[-2:] == ["obligation.failed", "action.completed"]


async def test_on_a_dry_run_only_those_for_every_ending_run(bench, check, registry):
    """`on: always` runs around the shadow, the others do not."""
    guard = bench.guard({"decision": "dry_run", "obligations": ALL}, obligations=registry)

    call = await check(guard, "pay", {"to": "x"})

    assert call.outcome is Outcome.PREVIEWED
    assert bench.ran == ["pre-always", "post-always"]


@pytest.mark.parametrize("how", ["refused", "timed-out"])
async def test_without_a_grant_only_those_for_every_ending_run(bench, check, registry, how):
    """On refusal and time-out only `on: always` runs."""

    async def never(_):
        await asyncio.Event().wait()

    guard = bench.guard(
        {"decision": "approve_required", "obligations": ALL, "timeout_seconds": 0.02},
        obligations=registry,
        on_approval=auto_deny() if how == "refused" else never,
    )

    call = await check(guard, "note", {"text": "x"})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == ["pre-always", "post-always"]


async def test_a_denying_rules_obligations_run_on_the_denial(bench, check, registry):
    """A deny rule's obligations are for its denial."""
    guard = bench.guard({"decision": "deny", "obligations": ALL}, obligations=registry)

    call = await check(guard, "note", {"text": "x"})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == ["pre", "post", "pre-always", "post-always"]
    assert bench.kinds[-1] == "action.denied"


async def test_obligations_see_the_effective_arguments(bench, check):
    """What a handler is shown is what the body gets, with the obligation's own parameters."""
    seen = []
    guard = bench.guard(
        {
            "decision": "transform",
            "transform": {"path": "args.amount", "set": 1},
            "obligations": [{**PRE, "params": {"to": "ops"}}],
        },
        obligations={"pre": lambda *given: seen.append(given)},
    )

    await check(guard, "pay", {"to": "x", "amount": 9})
    obligation, request, context = seen[0]

    assert request.args == {"to": "x", "amount": 1}
    assert obligation.params == {"to": "ops"}
    assert context is request.context


async def test_they_hold_for_a_frameworks_call_too(bench, govern, registry):
    """The door of the integrations keeps the same obligations."""
    guard = bench.guard({"decision": "allow", "obligations": ALL}, obligations=registry)

    await govern(guard, ProposedCall("f", {}), lambda _: bench.ran.append("body"))

    assert bench.ran == ["pre", "pre-always", "body", "post", "post-always"]
