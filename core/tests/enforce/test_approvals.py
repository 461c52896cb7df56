"""Asking people (clause 22): what grants, what does not, and what is said of it."""

import asyncio
import functools
import gc
import threading
from dataclasses import replace

import pytest

from adjudge._enforcement.approvals import auto_approve, callback_approval
from adjudge._enforcement.keeping import call_digest
from adjudge._ledger.entries import EntryState
from adjudge._types import ActionRequest, ApprovalDecision, ExecutionContext, Outcome, Principal
from adjudge._values import FrozenDict

ASK = {"decision": "approve_required", "approvers": ["ana", "bo"], "reason": "big"}
GRANT = ApprovalDecision(True, "ana")


class Grantish:
    """Looks like an approval."""

    granted = True
    approver = "ana"
    reason = ""
    edited_args = None


class Subclass(ApprovalDecision):
    """Says that it is granted whatever it holds."""

    granted = True


async def coroutine_function():
    """Stand for an answer that nobody awaited."""


@pytest.mark.parametrize(
    "answer",
    [
        True,
        1,
        "yes",
        None,
        {"granted": True},
        Grantish(),
        ApprovalDecision(1, "ana"),
        ApprovalDecision("true", "ana"),
        ApprovalDecision(None, "ana"),
        ApprovalDecision(True, 7),
        object.__new__(Subclass),
    ],
    ids=[
        "true",
        "one",
        "yes",
        "none",
        "mapping",
        "look-alike",
        "granted-one",
        "granted-text",
        "granted-none",
        "approver-number",
        "subclass",
    ],
)
async def test_only_an_approval_decision_whose_granted_is_true_grants(bench, check, answer):
    """Clause 22, fault kind 1: any other answer is a failed handler, and denies."""
    guard = bench.guard(ASK, on_approval=lambda _: answer)

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "approval_failed")
    assert "the approval handler failed" in call.text
    assert bench.ran == []
    assert bench.body("approval.refused")["code"] == "approval_failed"


@pytest.mark.parametrize(
    "error",
    [EOFError(), TimeoutError("own"), KeyError("k"), StopIteration(), asyncio.CancelledError()],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_handler_that_raises_denies(bench, check, error, kind):
    """Fault B027: whatever a handler raises, the call is denied as a failed handler."""

    def handler(_):
        raise error

    async def async_handler(_):
        raise error

    guard = bench.guard(ASK, on_approval=handler if kind == "sync" else async_handler)

    call = await check(guard, "note", {"text": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "approval_failed")
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_late_answer_is_dropped(bench, check, kind):
    """Clause 31: an answer after the time-out grants nothing, and the reason says timed out."""
    answered = threading.Event()
    release = threading.Event()

    def handler(_):
        release.wait(5)
        answered.set()
        return GRANT

    async def async_handler(_):
        try:
            await asyncio.Event().wait()
        finally:
            answered.set()
        return GRANT

    guard = bench.guard(
        {**ASK, "timeout_seconds": 0.05},
        on_approval=handler if kind == "sync" else async_handler,
    )

    call = await check(guard, "note", {"text": "x"})
    release.set()
    await asyncio.to_thread(answered.wait, 5)

    assert call.result.code == "approval_timed_out"
    assert call.text == "[denied] approval timed out after 0.05 s"
    assert bench.ran == []
    assert bench.kinds[-2:] == ["approval.timed_out", "action.denied"]


async def test_a_handler_that_fails_too_late_is_not_complained_about(bench, caplog):
    """What nobody waits for any more is dropped without a trace in the log."""

    async def handler(_):
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("too late")

    guard = bench.guard({**ASK, "timeout_seconds": 0.02}, on_approval=handler)

    await guard.check("note", {"text": "x"})
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()

    assert caplog.records == []


async def test_a_handler_that_ignores_its_cancellation_holds_nobody_up(bench):
    """A handler that swallows its cancellation is left behind; the call is denied in time."""
    stop = asyncio.Event()

    async def stubborn(_):
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue
        return GRANT

    guard = bench.guard({**ASK, "timeout_seconds": 0.02}, on_approval=stubborn)

    call = await guard.check("note", {"text": "x"})
    stop.set()
    await asyncio.sleep(0)

    assert call.result.code == "approval_timed_out"
    assert bench.ran == []


async def test_a_blocking_handler_leaves_the_loop_free(bench):
    """Clause 31: a sync handler runs in a thread, and other tasks go on meanwhile."""
    ticks = threading.Event()

    def handler(_):
        assert ticks.wait(5)
        return GRANT

    guard = bench.guard(ASK, on_approval=handler)
    running = asyncio.ensure_future(guard.check("note", {"text": "x"}))
    await asyncio.sleep(0)
    ticks.set()

    assert (await running).outcome is Outcome.COMPLETED


async def handler_with_name(name, _):
    """Grant by a name that was bound before."""
    return ApprovalDecision(True, name)


class Handler:
    """A handler that is an object."""

    async def __call__(self, _):
        """Grant."""
        return GRANT

    async def method(self, _):
        """Grant."""
        return GRANT


@pytest.mark.parametrize(
    "handler",
    [
        functools.partial(handler_with_name, "ana"),
        Handler(),
        Handler().method,
        lambda request: handler_with_name("ana", request),
        lambda _: GRANT,
        callback_approval(lambda _: GRANT),
        auto_approve("ana"),
    ],
    ids=["partial", "object", "method", "sync-to-async", "sync", "callback", "auto"],
)
async def test_handlers_of_every_shape_are_awaited(bench, check, handler):
    """Fault X008: an awaitable answer is awaited, whatever kind of callable gave it."""
    guard = bench.guard(ASK, on_approval=handler)

    call = await check(guard, "note", {"text": "x"})

    assert call.outcome is Outcome.COMPLETED
    assert bench.body("approval.granted")["approver"] == "ana"


async def test_the_question_holds_the_final_arguments_and_their_digest(bench, check):
    """A person sees what would run, whom the rule names, and the digest that is on record."""
    asked = []

    def handler(request):
        asked.append(request)
        return GRANT

    guard = bench.guard(
        {"decision": "transform", "transform": {"path": "args.amount", "set": 70}},
        {"match": {"args.amount.gt": 60}, **ASK},
        on_approval=handler,
    )

    call = await check(guard, "pay", {"to": "x"})

    assert call.outcome is Outcome.COMPLETED
    assert asked[0].request.args == {"to": "x", "amount": 70}
    assert asked[0].approvers == ("ana", "bo")
    assert asked[0].digest == bench.body("approval.requested")["digest"]
    assert asked[0].timeout_seconds == 1800.0
    assert bench.ran == [{"to": "x", "amount": 70}]


@pytest.mark.parametrize(
    "changed",
    [
        {"tool": "other"},
        {"namespace": "other"},
        {"args": FrozenDict({"amount": 1.0})},
        {"context": ExecutionContext(Principal("service", "eve", "Eve"))},
        {"context": ExecutionContext(Principal("user", "ana", "Eve"))},
    ],
    ids=["tool", "namespace", "args", "principal-kind", "principal-id"],
)
def test_a_digest_binds_who_may_do_what(changed):
    """Clause 22: tool identity, effective arguments and principal each change the digest."""
    context = ExecutionContext(Principal("user", "eve", "Eve"))
    asked = ActionRequest("pay", FrozenDict({"amount": 1}), None, context, "bank")

    assert call_digest(replace(asked, **changed), "run/0/1") != call_digest(asked, "run/0/1")


async def test_a_question_is_on_record_before_it_is_put(bench, check):
    """The handler is asked once the record says so, and a time-out ends in a denial."""
    seen = []

    async def never(_request):
        seen.extend(bench.kinds)
        await asyncio.Event().wait()

    guard = bench.guard({**ASK, "timeout_seconds": 0.05}, on_approval=never)

    await check(guard, "pay", {"to": "x"})

    assert seen == ["step.proposed", "policy.evaluated", "approval.requested"]
    assert bench.kinds == [*seen, "approval.timed_out", "action.denied"]


async def test_two_equal_calls_have_two_digests(bench, check):
    """Clause 22, fault X037: an approval is for one occurrence."""
    guard = bench.guard(ASK, on_approval=auto_approve())

    await check(guard, "note", {"text": "x"})
    await check(guard, "note", {"text": "x"})
    asked = [event.body for event in bench.events if event.kind == "approval.requested"]

    assert asked[0]["digest"] != asked[1]["digest"]
    assert asked[0]["approval_id"] != asked[1]["approval_id"]


TWO_LAYERS = [{"decision": "approve_required", "approvers": [name]} for name in ("ana", "bo")]


def two_sets():
    """Make a policy in which two layers each ask their own people."""
    from adjudge.policy import PolicyLayer, compile_policy

    return compile_policy(
        [
            PolicyLayer(name, {"version": 1, "rules": [{"id": "r", "match": "always", **rule}]})
            for name, rule in zip(("a", "b"), TWO_LAYERS, strict=True)
        ]
    )


async def test_each_approver_set_is_asked_once_and_all_must_grant(bench, check):
    """Clause 20: two layers ask two sets, and the body runs when both have granted."""
    asked = []

    def handler(request):
        asked.append(request.approvers)
        return ApprovalDecision(True, request.approvers[0])

    guard = bench.guard(policy=two_sets(), on_approval=handler)

    call = await check(guard, "note", {"text": "x"})

    assert call.outcome is Outcome.COMPLETED
    assert asked == [("ana",), ("bo",)]
    assert len(bench.ran) == 1


async def test_one_refusal_among_several_sets_denies(bench, check):
    """The last of several sets can still refuse."""

    def handler(request):
        return ApprovalDecision(request.approvers == ("ana",), request.approvers[0], "no")

    guard = bench.guard(policy=two_sets(), on_approval=handler)

    call = await check(guard, "note", {"text": "x"})

    assert call.text == "[denied] approval refused by bo: no"
    assert bench.ran == []


async def test_a_later_approver_cannot_edit_what_an_earlier_one_granted(bench, check):
    """Clause 23: everybody grants the same arguments, or nothing runs."""

    def handler(request):
        edited = {"to": "x", "amount": 1} if request.approvers == ("bo",) else None
        return ApprovalDecision(True, request.approvers[0], edited_args=edited)

    guard = bench.guard(policy=two_sets(), on_approval=handler)

    call = await check(guard, "pay", {"to": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "edit_denied")
    assert bench.ran == []


async def test_the_first_approvers_edit_is_what_the_others_are_asked_about(bench, check):
    """An edit of the first set's is shown to the next, with a digest of its own."""
    asked = []

    def handler(request):
        asked.append((request.request.args["amount"], request.digest))
        edited = {"to": "x", "amount": 1} if request.approvers == ("ana",) else None
        return ApprovalDecision(True, request.approvers[0], edited_args=edited)

    guard = bench.guard(policy=two_sets(), on_approval=handler)

    call = await check(guard, "pay", {"to": "x"})

    assert call.outcome is Outcome.COMPLETED
    assert [amount for amount, _ in asked] == [5, 1]
    assert asked[0][1] != asked[1][1]
    assert bench.ran == [{"to": "x", "amount": 1}]


async def test_the_ledger_keeps_each_approval_and_how_it_ended(bench, check, ledger):
    """Clause 22: the entry is made when it is asked, claimed once, and finished."""
    guard = bench.guard(ASK, on_approval=auto_approve("ana"), ledger=ledger)

    await check(guard, "pay", {"to": "x"})
    entry = ledger.get(bench.body("approval.requested")["approval_id"])

    assert (entry.tool, entry.args) == ("pay", {"to": "x"})
    assert (entry.state, entry.outcome) == (EntryState.FINISHED, "completed")
    assert entry.policy_id == guard.policy.id


async def test_a_refused_approval_is_finished_in_the_ledger(bench, check, ledger):
    """What was refused cannot be resumed."""
    guard = bench.guard(ASK, on_approval=lambda _: ApprovalDecision(False, "ana"), ledger=ledger)

    await check(guard, "pay", {"to": "x"})
    entry = ledger.get(bench.body("approval.requested")["approval_id"])

    assert (entry.state, entry.outcome) == (EntryState.FINISHED, "denied")


class Failing:
    """A ledger of which one operation fails."""

    def __init__(self, ledger, operation):
        self._ledger = ledger
        self._operation = operation

    def __getattr__(self, name):
        if name == self._operation:
            raise OSError("disk full")
        return getattr(self._ledger, name)


@pytest.mark.parametrize("operation", ["add", "claim"])
async def test_a_ledger_that_fails_before_the_body_denies(bench, check, ledger, operation):
    """Law 4: without the ledger's word nothing runs."""
    guard = bench.guard(ASK, on_approval=auto_approve("ana"), ledger=Failing(ledger, operation))

    call = await check(guard, "pay", {"to": "x"})

    assert call.outcome is Outcome.DENIED
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]


@pytest.mark.parametrize("by", [None, "somebody else"], ids=["no-entry", "another-holder"])
async def test_a_ledger_that_answers_oddly_denies(bench, check, ledger, by):
    """Law 4: only an entry of ours, claimed by us, lets a granted call run."""

    class Odd(Failing):
        def claim(self, *args, **kwargs):
            if by is None:
                return True
            return ledger.claim(*args, **{**kwargs, "holder": by})

    guard = bench.guard(ASK, on_approval=auto_approve("ana"), ledger=Odd(ledger, "none"))

    call = await check(guard, "pay", {"to": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "ledger_failed")
    assert bench.ran == []


async def test_an_approval_that_cannot_be_claimed_runs_nothing(bench, check, ledger):
    """Clause 22: granted too late, or claimed by somebody else, is not granted."""

    class Spent(Failing):
        def claim(self, *args, **kwargs):
            return None

    guard = bench.guard(ASK, on_approval=auto_approve("ana"), ledger=Spent(ledger, "none"))

    call = await check(guard, "pay", {"to": "x"})

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "approval_spent")
    assert bench.ran == []


async def test_a_ledger_that_fails_after_the_body_changes_no_result(bench, check, ledger):
    """Law 6: the body has run; the entry stays claimed, which is uncertain and never rerun."""
    guard = bench.guard(ASK, on_approval=auto_approve("ana"), ledger=Failing(ledger, "settle"))

    call = await check(guard, "pay", {"to": "x"})
    entry = ledger.get(bench.body("approval.requested")["approval_id"])

    assert call.outcome is Outcome.COMPLETED
    assert entry.state is EntryState.CLAIMED
    assert bench.terminals == ["action.completed"]
