"""A body that suspends its framework's run and is entered again: one execution (law 6)."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adjudge._enforcement.runs import GovernedRun
from adjudge._ledger.entries import EntryState
from adjudge._types import ApprovalDecision, Outcome
from adjudge.errors import LedgerError

ALLOW = {"match": {"tool": "ask"}, "decision": "allow"}
ASK = {"match": {"tool": "pay"}, "decision": "approve_required"}
GRANT = ApprovalDecision(True, "ana", "fine")
NOTES = [{"id": "note", "phase": phase} for phase in ("pre", "post")]


class Suspended(BaseException):
    """How the framework leaves a body whose inside waits."""


def suspend(_):
    """Run until something inside waits."""
    raise Suspended


class Nesting:
    """A call whose body holds a nested agent, and the call of that agent, which waits."""

    def __init__(self, desk, guard, **changed):
        self.desk = desk
        self.guard = guard
        run = GovernedRun()
        fields = {"tool": "ask", "arguments": {"q": 1}, "call_id": "c0"}
        self.outer = desk.call(run, control_flow=(Suspended,), **{**fields, **changed})
        self.inner = desk.call(run, agent="helper", parent="/c0")

    async def suspend(self, call=None, guard=None):
        """Come to the body, which suspends itself."""
        with pytest.raises(Suspended):
            await self.desk.body(guard or self.guard, call or self.outer, suspend)

    async def begin(self):
        """Propose both calls; give what is pending."""
        pending = (await self.desk.body(self.guard, self.inner)).pending
        await self.suspend()
        return pending

    async def reopened(self, answer=GRANT, guard=None):
        """Begin, have the inner call answered, and give the outer one as it is now."""
        pending = await self.begin()
        run = await self.desk.reopen(guard or self.guard, {pending.id: answer})
        return replace(self.outer, run=run)

    @property
    def entry(self):
        """Give the ledger's entry of the outer call."""
        entries = self.desk.ledger.of_run(self.outer.run.id)
        return next(entry for entry in entries if entry.tool == "ask")


@pytest.fixture
def nesting(desk):
    """A nested agent that asks, in a call that is allowed."""
    return Nesting(desk, desk.guard(ALLOW, ASK))


async def test_a_suspended_body_is_on_record_and_in_the_ledger(bench, nesting):
    """Suspended is no end: the entry waits for the run to go on."""
    await nesting.suspend()

    assert ["step.proposed", "policy.evaluated", "action.suspended"] == bench.kinds
    assert [] == bench.terminals
    assert EntryState.SUSPENDED is nesting.entry.state


async def test_its_re_entry_is_the_same_execution(bench, desk, nesting):
    """Law 6: no second proposal, the same number, one terminal event."""
    call = await nesting.reopened()
    before = len(bench.events)

    done = await desk.body(nesting.guard, call, lambda _: "asked")

    assert (Outcome.COMPLETED, "asked") == (done.outcome, done.result.value)
    assert ["policy.evaluated", "action.completed"] == bench.kinds[before:]
    assert {nesting.entry.seq} == {event.seq for event in bench.events[before:]}
    assert "completed" == nesting.entry.outcome


async def test_it_may_suspend_itself_again(bench, desk, nesting):
    """Each time the run goes on the body is entered again, until it ends, once."""
    call = await nesting.reopened()
    await nesting.suspend(call)
    entries = desk.ledger.of_run(call.run.id)

    done = await desk.body(
        nesting.guard, replace(call, run=GovernedRun(call.run.id, entries)), lambda _: "asked"
    )

    assert Outcome.COMPLETED is done.outcome
    assert ["action.completed"] == bench.terminals
    assert 2 == bench.kinds.count("action.suspended")


async def test_a_call_beside_it_is_not_concerned(bench, desk, nesting):
    """A sibling that ended has no entry; were it proposed again, it would be a new call."""
    sibling = replace(nesting.outer, call_id="c9")
    await desk.body(nesting.guard, sibling, lambda _: "done")
    await nesting.begin()

    assert {"c0", "c1"} == {e.call_id for e in desk.ledger.of_run(nesting.outer.run.id)}


async def test_obligations_are_met_once(bench, desk):
    """Clause 25: `pre` when the body began, `post` when it has ended."""
    met = []
    guard = desk.guard(
        {**ALLOW, "obligations": NOTES},
        ASK,
        obligations={"note": lambda obligation, *_: met.append(obligation.phase)},
    )
    call = await Nesting(desk, guard).reopened()
    begun = list(met)

    await desk.body(guard, call, lambda _: "asked")

    assert (["pre"], ["pre", "post"]) == (begun, met)


CHANGES = {
    "denied": ({"decision": "deny", "reason": "stop"}, "denied"),
    "previewed": ({"decision": "dry_run"}, "policy_changed"),
    "asked": ({"decision": "approve_required"}, "policy_changed"),
    "rewritten": (
        {"decision": "transform", "transform": {"path": "args.q", "set": 2}},
        "policy_changed",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_policy_that_changed_meanwhile_is_heeded(bench, desk, nesting, change):
    """Clause 24: what may not begin now may not go on either."""
    rule, code = CHANGES[change]
    call = await nesting.reopened()
    changed = desk.guard({**ALLOW, **rule}, ASK)

    done = await desk.body(changed, call)

    assert (code, []) == (done.result.code, bench.ran)
    assert "denied" == nesting.entry.outcome


async def test_a_rewritten_call_goes_on_rewritten(bench, desk):
    """The same rewriting gives the same arguments, and they are what the body gets."""
    rewrite = {**ALLOW, "decision": "transform", "transform": {"path": "args.q", "set": 2}}
    guard = desk.guard(rewrite, ASK)
    call = await Nesting(desk, guard).reopened()

    await desk.body(guard, call)

    assert [{"q": 2}] == bench.ran


@pytest.mark.parametrize("edit", [None, {"q": 3}], ids=["as-proposed", "edited"])
async def test_a_granted_call_that_suspends_itself_needs_no_second_grant(bench, desk, edit):
    """Clause 22: the grant covers the execution, with the edit under which it began."""
    asks = {"match": {"tool": "ask"}, "decision": "approve_required"}
    guard = desk.guard(asks, ASK)
    nesting = Nesting(desk, guard)
    pending = (await desk.body(guard, nesting.outer)).pending
    answer = ApprovalDecision(True, "ana", edited_args=edit)
    run = await desk.reopen(guard, {pending.id: answer})
    await nesting.suspend(replace(nesting.outer, run=run))
    again = GovernedRun(run.id, desk.ledger.of_run(run.id))

    done = await desk.body(guard, replace(nesting.outer, run=again))

    assert Outcome.COMPLETED is done.outcome
    assert [edit or {"q": 1}] == bench.ran
    assert 1 == bench.kinds.count("approval.granted")


async def test_an_edit_that_is_denied_by_now_does_not_go_on(bench, desk):
    """Clauses 23, 24: the edited arguments are judged again, too."""
    asks = {"match": {"tool": "ask"}, "decision": "approve_required", "id": "asks"}
    guard = desk.guard(asks, ASK)
    nesting = Nesting(desk, guard)
    pending = (await desk.body(guard, nesting.outer)).pending
    run = await desk.reopen(
        guard, {pending.id: ApprovalDecision(True, "ana", edited_args={"q": 3})}
    )
    await nesting.suspend(replace(nesting.outer, run=run))
    stricter = desk.guard({"match": {"args.q": 3}, "decision": "deny"}, asks, ASK)
    again = GovernedRun(run.id, desk.ledger.of_run(run.id))

    done = await desk.body(stricter, replace(nesting.outer, run=again))

    assert ("edit_denied", []) == (done.result.code, bench.ran)


async def test_a_replayed_run_does_not_enter_it_again(bench, desk, nesting):
    """Law 6: finished is finished, whatever saved run says otherwise."""
    pending = await nesting.begin()
    runs = [await desk.reopen(nesting.guard, {pending.id: GRANT}) for _ in range(2)]

    done = [await desk.body(nesting.guard, replace(nesting.outer, run=run)) for run in runs]

    assert ["", "approval_spent"] == [each.result.code for each in done]
    assert [{"q": 1}] == bench.ran


async def test_two_that_go_on_at_once_enter_it_once(bench, desk, nesting):
    """Clause 24: the one that is late is told that the outcome is not known yet."""
    pending = await nesting.begin()
    runs = [await desk.reopen(nesting.guard, {pending.id: GRANT}) for _ in range(2)]
    entered, leave = asyncio.Event(), asyncio.Event()

    async def execute(_):
        entered.set()
        await leave.wait()
        return "asked"

    first = asyncio.ensure_future(
        nesting.guard.govern_call(replace(nesting.outer, run=runs[0]), execute)
    )
    await entered.wait()
    second = await desk.body(nesting.guard, replace(nesting.outer, run=runs[1]))
    leave.set()

    assert Outcome.COMPLETED is (await first).outcome
    assert ("uncertain", []) == (second.result.code, bench.ran)


async def test_a_body_that_fails_in_the_end_has_failed(bench, desk, nesting):
    """What the body raises passes, and is the one end on record."""
    call = await nesting.reopened()

    def fail(_):
        raise KeyError("x")

    with pytest.raises(KeyError):
        await desk.body(nesting.guard, call, fail)

    assert (["action.failed"], "failed") == (bench.terminals, nesting.entry.outcome)


async def test_a_suspension_lasts_longer_than_an_approval(bench, desk, nesting):
    """A body that waits is not ended by the time that a person has for an answer."""
    await nesting.suspend()

    assert nesting.entry.expires_at - datetime.now(UTC) > timedelta(days=365)


async def test_where_the_ledger_fails_the_call_is_a_new_one(bench, desk, nesting, monkeypatch):
    """What could not be kept is proposed and judged again, with an end of its own."""

    def fail(_):
        raise LedgerError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(desk.ledger, "add", fail)
        await nesting.suspend()

    done = await desk.body(nesting.guard, nesting.outer, lambda _: "asked")

    assert Outcome.COMPLETED is done.outcome
    assert 2 == bench.kinds.count("step.proposed")


async def test_where_the_ledger_fails_a_granted_call_is_uncertain(bench, desk, monkeypatch):
    """Law 4: a grant whose body began and cannot be kept track of lets nothing run again."""
    guard = desk.guard({**ALLOW, "decision": "approve_required"}, ASK)
    nesting = Nesting(desk, guard)
    pending = (await desk.body(guard, nesting.outer)).pending
    runs = [await desk.reopen(guard, {pending.id: GRANT}) for _ in range(2)]

    def fail(*_, **__):
        raise LedgerError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(desk.ledger, "settle", fail)
        await nesting.suspend(replace(nesting.outer, run=runs[0]))

    done = await desk.body(guard, replace(nesting.outer, run=runs[1]))

    assert ("uncertain", []) == (done.result.code, bench.ran)
