"""What is no longer the call that was asked about grants nothing (clauses 22, 24; law 5)."""

import asyncio
from dataclasses import replace

import pytest

from adjudge._enforcement.runs import GovernedRun
from adjudge._types import ApprovalDecision, CallContext, Outcome, Principal

ASK = {"decision": "approve_required", "reason": "big"}
GRANT = ApprovalDecision(True, "ana", "fine")
REFUSE = ApprovalDecision(False, "ana", "no")
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
async def test_a_policy_that_changed_meanwhile_is_heeded(bench, desk, change):
    """Fault B037: what is not the same ask denies, once, and the grant is gone."""
    rules, code = CHANGES[change]
    call = await desk.answered(desk.guard(ASK))
    changed = desk.guard(*rules)

    done = await desk.body(changed, call)
    again = await desk.body(
        changed, replace(call, run=await desk.reopen(changed, {_id(call, desk): GRANT}))
    )

    assert (Outcome.DENIED, code) == (done.outcome, done.result.code)
    assert "approval_spent" == again.result.code
    assert [] == bench.ran


async def test_a_rewrite_that_changed_meanwhile_denies(bench, desk):
    """The same asking rule with another digest is not what was approved."""

    def rules(amount):
        return [
            {"decision": "transform", "transform": {"path": "args.amount", "set": amount}},
            {"match": {"args.amount.gt": 60}, **ASK},
        ]

    call = await desk.answered(desk.guard(*rules(70)))

    done = await desk.body(desk.guard(*rules(7000)), call)

    assert ("policy_changed", []) == (done.result.code, bench.ran)


async def test_a_rewritten_call_that_was_approved_runs_rewritten(bench, desk):
    """Stored are the original arguments; the rewriting is judged and done again."""
    rewrite = {"decision": "transform", "transform": {"path": "args.amount", "set": 70}}
    guard = desk.guard(rewrite, {"match": {"args.amount.gt": 60}, **ASK})
    call = await desk.answered(guard)

    await desk.body(guard, call)

    assert [{"to": "x", "amount": 70}] == bench.ran


async def test_what_is_allowed_by_now_runs(bench, desk):
    """Allowed meanwhile and granted: the call runs, once."""
    call = await desk.answered(desk.guard(ASK))

    done = await desk.body(desk.guard({"decision": "allow"}), call)

    assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))


async def test_a_refusal_holds_although_the_call_is_allowed_by_now(bench, desk):
    """A person's no is no, whatever the policy says meanwhile."""
    call = await desk.answered(desk.guard(ASK), REFUSE)

    done = await desk.body(desk.guard({"decision": "allow"}), call)

    assert ("approval_refused", []) == (done.result.code, bench.ran)


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"to": "eve", "amount": 5}},
        {"arguments": {"to": "x", "amount": 5.0}},
        {"arguments": {"to": "x"}},
        {"tool": "wire"},
        {"namespace": "bank"},
        {"call_id": "c2"},
        {"agent": "helper"},
        {"parent": "c0"},
        {"attempt": 2},
    ],
    ids=str,
)
async def test_a_call_that_was_changed_is_another_call(bench, desk, change):
    """Clause 22: a grant is for one occurrence; what differs in anything is asked about anew."""
    guard = desk.guard(ASK)
    call = await desk.answered(guard)

    other = await desk.body(guard, replace(call, may_pause=False, **change))
    own = await desk.body(guard, call)

    assert ("cannot_pause", Outcome.COMPLETED) == (other.result.code, own.outcome)
    assert [{"to": "x", "amount": 5}] == bench.ran


async def test_other_arguments_under_the_same_key_are_denied(bench, desk):
    """Law 5: a key that an integration made itself does not stand for the arguments."""
    guard = desk.guard(ASK)
    call = await desk.answered(guard, key="mine")

    done = await desk.body(guard, replace(call, arguments={"to": "eve", "amount": 5}))

    assert ("other_call", []) == (done.result.code, bench.ran)


async def test_the_same_arguments_in_another_spelling_are_the_same(bench, desk):
    """A call is known by its values: the order of keys and the space between them are nothing."""
    guard = desk.guard(ASK)
    call = await desk.answered(guard, arguments='{"to": "x", "amount": 5}')

    done = await desk.body(guard, replace(call, arguments='{ "amount":5,"to" : "\\u0078" }'))

    assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))


class TestCallers:
    @staticmethod
    def _who(name, kind="user"):
        return lambda: CallContext(Principal(kind, name), "prod")

    async def test_a_call_goes_on_for_whom_it_was_asked_about(self, bench, desk):
        """Clause 26: the run's context says who is calling, again."""
        guard = desk.guard({"match": {"context.principal.id": "eve"}, **ASK})
        call, run = desk.call(GovernedRun()), None
        pending = (await desk.body(guard, call, context=self._who("eve"))).pending
        run = await desk.reopen(guard, {pending.id: GRANT})

        done = await desk.body(guard, replace(call, run=run), context=self._who("eve"))

        assert (Outcome.COMPLETED, "prod") == (
            done.outcome,
            done.request.context.environment,
        )

    @pytest.mark.parametrize("who", [("bo", "user"), ("eve", "service")])
    async def test_a_grant_is_not_for_somebody_else(self, bench, desk, who):
        """Fault kind 6: a run that is resumed by another gets nothing of what was granted."""
        guard = desk.guard(ASK)
        call = desk.call(GovernedRun())
        pending = (await desk.body(guard, call, context=self._who("eve"))).pending
        run = await desk.reopen(guard, {pending.id: GRANT})

        done = await desk.body(guard, replace(call, run=run), context=self._who(*who))

        assert ("other_caller", []) == (done.result.code, bench.ran)

    @pytest.mark.parametrize("answer", [None, "eve"], ids=repr)
    async def test_a_context_that_fails_on_resume_denies(self, bench, desk, answer):
        """Law 4: what the ledger knows of the caller does not stand in for the run's own word."""
        guard = desk.guard(ASK)
        call = desk.call(GovernedRun())
        pending = (await desk.body(guard, call, context=self._who("eve"))).pending
        run = await desk.reopen(guard, {pending.id: GRANT})

        done = await desk.body(guard, replace(call, run=run), context=lambda: answer)

        assert ("context_failed", []) == (done.result.code, bench.ran)
        assert ["action.denied"] == bench.terminals

    async def test_without_a_context_it_is_the_guards_own_principal_that_counts(self, bench, desk):
        """Clause 26: a guard of somebody else goes on for nobody, and uses up no grant."""
        eve = desk.guard(ASK, principal=Principal("user", "eve"))
        call = await desk.answered(eve)

        turned = await desk.body(desk.guard(ASK, principal=Principal("user", "bob")), call)
        again = replace(call, run=await desk.reopen(eve, {}, run=call.run.id))
        done = await desk.body(eve, again)

        assert ("other_caller", "") == (turned.result.code, done.result.code)
        assert 1 == len(bench.ran)


class TestRepeatedIds:
    @pytest.mark.parametrize("call_id", ["pay", "", None], ids=repr)
    async def test_calls_under_one_id_have_each_their_own_approval(self, bench, desk, call_id):
        """Fault X037: a provider that repeats ids, or has none, makes no two calls one."""
        guard, run = desk.guard(ASK), GovernedRun()
        calls = [
            desk.call(run, call_id=call_id, arguments={"to": name, "amount": 5})
            for name in ("bo", "eve")
        ]
        ids = [(await desk.body(guard, call)).pending.id for call in calls]
        again = await desk.reopen(guard, {ids[0]: GRANT, ids[1]: REFUSE})

        done = [await desk.body(guard, replace(call, run=again)) for call in calls]

        assert ["", "approval_refused"] == [each.result.code for each in done]
        assert [{"to": "bo", "amount": 5}] == bench.ran

    async def test_two_runs_under_one_id_share_nothing(self, bench, desk):
        """Fault X037: the same id in another run is another call."""
        guard = desk.guard(ASK)
        answered = await desk.answered(guard)
        other = desk.call(GovernedRun(), may_pause=False)

        theirs = await desk.body(guard, other)
        ours = await desk.body(guard, answered)

        assert ("cannot_pause", Outcome.COMPLETED) == (theirs.result.code, ours.outcome)
        assert 1 == len(bench.ran)

    async def test_parallel_nested_agents_under_one_id_share_nothing(self, bench, desk):
        """Fault X037: the calls around a call tell equal ones of nested agents apart."""
        guard, run = desk.guard(ASK), GovernedRun()
        calls = [desk.call(run, agent="helper", parent=parent) for parent in ("/a", "/b")]
        pendings = [(await desk.body(guard, call)).pending for call in calls]
        again = await desk.reopen(guard, {pendings[0].id: GRANT})

        done = await asyncio.gather(*(desk.body(guard, replace(call, run=again)) for call in calls))

        assert ["", "unanswered"] == [each.result.code for each in done]
        assert 1 == len(bench.ran)

    @pytest.mark.parametrize("other", ["run", "call"])
    async def test_equal_calls_have_digests_of_their_own(self, desk, other):
        """Clause 22: a digest binds what a person was shown to one occurrence."""
        guard, run = desk.guard(ASK), GovernedRun()
        call = desk.call(run)
        equal = desk.call(run, call_id="c2") if other == "call" else desk.call(GovernedRun())

        digests = {(await desk.body(guard, each)).pending.digest for each in (call, equal)}

        assert 2 == len(digests)

    async def test_the_same_call_once_more_is_a_new_call(self, bench, desk):
        """Clause 22: what went on is over; proposed again under its old id, it is asked about."""
        guard = desk.guard(ASK)
        call = await desk.answered(guard)
        await desk.body(guard, call)
        before = len(bench.events)

        again = await desk.body(guard, call)

        assert Outcome.PENDING is again.outcome
        assert ["step.proposed", "policy.evaluated"] == bench.kinds[before : before + 2]
        assert 1 == len(bench.ran)


def _id(call, desk):
    (entry,) = desk.ledger.of_run(call.run.id)
    return entry.id
