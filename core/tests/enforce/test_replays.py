"""Finished calls that a framework proposes again are given again, and never run again (law 6)."""

import asyncio
import threading
from dataclasses import replace

import pytest

from adjudge._arguments.proposal import ProposedCall, Replay
from adjudge._enforcement.approvals import auto_approve, pause_approval
from adjudge._enforcement.cancel import CancelToken
from adjudge._enforcement.runs import GovernedRun
from adjudge._ledger.entries import EntryState, MemoryLedger
from adjudge._types import ApprovalDecision, CallContext, Outcome, Principal
from adjudge._values import OpaqueValue
from adjudge.errors import LedgerError

ALLOW = {"decision": "allow"}
ASK = {"decision": "approve_required", "reason": "big"}
GRANT = ApprovalDecision(True, "ana", "fine")


def keep(gave):
    """Keep a value, and of an exception its text."""
    return {"raised": str(gave)} if isinstance(gave, Exception) else {"value": gave}


def give(kept):
    """Give the value, or raise what stands for the exception."""
    if "raised" in kept:
        raise RuntimeError(kept["raised"])
    return kept["value"]


def nothing(_):
    """Keep nothing."""
    return


KEPT = Replay(keep, give)
NOT_KEPT = Replay(nothing, give)


def call_of(desk, run, **changed):
    """Propose a call whose framework proposes it again."""
    return desk.call(run, **{"replay": KEPT, **changed})


def added_to(ledger):
    """Remember what is added to a ledger."""
    added, add = [], ledger.add
    ledger.add = lambda entry: (added.append(entry), add(entry))[1]
    return added


def again(call):
    """Propose a call in the same run, as another process would."""
    return replace(call, run=GovernedRun(call.run.id))


class TestCompleted:
    async def test_what_a_body_gave_is_given_again(self, bench, desk):
        """Law 6: the body ran once, and nothing more is judged or recorded."""
        guard = desk.guard(ALLOW)
        call = call_of(desk, GovernedRun())
        first = await desk.body(guard, call)
        recorded = list(bench.kinds)

        second = await desk.body(guard, again(call))

        assert [{"to": "x", "amount": 5}] == bench.ran
        assert (first.result.value, Outcome.COMPLETED) == (second.result.value, second.outcome)
        assert (False, True) == (first.replayed, second.replayed)
        assert recorded == bench.kinds

    async def test_the_value_keeps_the_order_of_its_keys(self, desk):
        """What is told to a model twice is the same text."""
        guard, call = desk.guard(ALLOW), call_of(desk, GovernedRun())
        await desk.body(guard, call, lambda _: {"b": 1, "a": 2})

        second = await desk.body(guard, again(call))

        assert ["b", "a"] == list(second.result.value)

    async def test_another_call_of_the_run_is_new(self, bench, desk):
        """What differs in its id, its arguments or its attempt is judged and run."""
        guard, call = desk.guard(ALLOW), call_of(desk, GovernedRun())
        await desk.body(guard, call)

        for changed in ({"call_id": "c2"}, {"arguments": {"to": "y"}}, {"attempt": 2}):
            await desk.body(guard, replace(again(call), **changed))

        assert 4 == len(bench.ran)

    async def test_another_run_is_new(self, bench, desk):
        """The same call in another run is another call."""
        guard = desk.guard(ALLOW)
        for _ in range(2):
            await desk.body(guard, call_of(desk, GovernedRun()))

        assert 2 == len(bench.ran)

    @pytest.mark.parametrize(
        "kept",
        [
            nothing,
            lambda gave: {"secret": OpaqueValue()},
            lambda gave: {"object": object()},
            lambda gave: 1 / 0,
            lambda gave: "text",
        ],
        ids=["nothing", "secret", "object", "raising", "no-object"],
    )
    async def test_what_cannot_be_kept_is_not_run_again(self, bench, desk, kept):
        """Law 6: a finished call of which nothing is kept is denied, not repeated."""
        guard = desk.guard(ALLOW)
        call = call_of(desk, GovernedRun(), replay=Replay(kept, give))
        assert "paid" == (await desk.body(guard, call)).result.value

        second = await desk.body(guard, again(call))

        assert (Outcome.DENIED, "approval_spent") == (second.outcome, second.result.code)
        assert 1 == len(bench.ran)

    async def test_what_cannot_be_read_again_is_denied(self, bench, desk):
        """Law 4: a value that cannot be given back ends in a denial."""
        guard = desk.guard(ALLOW)
        call = call_of(desk, GovernedRun(), replay=Replay(keep, lambda kept: kept["other"]))
        await desk.body(guard, call)

        second = await desk.body(guard, again(call))

        assert (Outcome.DENIED, "ledger_failed") == (second.outcome, second.result.code)
        assert 1 == len(bench.ran)

    async def test_without_a_ledger_each_proposal_is_a_call(self, bench, desk):
        """Where there is nothing to keep it in, nothing is given again."""
        guard = bench.guard(ALLOW)
        call = call_of(desk, GovernedRun())
        for _ in range(2):
            await desk.body(guard, again(call))

        assert 2 == len(bench.ran)


class TestOtherEndings:
    @pytest.mark.parametrize(
        ("rule", "outcome"),
        [
            ({"decision": "deny", "reason": "no"}, Outcome.DENIED),
            ({"decision": "dry_run"}, Outcome.PREVIEWED),
        ],
        ids=["deny", "dry_run"],
    )
    async def test_a_denial_and_a_preview_are_given_again(self, bench, desk, rule, outcome):
        """The model is told the same, and the policy is not asked again."""
        shadow = lambda to, amount: {"would": to, "pay": amount}  # noqa: E731
        call = call_of(desk, GovernedRun(), shadow=shadow)
        first = await desk.body(desk.guard(rule), call)
        recorded = list(bench.kinds)

        second = await desk.body(desk.guard(ALLOW), again(call))

        assert (outcome, outcome) == (first.outcome, second.outcome)
        assert (first.text, first.result.code) == (second.text, second.result.code)
        assert second.replayed
        assert (recorded, []) == (bench.kinds, bench.ran)

    async def test_what_a_body_raised_is_raised_again(self, bench, desk):
        """Where the framework keeps exceptions, the body is not tried again."""
        guard, call = desk.guard(ALLOW), call_of(desk, GovernedRun())

        def fails(_):
            bench.ran.append("fails")
            raise KeyError("nothing there")

        with pytest.raises(KeyError):
            await desk.body(guard, call, fails)
        with pytest.raises(RuntimeError, match="nothing there"):
            await desk.body(guard, again(call), fails)

        assert ["fails"] == bench.ran

    async def test_a_body_that_raised_and_left_nothing_is_a_new_attempt(self, bench, desk):
        """Law 6: it is judged again, under the next number, with its own terminal event."""
        guard = desk.guard(ALLOW)
        call = call_of(desk, GovernedRun(), replay=NOT_KEPT)

        def fails(_):
            raise KeyError("not yet")

        with pytest.raises(KeyError):
            await desk.body(guard, call, fails)
        second = await desk.body(guard, again(call))

        assert Outcome.COMPLETED == second.outcome
        assert ["action.failed", "action.completed"] == bench.terminals
        assert 2 == bench.body("action.completed")["attempt"]

    async def test_an_approval_covers_the_first_attempt_alone(self, bench, desk):
        """Law 6: what raised after it was approved must be approved again."""
        guard = desk.guard(ASK)
        call, pending = await desk.paused(guard, replay=NOT_KEPT)
        run = await desk.reopen(guard, {pending.id: GRANT})

        def fails(_):
            raise KeyError("not yet")

        with pytest.raises(KeyError):
            await desk.body(guard, replace(call, run=run), fails)
        second = await desk.body(guard, again(call))

        assert (Outcome.PENDING, []) == (second.outcome, bench.ran)
        assert pending.id != second.pending.id

    async def test_a_call_that_was_begun_and_never_ended_is_uncertain(self, bench, desk):
        """Law 6: what a crash lost is denied, and says so."""
        guard, call = desk.guard(ALLOW), call_of(desk, GovernedRun())
        keeper = desk.ledger.settle
        desk.ledger.settle = lambda *args, **kwargs: (_ for _ in ()).throw(LedgerError("gone"))
        await desk.body(guard, call)
        desk.ledger.settle = keeper

        second = await desk.body(guard, again(call))

        assert (Outcome.DENIED, "uncertain") == (second.outcome, second.result.code)
        assert 1 == len(bench.ran)

    async def test_the_kill_switch_says_nothing_of_the_call(self, bench, desk):
        """A denial that is the guard's own is not kept: proposed again, the call is judged."""
        token = CancelToken()
        token.cancel("maintenance")
        call = call_of(desk, GovernedRun())
        first = await desk.body(desk.guard(ALLOW, cancel=token), call)

        second = await desk.body(desk.guard(ALLOW), again(call))

        assert ("cancelled", Outcome.COMPLETED) == (first.result.code, second.outcome)

    async def test_a_handlers_grant_is_not_asked_for_again(self, bench, desk):
        """What a handler granted and the body gave is given again as well."""
        asked = []

        def handler(request):
            asked.append(request)
            return GRANT

        guard = bench.guard(ASK, on_approval=handler, ledger=desk.ledger)
        call = call_of(desk, GovernedRun())
        for _ in range(2):
            call = again(call)
            assert "paid" == (await desk.body(guard, call)).result.value

        assert (1, 1) == (len(asked), len(bench.ran))


class TestWaiting:
    async def test_what_waits_goes_on_waiting(self, bench, desk):
        """Proposed again unanswered, the call has the same question, and is recorded once."""
        guard = desk.guard(ASK)
        call, pending = await desk.paused(guard, replay=KEPT)
        recorded = list(bench.kinds)

        second = await desk.body(guard, again(call))

        assert (Outcome.PENDING, pending.id) == (second.outcome, second.pending.id)
        assert (recorded, []) == (bench.kinds, bench.ran)

    async def test_where_it_cannot_wait_it_is_denied(self, bench, desk):
        """A framework that cannot be left waiting here gets a denial, and the question stays."""
        guard = desk.guard(ASK)
        call, pending = await desk.paused(guard, replay=KEPT)

        second = await desk.body(guard, replace(again(call), may_pause=False))

        assert (Outcome.DENIED, "unanswered") == (second.outcome, second.result.code)
        assert EntryState.PAUSED is desk.ledger.get(pending.id).state

    async def test_what_was_granted_runs_once_and_is_then_given_again(self, bench, desk):
        """The answer is used up by the one run; the third proposal is told of it."""
        guard = desk.guard(ASK)
        call, pending = await desk.paused(guard, replay=KEPT)
        await desk.reopen(guard, {pending.id: GRANT})

        ran = [await desk.body(guard, again(call)) for _ in range(2)]

        assert ["paid", "paid"] == [each.result.value for each in ran]
        assert [False, True] == [each.replayed for each in ran]
        assert 1 == len(bench.ran)

    async def test_a_refusal_is_told_again(self, bench, desk):
        """A person's refusal ends the call, however often it is proposed."""
        guard = desk.guard(ASK)
        call, pending = await desk.paused(guard, replay=KEPT)
        await desk.reopen(guard, {pending.id: ApprovalDecision(False, "ana", "no")})

        told = [await desk.body(guard, again(call)) for _ in range(2)]

        assert told[0].text == told[1].text
        assert ["action.denied"] == bench.terminals

    async def test_the_first_look_knows_what_finished(self, bench, desk):
        """Nobody is asked about a call that has ended, and it is not entered twice."""
        guard, call = desk.guard(ALLOW), call_of(desk, GovernedRun())
        await desk.body(guard, call)

        assert await desk.look(desk.guard(ASK), again(call)) is None
        assert () == desk.ledger.of_run(call.run.id)

    async def test_the_first_look_gives_the_same_question(self, bench, desk):
        """In another process, too, the call waits once."""
        guard, call = desk.guard(ASK), call_of(desk, GovernedRun())
        first = await desk.look(guard, call)

        second = await desk.look(guard, again(call))

        assert first.id == second.id
        assert 1 == bench.kinds.count("approval.requested")

    async def test_a_call_that_has_expired_is_not_left_waiting(self, bench, desk):
        """Clause 24: it ends as expired where it is proposed again."""
        guard = desk.guard({**ASK, "timeout_seconds": 0.000001})
        call, _ = await desk.paused(guard, replay=KEPT)

        assert await desk.look(guard, again(call)) is None
        told = await desk.body(guard, again(call))

        assert "approval_expired" == told.result.code

    async def test_a_body_that_suspended_itself_is_the_same_execution(self, bench, desk):
        """Law 6: its own going on is no second run, and what it gives then is kept."""

        class Suspended(Exception):
            pass

        def suspends(_):
            raise Suspended

        guard = desk.guard(ALLOW)
        call = call_of(desk, GovernedRun(), control_flow=(Suspended,))
        with pytest.raises(Suspended):
            await desk.body(guard, call, suspends)

        gave = [(await desk.body(guard, again(call))).result.value for _ in range(2)]

        assert ["paid", "paid"] == gave
        assert (1, 1) == (len(bench.ran), bench.kinds.count("step.proposed"))


class TestSomebodyElse:
    async def test_for_another_principal_nothing_is_given(self, bench, desk):
        """What a call came to is told to whom it was made for."""
        call = call_of(desk, GovernedRun())
        await desk.body(desk.guard(ALLOW), call)

        other = CallContext(Principal("user", "mallory"))
        second = await desk.body(desk.guard(ALLOW), again(call), context=lambda: other)

        assert (Outcome.DENIED, "other_caller") == (second.outcome, second.result.code)

    async def test_other_arguments_under_the_same_key_get_nothing(self, bench, desk):
        """A key that an integration makes too wide gives nobody another call's result."""
        call = call_of(desk, GovernedRun(), key="k")
        guard = desk.guard(ALLOW)
        await desk.body(guard, call)

        second = await desk.body(guard, replace(again(call), arguments={"to": "y"}))

        assert (Outcome.DENIED, "other_call") == (second.outcome, second.result.code)

    async def test_an_entry_of_another_call_is_none(self, bench, desk):
        """Law 4: a ledger that answers with something else grants and gives nothing."""
        guard, run = desk.guard(ALLOW), GovernedRun()
        added = added_to(desk.ledger)
        await desk.body(guard, call_of(desk, run))
        entry = desk.ledger.get(added[0].id)
        desk.ledger.get = lambda key: replace(entry, id=key)

        second = await desk.body(guard, call_of(desk, run, call_id="c2"))

        assert (Outcome.DENIED, "ledger_failed") == (second.outcome, second.result.code)


class Late(MemoryLedger):
    """Answers a first look only when two have asked."""

    def __init__(self):
        super().__init__()
        self._both = threading.Barrier(2)

    def get(self, id):
        """Give the entry."""
        found = super().get(id)
        if found is None:
            self._both.wait(30)
        return found


def two_at_once(bench, rule, ledger, **settings):
    """Propose the same new call of one run to two guards, in two threads."""
    run, ended = GovernedRun(), []

    def propose(guard):
        call = ProposedCall("pay", {"to": "x"}, run=GovernedRun(run.id), replay=KEPT)
        ended.append(guard.govern_call_sync(call, lambda _: bench.ran.append("pay") or 1))

    guards = [bench.guard(rule, ledger=ledger, **settings) for _ in range(2)]
    threads = [threading.Thread(target=propose, args=(guard,)) for guard in guards]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return ended


class TestAtOnce:
    def test_of_two_that_begin_a_call_one_does(self, bench):
        """Law 6: the loser is denied, whatever the order of their steps."""
        ended = two_at_once(bench, ALLOW, Late())

        assert ["pay"] == bench.ran
        assert ["", "uncertain"] == sorted(each.result.code for each in ended)
        assert ["action.completed", "action.denied"] == sorted(bench.terminals)

    def test_of_two_that_ask_about_a_call_one_does(self, bench):
        """Law 6: there is one question, and the loser's denial does not answer it."""
        ledger = Late()
        ended = two_at_once(bench, ASK, ledger, on_approval=pause_approval(ledger))

        (pending,) = (each.pending for each in ended if each.pending is not None)
        assert [Outcome.DENIED, Outcome.PENDING] == sorted(each.outcome for each in ended)
        assert EntryState.PAUSED is ledger.get(pending.id).state

    async def test_a_cancelled_body_is_not_run_again(self, bench):
        """Law 6: how far it came is not known, so it is denied where it is proposed again."""
        guard = bench.guard(ALLOW, ledger=MemoryLedger())
        call = ProposedCall("pay", {"to": "x"}, run=GovernedRun(), replay=KEPT)
        begun = asyncio.Event()

        async def body(_):
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(guard.govern_call(call, body))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        second = await guard.govern_call(again(call), body)

        assert (Outcome.DENIED, "approval_spent") == (second.outcome, second.result.code)


async def test_the_ledger_keeps_what_a_call_gave(bench, desk):
    """The entry is claimed before the body starts, and finished with its result after it."""
    added = added_to(desk.ledger)
    call = call_of(desk, GovernedRun())

    await desk.body(desk.guard(ALLOW), call, lambda _: "gave")

    entry = desk.ledger.get(added[0].id)
    assert [(EntryState.CLAIMED, None)] == [(each.state, each.result) for each in added]
    assert (EntryState.FINISHED, "completed") == (entry.state, entry.outcome)
    assert () == desk.ledger.of_run(call.run.id)
    assert {"verdict": "allow", "reason": "", "gave": '{"value": "gave"}'} == entry.result


async def test_no_body_starts_that_cannot_be_claimed(bench, desk):
    """Law 4: a ledger that cannot be written denies what would have to be kept."""
    desk.ledger.add = lambda entry: (_ for _ in ()).throw(LedgerError("full"))

    call = await desk.body(desk.guard(ALLOW), call_of(desk, GovernedRun()))

    assert (Outcome.DENIED, "ledger_failed", []) == (call.outcome, call.result.code, bench.ran)


async def test_auto_approval_is_bound_to_the_call(bench, desk):
    """A grant given in place is for this occurrence, and a replay uses none."""
    guard = bench.guard(ASK, on_approval=auto_approve("ana"), ledger=desk.ledger)
    call = call_of(desk, GovernedRun())
    await desk.body(guard, call)
    granted = bench.kinds.count("approval.granted")

    await desk.body(guard, again(call))

    assert (1, 1) == (granted, bench.kinds.count("approval.granted"))
