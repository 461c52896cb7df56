"""Runs of a framework that can pause: the first look, and the going on (clauses 22, 24)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adjudge._enforcement.approvals import auto_approve
from adjudge._enforcement.runs import GovernedRun
from adjudge._ledger.entries import EntryState
from adjudge._record.sinks import required_sink
from adjudge._types import ApprovalDecision, CallContext, Outcome, Principal
from adjudge.errors import LedgerError

ASK = {"decision": "approve_required", "reason": "big"}
GRANT = ApprovalDecision(True, "ana", "fine")
REFUSE = ApprovalDecision(False, "ana", "no")
PAUSED = ["step.proposed", "policy.evaluated", "approval.requested", "approval.pending"]
WENT_ON = ["policy.evaluated", "approval.granted", "action.completed"]


class Caller:
    """A `context=` that counts how often it is asked."""

    def __init__(self, name="eve"):
        self.name = name
        self.asked = 0

    def __call__(self):
        """Say who is calling."""
        self.asked += 1
        return CallContext(Principal("user", self.name))


class TestFirstLook:
    async def test_what_a_person_must_be_asked_about_is_left_waiting(self, bench, desk):
        """Clause 24: the call is entered and recorded, and nothing has run."""
        guard, run = desk.guard(ASK), GovernedRun()

        pending = await desk.look(guard, desk.call(run))

        entry = desk.ledger.get(pending.id)
        assert PAUSED == bench.kinds
        assert (EntryState.PAUSED, run.id) == (entry.state, entry.run)
        assert ("c1", "big") == (pending.call_id, pending.decision.reason)
        assert [] == bench.ran

    async def test_asking_again_changes_nothing(self, bench, desk):
        """However often a framework asks, the call waits once."""
        guard, run = desk.guard(ASK), GovernedRun()
        first = await desk.look(guard, desk.call(run))

        again = await desk.look(guard, desk.call(run))

        assert first.id == again.id
        assert PAUSED == bench.kinds
        assert 1 == len(desk.ledger.of_run(run.id))

    @pytest.mark.parametrize(
        "rule",
        [
            {"decision": "allow"},
            {"decision": "deny"},
            {"decision": "dry_run"},
            {"decision": "transform", "transform": {"path": "args.amount", "set": 1}},
        ],
        ids=lambda rule: rule["decision"],
    )
    async def test_any_other_verdict_is_left_to_the_body(self, bench, desk, rule):
        """Nobody is asked, nothing is entered, and nothing recorded."""
        guard, run = desk.guard(rule), GovernedRun()

        assert await desk.look(guard, desk.call(run)) is None
        assert ([], ()) == (bench.kinds, desk.ledger.of_run(run.id))

    @pytest.mark.parametrize(
        "arguments", ['{"to": "x", "to": "y"}', "pay x", "[]", {"to": float("nan")}]
    )
    async def test_arguments_that_get_no_verdict_are_left_to_the_body(self, bench, desk, arguments):
        """Clause 2: nobody is asked about what cannot be read."""
        guard, run = desk.guard(ASK), GovernedRun()

        assert await desk.look(guard, desk.call(run, arguments=arguments)) is None
        assert ([], ()) == (bench.kinds, desk.ledger.of_run(run.id))

    async def test_a_guard_that_asks_in_place_leaves_nothing_waiting(self, bench, desk):
        """Where a handler answers, it does so at the body."""
        guard, run = desk.guard(ASK, on_approval=auto_approve()), GovernedRun()

        looked = await desk.look(guard, desk.call(run))
        done = await desk.body(guard, desk.call(run))

        assert (None, Outcome.COMPLETED) == (looked, done.outcome)

    async def test_a_call_without_a_run_is_an_error(self, desk):
        """There is nothing that could wait."""
        with pytest.raises(ValueError, match="names no run"):
            await desk.look(desk.guard(ASK), desk.call(None))

    async def test_who_is_calling_is_asked_once(self, bench, desk):
        """Clause 26: what the look found out holds at the body, under the same number."""
        guard, run, caller = desk.guard({"decision": "allow"}), GovernedRun(), Caller()
        await desk.look(guard, desk.call(run), context=caller)

        done = await desk.body(guard, desk.call(run), context=caller)

        assert 1 == caller.asked
        assert "eve" == done.request.context.principal.id
        assert {0} == {event.seq for event in bench.events}

    async def test_who_is_calling_is_asked_for_each_call(self, desk):
        """What a look found out serves once: an equal call later is a call of its own."""
        guard, run, caller = desk.guard({"decision": "allow"}), GovernedRun(), Caller()
        await desk.look(guard, desk.call(run), context=caller)
        await desk.body(guard, desk.call(run), context=caller)

        await desk.body(guard, desk.call(run), context=caller)

        assert 2 == caller.asked

    async def test_a_context_that_fails_is_denied_at_the_body(self, bench, desk):
        """Law 4: nothing is left waiting for a caller who is unknown."""
        guard, run = desk.guard(ASK), GovernedRun()

        looked = await desk.look(guard, desk.call(run), context=lambda: None)
        done = await desk.body(guard, desk.call(run, may_pause=False), context=lambda: None)

        assert (None, "context_failed") == (looked, done.result.code)
        assert ["step.proposed", "action.denied"] == bench.kinds

    async def test_a_ledger_that_fails_leaves_nothing_waiting(self, bench, desk, monkeypatch):
        """Laws 4, 7: what cannot be entered is denied at the body, and has one end on record."""
        guard, run = desk.guard(ASK), GovernedRun()

        def fail(_):
            raise LedgerError("disk full")

        monkeypatch.setattr(desk.ledger, "add", fail)

        looked = await desk.look(guard, desk.call(run))
        done = await desk.body(guard, desk.call(run))

        assert (None, "ledger_failed") == (looked, done.result.code)
        assert ([], ()) == (bench.ran, run.entries)
        assert ["step.proposed", "policy.evaluated", "action.denied"] == bench.kinds

    @pytest.mark.parametrize("kind", PAUSED)
    async def test_a_required_record_that_fails_leaves_nothing_waiting(self, bench, desk, kind):
        """A pause that is not on record grants nothing."""

        def sink(event):
            if event.kind == kind:
                raise OSError("disk full")

        guard, run = desk.guard(ASK, sinks=[required_sink(sink)]), GovernedRun()

        looked = await desk.look(guard, desk.call(run))
        done = await desk.body(guard, desk.call(run))
        states = {entry.state for entry in desk.ledger.of_run(run.id)}

        assert (None, "record_failed", ()) == (looked, done.result.code, run.entries)
        assert ([], set()) == (bench.ran, states - {EntryState.FINISHED})


class TestPausing:
    async def test_a_call_waits_where_its_framework_can_still_leave_it(self, bench, desk):
        """Without a look the body's door leaves it waiting: no text, no terminal event."""
        guard, run = desk.guard(ASK), GovernedRun()

        call = await desk.body(guard, desk.call(run))

        assert (Outcome.PENDING, None) == (call.outcome, call.text)
        assert (PAUSED, []) == (bench.kinds, bench.ran)
        assert [call.pending.id] == [entry.id for entry in run.entries]

    async def test_a_call_that_cannot_wait_any_more_is_denied(self, bench, desk):
        """Law 4: a framework that cannot pause at this point gets a denial, and no entry."""
        guard, run = desk.guard(ASK), GovernedRun()

        call = await desk.body(guard, desk.call(run, may_pause=False))

        assert (Outcome.DENIED, "cannot_pause") == (call.outcome, call.result.code)
        assert ([], ()) == (bench.ran, desk.ledger.of_run(run.id))
        assert ["action.denied"] == bench.terminals

    async def test_what_waits_can_be_read_from_the_ledger(self, desk):
        """A person is shown the final arguments of each call, in the order of asking."""
        rewrite = {"decision": "transform", "transform": {"path": "args.amount", "set": 70}}
        guard, run = desk.guard(rewrite, {"match": {"args.amount.gt": 60}, **ASK}), GovernedRun()
        for name in ("c1", "c2"):
            await desk.body(guard, desk.call(run, call_id=name))

        waiting = await desk.waiting(desk.guard(), run.id)

        assert ["c1", "c2"] == [pending.call_id for pending in waiting]
        assert {"to": "x", "amount": 5} == waiting[0].request.args
        assert {"to": "x", "amount": 70} == waiting[0].decision.effective_args

    async def test_what_was_answered_waits_for_nobody(self, desk):
        """`waiting` names what a person is still to be asked, and nothing for a run unknown."""
        guard = desk.guard(ASK)
        call = await desk.answered(guard)

        assert () == await desk.waiting(guard, call.run.id)
        assert () == await desk.waiting(guard, "another")
        assert () == await desk.waiting(desk.bench.guard(ASK), call.run.id)


EDITS = {
    "allowed": ({"to": "bo", "amount": 1}, None),
    "asks-the-same": ({"to": "bo", "amount": 70}, None),
    "denied": ({"to": "mallory", "amount": 1}, "edit_denied"),
    "asks-otherwise": ({"to": "bo", "amount": 7000}, "edit_denied"),
    "rewritten": ({"to": "cy", "amount": 1}, "edit_denied"),
}


class TestGoingOn:
    @pytest.mark.parametrize("looks", [False, True], ids=["at-the-body", "after-a-look"])
    async def test_a_granted_call_runs_once_as_the_same_call(self, bench, desk, looks):
        """Clause 24: it is judged again, not proposed again, and keeps its number."""
        guard, run = desk.guard(ASK), GovernedRun()
        await desk.body(guard, desk.call(run, call_id="c0"))
        call = desk.call(run)
        point = desk.look if looks else desk.body
        await point(guard, call)
        ids = [pending.id for pending in await desk.waiting(guard, run.id)]
        before = len(bench.events)
        again = replace(call, run=await desk.reopen(guard, {ids[1]: GRANT}), may_pause=False)

        done = await desk.body(guard, again)

        assert (Outcome.COMPLETED, "paid") == (done.outcome, done.result.value)
        assert [{"to": "x", "amount": 5}] == bench.ran
        assert WENT_ON == bench.kinds[before:]
        assert {1} == {event.seq for event in bench.events[before:]}
        assert "resume" == bench.body("policy.evaluated")["phase"]
        assert "completed" == desk.ledger.get(ids[1]).outcome

    async def test_a_look_at_a_call_that_was_answered_is_quiet(self, bench, desk):
        """A framework that asks again whether approval is needed hears no."""
        guard = desk.guard(ASK)
        call = await desk.answered(guard)
        before = len(bench.events)

        assert await desk.look(guard, call) is None
        assert Outcome.COMPLETED is (await desk.body(guard, call)).outcome
        assert WENT_ON == bench.kinds[before:]

    async def test_a_refused_call_is_denied_by_value(self, bench, desk):
        """A refusal is told where the body would have run, and never runs."""
        guard = desk.guard(ASK)
        call = await desk.answered(guard, REFUSE)

        done = await desk.body(guard, call)

        assert "[denied] approval refused by ana: no" == done.text
        assert ([], ["action.denied"]) == (bench.ran, bench.terminals)

    @pytest.mark.parametrize("edit", EDITS)
    async def test_an_edit_is_judged_as_a_call_of_its_own(self, bench, desk, edit):
        """Clause 23: allow, or the same asking rule, runs as edited; anything else denies."""
        guard = desk.guard(
            {"match": {"args.to": "mallory"}, "decision": "deny"},
            {"match": {"args.amount.gt": 1000}, **ASK},
            {"match": {"args.amount.gt": 60}, **ASK},
            {
                "match": {"args.to": "cy"},
                "decision": "transform",
                "transform": {"path": "args.amount", "set": 2},
            },
            {"decision": "allow"},
        )
        args, code = EDITS[edit]
        answer = ApprovalDecision(True, "ana", edited_args=args)
        call = await desk.answered(guard, answer, arguments={"to": "x", "amount": 80})

        done = await desk.body(guard, call)

        assert (code or "") == done.result.code
        assert ([] if code else [args]) == bench.ran

    async def test_an_edit_hands_on_what_the_framework_gets(self, desk):
        """Law 5: a framework that takes text gets the edited arguments as text."""
        guard = desk.guard({"match": {"args.amount.gt": 60}, **ASK}, {"decision": "allow"})
        edited = ApprovalDecision(True, "ana", edited_args={"to": "bo"})
        call = await desk.answered(guard, edited, arguments='{"to": "x", "amount": 80}')

        effective = (await desk.body(guard, call, lambda effective: effective)).result.value

        assert ('{"to": "bo"}', True) == (effective.text, effective.changed)

    async def test_an_expired_call_never_runs(self, bench, desk):
        """Clause 22: an answer that comes too late is none, and the end is told once."""
        guard = desk.guard({**ASK, "timeout_seconds": 60})
        call, pending = await desk.paused(guard)
        late = _later(guard, timedelta(seconds=60))
        run = await desk.reopen(late, {pending.id: GRANT})

        done = await desk.body(late, replace(call, run=run))
        again = await desk.body(
            late, replace(call, run=await desk.reopen(late, {pending.id: GRANT}))
        )

        assert frozenset() == run.unanswered
        assert ("approval_expired", "approval_spent") == (done.result.code, again.result.code)
        assert ([], ["approval.expired", "action.denied"]) == (bench.ran, bench.terminals)

    async def test_an_answer_in_time_is_of_no_use_later(self, bench, desk):
        """Clause 22: what was granted and not gone on with expires as well."""
        guard = desk.guard({**ASK, "timeout_seconds": 60})
        call = await desk.answered(guard)

        done = await desk.body(_later(guard, timedelta(seconds=60)), call)

        assert "approval_expired" == done.result.code
        assert [] == bench.ran

    async def test_a_call_that_nobody_answered_is_denied_and_keeps_waiting(self, bench, desk):
        """Fault kind 6: a framework's own approval is no answer, and costs the call nothing."""
        guard, run = desk.guard(ASK), GovernedRun()
        first, other = (desk.call(run, call_id=name) for name in ("c1", "c2"))
        ids = [(await desk.body(guard, call)).pending.id for call in (first, other)]
        reopened = await desk.reopen(guard, {ids[0]: GRANT})

        early = await desk.body(guard, replace(other, run=reopened))
        later = await desk.body(
            guard, replace(other, run=await desk.reopen(guard, {ids[1]: GRANT}))
        )

        assert frozenset({ids[1]}) == reopened.unanswered
        assert ("unanswered", Outcome.COMPLETED) == (early.result.code, later.outcome)
        assert 1 == len(bench.ran)

    async def test_a_replayed_run_runs_nothing(self, bench, desk):
        """Fault X029: the same saved run, opened again with the same answer, starts no body."""
        guard = desk.guard(ASK)
        call, pending = await desk.paused(guard)
        runs = [await desk.reopen(guard, {pending.id: GRANT}) for _ in range(2)]

        done = [await desk.body(guard, replace(call, run=run)) for run in runs]
        late = await desk.body(
            guard, replace(call, run=await desk.reopen(guard, {pending.id: GRANT}))
        )

        assert ["", "approval_spent", "approval_spent"] == [
            each.result.code for each in (*done, late)
        ]
        assert 1 == len(bench.ran)

    async def test_a_call_that_a_crash_lost_is_not_run_again(self, bench, desk):
        """Law 6, fault B025: claimed and never finished is uncertain, and that is said."""
        guard = desk.guard(ASK)
        call = await desk.answered(guard)
        (entry,) = call.run.entries
        desk.ledger.claim(
            entry.id, expected=EntryState.ANSWERED, holder="dead", now=datetime.now(UTC)
        )

        done = await desk.body(guard, call)

        assert (Outcome.DENIED, "uncertain") == (done.outcome, done.result.code)
        assert [] == bench.ran


def _later(guard, delay):
    """Give the guard a clock that is ahead."""
    guard._settings = replace(guard._settings, now=lambda: datetime.now(UTC) + delay)
    return guard
