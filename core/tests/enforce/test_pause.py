"""Paused calls and how they go on (clause 24)."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from adjudge._enforcement.approvals import pause_approval
from adjudge._enforcement.guard import ToolGuard
from adjudge._ledger.entries import EntryState, MemoryLedger
from adjudge._types import ApprovalDecision, Outcome, Principal
from adjudge.errors import GovernError
from adjudge.policy import PolicyLayer, compile_policy

ASK = {"decision": "approve_required", "reason": "big"}
GRANT = ApprovalDecision(True, "ana", "fine")
REFUSE = ApprovalDecision(False, "ana", "no")


def pausing(bench, ledger, *rules, **settings):
    """Make a guard that pauses."""
    return bench.guard(*rules, on_approval=pause_approval(ledger), **settings)


async def test_a_paused_call_has_run_nothing(bench, check, ledger):
    """Paused, `check` gives a GovernedCall with `pending`, and the model sees nothing yet."""
    guard = pausing(bench, ledger, ASK)

    call = await check(guard, "pay", {"to": "x"})

    assert (call.outcome, call.text) == (Outcome.PENDING, None)
    assert call.result.ok is False
    assert bench.ran == []
    assert bench.kinds[-2:] == ["approval.requested", "approval.pending"]
    assert bench.terminals == []


async def test_granted_it_runs_once_under_its_old_number(bench, check, resume, ledger):
    """A grant consumes the pause; the events go on under the call's own number."""
    guard = pausing(bench, ledger, ASK)
    await check(guard, "note", {"text": "first"})
    call = await check(guard, "pay", {"to": "x"})
    before = len(bench.events)

    done = await resume(guard, call.pending.id, GRANT)

    assert (done.outcome, done.result.value) == (Outcome.COMPLETED, "paid 5")
    assert bench.ran == [{"to": "x", "amount": 5}]
    assert bench.kinds[before:] == ["policy.evaluated", "approval.granted", "action.completed"]
    assert {event.seq for event in bench.events[before:]} == {1}
    assert bench.body("policy.evaluated")["phase"] == "resume"


async def test_another_guard_resumes_what_it_can_see(bench, check, resume, ledger):
    """Any guard that sees the ledger goes on, for the principal and under the ids of the first."""
    guard = pausing(bench, ledger, ASK, principal=Principal("user", "eve"))
    call = await check(guard, "pay", {"to": "x"})
    other = pausing(bench, ledger, ASK, principal=Principal("service", "worker"))

    done = await resume(other, call.pending.id, GRANT)

    assert done.outcome is Outcome.COMPLETED
    assert done.request.context.principal == Principal("user", "eve")
    assert bench.last.correlation_id == guard.correlation_id


async def test_refused_it_never_runs(bench, check, resume, ledger):
    """A refusal ends the call, and it cannot be resumed again."""
    guard = pausing(bench, ledger, ASK)
    call = await check(guard, "pay", {"to": "x"})

    done = await resume(guard, call.pending.id, REFUSE)
    again = await resume(guard, call.pending.id, GRANT)

    assert done.text == "[denied] approval refused by ana: no"
    assert again.result.code == "approval_spent"
    assert bench.ran == []


@pytest.mark.parametrize("answer", [True, None, {"granted": True}, ApprovalDecision(1, "ana")])
async def test_an_answer_that_is_no_grant_denies(bench, check, resume, ledger, answer):
    """Clause 22 holds on resume as it does for a handler."""
    guard = pausing(bench, ledger, ASK)
    call = await check(guard, "pay", {"to": "x"})

    done = await resume(guard, call.pending.id, answer)

    assert (done.outcome, done.result.code) == (Outcome.DENIED, "approval_failed")
    assert bench.ran == []


async def test_a_grant_is_used_once(bench, check, resume, ledger):
    """Fault X029: an old answer that is posted again runs nothing again."""
    guard = pausing(bench, ledger, ASK)
    call = await check(guard, "pay", {"to": "x"})
    await resume(guard, call.pending.id, GRANT)
    before = len(bench.events)

    again = await resume(guard, call.pending.id, GRANT)

    assert (again.outcome, again.result.code) == (Outcome.DENIED, "approval_spent")
    assert "completed" in again.text
    assert len(bench.ran) == 1
    assert bench.kinds[before:] == ["action.denied"]
    assert bench.last.seq != 0


async def test_simultaneous_resumes_run_the_body_once(bench, ledger):
    """Of many that resume at once exactly one goes on."""
    guard = pausing(bench, ledger, ASK)
    call = await guard.check("pay", {"to": "x"})

    done = await asyncio.gather(*(guard.resume(call.pending.id, GRANT) for _ in range(8)))

    outcomes = sorted(item.outcome for item in done)
    assert outcomes == [Outcome.COMPLETED, *[Outcome.DENIED] * 7]
    assert len(bench.ran) == 1


async def test_an_unknown_id_denies(bench, resume, ledger):
    """A process that cannot see the entry denies."""
    guard = pausing(bench, ledger, ASK)

    done = await resume(guard, "made-up", GRANT)

    assert (done.outcome, done.result.code) == (Outcome.DENIED, "unknown_approval")
    assert bench.kinds == ["action.denied"]


async def test_a_guard_without_a_ledger_denies(bench, check, resume):
    """Fault kind 6: an id alone, which a client could hold, grants nothing."""
    ledger = MemoryLedger()
    call = await check(pausing(bench, ledger, ASK), "pay", {"to": "x"})
    other = bench.guard(ASK)

    done = await resume(other, call.pending.id, GRANT)

    assert (done.outcome, done.result.code) == (Outcome.DENIED, "unknown_approval")
    assert bench.ran == []


async def test_an_expired_pause_never_grants(bench, check, resume, ledger):
    """Expired is the end of the call, told once, and no grant."""
    guard = pausing(bench, ledger, {**ASK, "timeout_seconds": 60})
    call = await check(guard, "pay", {"to": "x"})
    late = later(guard, timedelta(seconds=60))

    done = await resume(late, call.pending.id, GRANT)
    again = await resume(late, call.pending.id, GRANT)

    assert (done.outcome, done.result.code) == (Outcome.DENIED, "approval_expired")
    assert again.result.code == "approval_spent"
    assert bench.ran == []
    assert bench.terminals == ["approval.expired", "action.denied"]
    assert ledger.get(call.pending.id).outcome == "expired"


def later(guard, delay):
    """Give the guard a clock that is ahead."""
    import dataclasses

    guard._settings = dataclasses.replace(guard._settings, now=lambda: datetime.now(UTC) + delay)
    return guard


async def test_how_long_a_pause_may_last(bench, check, ledger):
    """1800 s where neither the rule nor `pause_approval` says otherwise."""
    plain = await check(pausing(bench, ledger, ASK), "pay", {"to": "x"})
    long = bench.guard(ASK, on_approval=pause_approval(ledger, timeout_seconds=9000))
    longer = await check(long, "pay", {"to": "x"})
    now = datetime.now(UTC)

    assert abs((plain.pending.expires_at - now).total_seconds() - 1800) < 30
    assert abs((longer.pending.expires_at - now).total_seconds() - 9000) < 30


CHANGES = {
    "denied": ([{"decision": "deny", "reason": "stop"}], "denied"),
    "transformed": (
        [{"decision": "transform", "transform": {"path": "args.amount", "set": 1}}],
        "policy_changed",
    ),
    "previewed": ([{"decision": "dry_run"}], "policy_changed"),
    "asked-by-another-rule": ([{**ASK, "id": "other"}], "policy_changed"),
    "asked-of-others": ([{**ASK, "approvers": ["bo"]}], "policy_changed"),
    "nothing-matches": ([], "denied"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_policy_that_changed_meanwhile_is_heeded(bench, check, resume, ledger, change):
    """Fault B037: on resume the original is judged again, and what is not the same ask denies."""
    rules, code = CHANGES[change]
    call = await check(pausing(bench, ledger, ASK), "pay", {"to": "x"})
    changed = pausing(bench, ledger, *rules)

    done = await resume(changed, call.pending.id, GRANT)

    assert (done.outcome, done.result.code) == (Outcome.DENIED, code)
    assert bench.ran == []
    assert bench.terminals == ["action.denied"]
    assert (await resume(changed, call.pending.id, GRANT)).result.code == "approval_spent"


async def test_the_changed_policy_says_propose_again(bench, check, resume, ledger):
    """The denial tells what to do."""
    call = await check(pausing(bench, ledger, ASK), "pay", {"to": "x"})
    changed = pausing(bench, ledger, {**ASK, "id": "other"})

    done = await resume(changed, call.pending.id, GRANT)

    assert done.text == "[denied] the policy has changed, propose again"


async def test_what_is_allowed_by_now_runs(bench, check, resume, ledger):
    """Allowed meanwhile: the call runs, once."""
    call = await check(pausing(bench, ledger, ASK), "pay", {"to": "x"})
    allowing = pausing(bench, ledger, {"decision": "allow"})

    done = await resume(allowing, call.pending.id, GRANT)
    again = await resume(allowing, call.pending.id, GRANT)

    assert done.outcome is Outcome.COMPLETED
    assert again.outcome is Outcome.DENIED
    assert len(bench.ran) == 1


async def test_a_refusal_holds_although_the_call_is_allowed_by_now(bench, check, resume, ledger):
    """A person's no is no, whatever the policy says meanwhile."""
    call = await check(pausing(bench, ledger, ASK), "pay", {"to": "x"})

    done = await resume(pausing(bench, ledger, {"decision": "allow"}), call.pending.id, REFUSE)

    assert done.result.code == "approval_refused"
    assert bench.ran == []


async def test_a_rewrite_that_changed_meanwhile_denies(bench, check, resume, ledger):
    """The same asking rule with another digest is not what was approved."""

    def rules(amount):
        return [
            {"decision": "transform", "transform": {"path": "args.amount", "set": amount}},
            {"match": {"args.amount.gt": 60}, **ASK},
        ]

    call = await check(pausing(bench, ledger, *rules(70)), "pay", {"to": "x"})

    done = await resume(pausing(bench, ledger, *rules(7000)), call.pending.id, GRANT)

    assert done.result.code == "policy_changed"
    assert bench.ran == []


async def test_what_the_model_itself_sent_is_known_on_resume(bench, check, resume, ledger):
    """Clauses 3, 24: a default that was filled in is not taken for an argument of the model's."""
    guard = pausing(bench, ledger, {**ASK, "match": {"given.amount": False}})
    call = await check(guard, "pay", {"to": "x"})

    call = await resume(guard, call.pending.id, GRANT)

    assert call.outcome is Outcome.COMPLETED
    assert bench.ran == [{"to": "x", "amount": 5}]


async def test_a_rewritten_call_that_was_approved_runs_rewritten(bench, check, resume, ledger):
    """Stored are the original arguments; the rewriting is judged and done again."""
    rules = [
        {"decision": "transform", "transform": {"path": "args.amount", "set": 70}},
        {"match": {"args.amount.gt": 60}, **ASK},
    ]
    guard = pausing(bench, ledger, *rules)
    call = await check(guard, "pay", {"to": "x", "amount": 2})

    done = await resume(guard, call.pending.id, GRANT)

    assert ledger.get(call.pending.id).args == {"to": "x", "amount": 2}
    assert done.outcome is Outcome.COMPLETED
    assert bench.ran == [{"to": "x", "amount": 70}]


async def test_a_tool_that_is_gone_denies(bench, check, resume, ledger):
    """A guard without the tool denies, as `check` would."""
    call = await check(pausing(bench, ledger, ASK), "pay", {"to": "x"})

    done = await resume(pausing(bench, ledger, ASK, tools=[]), call.pending.id, GRANT)

    assert done.outcome is Outcome.DENIED
    assert bench.ran == []


async def test_a_crash_between_claim_and_finish_is_uncertain(bench, check, resume, ledger):
    """Law 6, fault B025: what was claimed and never finished is never run again, and it is said."""
    guard = pausing(bench, ledger, ASK)
    call = await check(guard, "pay", {"to": "x"})
    ledger.claim(
        call.pending.id,
        expected=EntryState.PAUSED,
        holder="a process that died",
        now=datetime.now(UTC),
    )

    done = await resume(guard, call.pending.id, GRANT)

    assert (done.outcome, done.result.code) == (Outcome.DENIED, "uncertain")
    assert "not run again" in done.text
    assert bench.ran == []


async def test_an_edit_on_resume_is_judged(bench, check, resume, ledger):
    """Clause 23 holds on resume."""
    rules = [
        {"match": {"args.to": "mallory"}, "decision": "deny"},
        {"match": {"args.amount.gt": 100}, **ASK},
        {"decision": "allow"},
    ]
    guard = pausing(bench, ledger, *rules)
    good = await check(guard, "pay", {"to": "bo", "amount": 500})
    bad = await check(guard, "pay", {"to": "bo", "amount": 500})

    ran = await resume(
        guard, good.pending.id, ApprovalDecision(True, "ana", edited_args={"to": "bo"})
    )
    denied = await resume(
        guard, bad.pending.id, ApprovalDecision(True, "ana", edited_args={"to": "mallory"})
    )

    assert (ran.outcome, denied.result.code) == (Outcome.COMPLETED, "edit_denied")
    assert bench.ran == [{"to": "bo", "amount": 5}]


def two_sets():
    """Make a policy in which two layers each ask their own people."""
    return compile_policy(
        [
            PolicyLayer(
                name,
                {
                    "version": 1,
                    "rules": [{"id": "r", "match": "always", **ASK, "approvers": [name]}],
                },
            )
            for name in ("ana", "bo")
        ]
    )


async def test_each_set_of_several_answers_once(bench, check, resume, ledger):
    """Several approver sets: each resume answers the next, and the body waits for the last."""
    guard = bench.guard(policy=two_sets(), on_approval=pause_approval(ledger))
    call = await check(guard, "pay", {"to": "x"})

    first = await resume(guard, call.pending.id, ApprovalDecision(True, "ana"))
    waiting = list(bench.ran)
    second = await resume(guard, first.pending.id, ApprovalDecision(True, "bo"))
    asked = [
        event.body["approvers"] for event in bench.events if event.kind == "approval.requested"
    ]

    assert (first.outcome, waiting) == (Outcome.PENDING, [])
    assert second.outcome is Outcome.COMPLETED
    assert [list(names) for names in asked] == [["ana"], ["bo"]]
    assert len(bench.ran) == 1


@pytest.mark.parametrize("turn", [0, 1], ids=["first", "last"])
async def test_one_of_several_sets_cannot_edit_a_paused_call(bench, check, resume, ledger, turn):
    """Clause 23: everybody grants the same arguments, or nothing runs."""
    guard = bench.guard(policy=two_sets(), on_approval=pause_approval(ledger))
    call = await check(guard, "pay", {"to": "x"})
    for _ in range(turn):
        await resume(guard, call.pending.id, GRANT)

    done = await resume(
        guard, call.pending.id, ApprovalDecision(True, "bo", edited_args={"to": "y"})
    )

    assert (done.outcome, done.result.code) == (Outcome.DENIED, "edit_denied")
    assert bench.ran == []


async def test_a_required_record_that_fails_leaves_nothing_to_resume(bench, check, resume, ledger):
    """A pause that could not be recorded is denied, and its entry grants nothing."""
    from adjudge._record.sinks import required_sink

    ids = []

    def sink(event):
        if event.kind == "approval.pending":
            ids.append(event.body["approval_id"])
            raise OSError("disk full")

    guard = pausing(bench, ledger, ASK, sinks=[required_sink(sink)])

    call = await check(guard, "pay", {"to": "x"})
    later_on = await resume(guard, ids[0], GRANT)

    assert (call.outcome, call.result.code) == (Outcome.DENIED, "record_failed")
    assert later_on.result.code == "approval_spent"
    assert bench.ran == []


async def test_cancelled_while_it_is_claimed_the_pause_stays(bench, ledger):
    """A resumption that is cancelled before it began leaves the call paused."""
    guard = pausing(bench, ledger, ASK)
    call = await guard.check("pay", {"to": "x"})
    task = asyncio.ensure_future(guard.resume(call.pending.id, GRANT))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    done = await guard.resume(call.pending.id, GRANT)

    assert done.outcome is Outcome.COMPLETED
    assert len(bench.ran) == 1


async def test_cancelled_in_the_middle_of_the_claim_the_pause_stays(bench):
    """A claim that goes through although its caller was cancelled is given back."""
    reached, release = threading.Event(), threading.Event()

    class Slow(MemoryLedger):
        def claim(self, *args, **kwargs):
            reached.set()
            release.wait(5)
            return super().claim(*args, **kwargs)

    ledger = Slow()
    guard = pausing(bench, ledger, ASK)
    call = await guard.check("pay", {"to": "x"})
    task = asyncio.ensure_future(guard.resume(call.pending.id, GRANT))
    await asyncio.to_thread(reached.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ledger.get(call.pending.id).state is EntryState.PAUSED
    assert (await guard.resume(call.pending.id, GRANT)).outcome is Outcome.COMPLETED
    assert len(bench.ran) == 1


async def test_cancelled_in_the_middle_of_a_claim_that_fails_it_is_cancelled(bench):
    """What the ledger says after the cancellation does not take its place."""
    reached, release = threading.Event(), threading.Event()

    class Slow(MemoryLedger):
        def claim(self, *args, **kwargs):
            reached.set()
            release.wait(5)
            raise OSError("the disk is gone")

    guard = pausing(bench, Slow(), ASK)
    call = await guard.check("pay", {"to": "x"})
    task = asyncio.ensure_future(guard.resume(call.pending.id, GRANT))
    await asyncio.to_thread(reached.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    release.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.ran == []


def test_an_interrupted_claim_that_cannot_be_given_back_is_never_run(bench):
    """The interrupt passes, not what the ledger then said; the call stays claimed."""

    class Failing(MemoryLedger):
        broken = False

        def claim(self, *args, **kwargs):
            super().claim(*args, **kwargs)
            self.broken = True
            raise KeyboardInterrupt

        def get(self, *args, **kwargs):
            if self.broken:
                raise OSError("the disk is gone")
            return super().get(*args, **kwargs)

    ledger = Failing()
    guard = pausing(bench, ledger, ASK)
    call = guard.check_sync("pay", {"to": "x"})
    with pytest.raises(KeyboardInterrupt):
        guard.resume_sync(call.pending.id, GRANT)

    ledger.broken = False
    assert ledger.get(call.pending.id).state is EntryState.CLAIMED
    assert bench.ran == []


@pytest.mark.parametrize("operation", ["claim", "get"])
async def test_a_ledger_that_cannot_be_read_denies(bench, check, resume, operation):
    """Law 4: a store that fails grants nothing."""

    class Failing(MemoryLedger):
        def claim(self, *args, **kwargs):
            if operation == "claim":
                raise OSError("disk on fire")

        def get(self, id):
            raise OSError("disk on fire")

    guard = pausing(bench, Failing(), ASK)
    call = await check(guard, "pay", {"to": "x"})

    done = await resume(guard, call.pending.id, GRANT)

    assert (done.outcome, done.result.code) == (Outcome.DENIED, "ledger_failed")
    assert bench.ran == []


@pytest.mark.parametrize("answer", [True, "e1", object()], ids=["true", "text", "object"])
async def test_a_ledger_that_answers_oddly_denies(bench, check, resume, answer):
    """Fault kind 1: a claim is an entry of ours that we hold, and nothing else."""

    class Odd(MemoryLedger):
        def claim(self, *args, **kwargs):
            return answer

    guard = pausing(bench, Odd(), ASK)
    call = await check(guard, "pay", {"to": "x"})

    done = await resume(guard, call.pending.id, GRANT)

    assert (done.outcome, done.result.code) == (Outcome.DENIED, "ledger_failed")
    assert bench.ran == []


async def test_an_async_ledger_works_through_both_doors(bench, check, resume):
    """A ledger's methods may be async."""

    class Async:
        def __init__(self):
            self._inner = MemoryLedger()

        def __getattr__(self, name):
            method = getattr(self._inner, name)

            async def call(*args, **kwargs):
                await asyncio.sleep(0)
                return method(*args, **kwargs)

            return call

    guard = pausing(bench, Async(), ASK)
    call = await check(guard, "pay", {"to": "x"})

    done = await resume(guard, call.pending.id, GRANT)

    assert done.outcome is Outcome.COMPLETED


def test_one_guard_has_one_ledger():
    """Two ledgers at once are an error when the guard is made."""
    policy = compile_policy({"version": 1, "rules": []})

    with pytest.raises(GovernError):
        ToolGuard(policy=policy, on_approval=pause_approval(MemoryLedger()), ledger=MemoryLedger())


@pytest.mark.parametrize("seconds", [0, -1, True, float("nan"), "1h"])
def test_a_pause_needs_a_positive_time(seconds):
    """A time-out that is none is an error when the handler is made."""
    with pytest.raises(ValueError):
        pause_approval(MemoryLedger(), timeout_seconds=seconds)


def test_a_pause_needs_a_ledger():
    """The path of a ledger is none; it would deny every call that needs approval."""
    with pytest.raises(TypeError, match=r"SQLiteLedger\(path\)"):
        pause_approval("ledger.db")
