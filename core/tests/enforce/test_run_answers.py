"""People's answers to the calls of a paused run: what counts, and what is none (clause 22)."""

import asyncio
from dataclasses import replace

import pytest

from adjudge._enforcement.approvals import pause_approval
from adjudge._enforcement.runs import GovernedRun, warn_unless_durable
from adjudge._ledger.entries import EntryState, MemoryLedger
from adjudge._ledger.sqlite import SQLiteLedger
from adjudge._types import ApprovalDecision, Outcome
from adjudge.errors import AnswerError, EphemeralLedgerWarning, LedgerError
from adjudge.policy import PolicyLayer, compile_policy

ASK = {"decision": "approve_required", "reason": "big"}
GRANT = ApprovalDecision(True, "ana", "fine")
REFUSE = ApprovalDecision(False, "ana", "no")


class Granting(ApprovalDecision):
    """An answer that says what it likes."""


def layered(*names):
    """Make a policy in whose layers each asks its own people."""
    rule = {"id": "r", "match": "always", **ASK}
    layers = [
        PolicyLayer(name, {"version": 1, "rules": [{**rule, "approvers": [name]}]})
        for name in names
    ]
    return compile_policy(layers)


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [(GRANT, REFUSE, ""), (REFUSE, GRANT, "approval_refused")],
    ids=["grant-then-refusal", "refusal-then-grant"],
)
async def test_the_first_answer_counts(bench, desk, first, second, code):
    """Fault X029: two answers to one question; the second changes nothing."""
    guard = desk.guard(ASK)
    call, pending = await desk.paused(guard)
    await desk.reopen(guard, {pending.id: first})

    run = await desk.reopen(guard, {pending.id: second})
    done = await desk.body(guard, replace(call, run=run))

    assert code == done.result.code
    assert (0 if code else 1) == len(bench.ran)
    assert (first,) == tuple(desk.ledger.get(pending.id).answers)


async def test_an_answer_is_kept_for_whoever_goes_on(desk, bench):
    """Clause 24: the answer is in the ledger; any guard that sees it goes on."""
    call = await desk.answered(desk.guard(ASK))
    other = desk.guard(ASK)
    run = GovernedRun(call.run.id, desk.ledger.of_run(call.run.id))

    done = await desk.body(other, replace(call, run=run))

    assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))


async def test_each_approver_set_answers_in_turn(bench, desk):
    """Clause 20: the call waits until everybody has granted, and then runs once."""
    guard = desk.guard(policy=layered("ana", "bo"))
    call, pending = await desk.paused(guard)
    first = await desk.reopen(guard, {pending.id: ApprovalDecision(True, "ana")})
    early = await desk.body(guard, replace(call, run=first))
    before = len(bench.events)

    second = await desk.reopen(guard, {pending.id: ApprovalDecision(True, "bo")})
    done = await desk.body(guard, replace(call, run=second))

    asked = [e.body["approvers"] for e in bench.events if e.kind == "approval.requested"]
    assert frozenset({pending.id}) == first.unanswered
    assert ("unanswered", Outcome.COMPLETED) == (early.result.code, done.outcome)
    assert [
        "policy.evaluated",
        "approval.granted",
        "approval.requested",
        "approval.granted",
        "action.completed",
    ] == bench.kinds[before:]
    assert [["ana"], ["bo"]] == [list(names) for names in asked]
    assert 1 == len(bench.ran)


async def test_a_refusal_needs_nobody_else(bench, desk):
    """One of several refuses: the call goes on, to be denied."""
    guard = desk.guard(policy=layered("ana", "bo"))
    call = await desk.answered(guard, REFUSE)

    done = await desk.body(guard, call)

    assert frozenset() == call.run.unanswered
    assert ("approval_refused", []) == (done.result.code, bench.ran)


@pytest.mark.parametrize("turn", [0, 1], ids=["first", "last"])
async def test_one_of_several_sets_cannot_edit(bench, desk, turn):
    """Clause 23: everybody grants the same arguments, or nothing runs."""
    guard = desk.guard(policy=layered("ana", "bo"))
    call, pending = await desk.paused(guard)
    answers = [GRANT, GRANT]
    answers[turn] = ApprovalDecision(True, "bo", edited_args={"to": "y"})
    run = None
    for answer in answers:
        run = await desk.reopen(guard, {pending.id: answer})

    done = await desk.body(guard, replace(call, run=run))

    assert ("edit_denied", []) == (done.result.code, bench.ran)


async def test_later_changes_to_an_edit_change_nothing(bench, desk):
    """Law 5: an answer is kept as it was given."""
    guard = desk.guard({"match": {"args.amount": 5}, **ASK}, {"decision": "allow"})
    edited = {"to": "bo", "amount": 1}
    call, pending = await desk.paused(guard)
    run = await desk.reopen(guard, {pending.id: ApprovalDecision(True, "ana", edited_args=edited)})
    edited["to"] = "mallory"

    await desk.body(guard, replace(call, run=run))

    assert [{"to": "bo", "amount": 1}] == bench.ran


NO_ANSWERS = {
    "true": True,
    "a text": "yes",
    "mapping": {"granted": True},
    "a subclass": Granting(True, "ana"),
    "granted=1": ApprovalDecision(1, "ana"),
    "granted='yes'": ApprovalDecision("yes", "ana"),
    "an approver that is no text": ApprovalDecision(True, 7),
    "a reason that is no text": ApprovalDecision(True, "ana", None),
    "edits that are no JSON": ApprovalDecision(True, "ana", edited_args={"to": object()}),
    "edits that are no object": ApprovalDecision(True, "ana", edited_args=["x"]),
    "edits that are no number": ApprovalDecision(True, "ana", edited_args={"n": float("nan")}),
}


@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_what_is_no_answer_is_an_error_and_not_kept(desk, answer):
    """Clause 22: whoever resumes is told, and no answer of the same lot counts."""
    guard, run = desk.guard(ASK), GovernedRun()
    ids = [
        (await desk.body(guard, desk.call(run, call_id=name))).pending.id for name in ("c1", "c2")
    ]

    with pytest.raises(AnswerError) as raised:
        await desk.reopen(guard, {ids[0]: GRANT, ids[1]: answer})

    assert "bad_answer" == raised.value.code
    assert [EntryState.PAUSED] * 2 == [entry.state for entry in desk.ledger.of_run(run.id)]


async def test_none_leaves_a_call_as_the_ledger_has_it(bench, desk):
    """What was answered elsewhere is gone on with, and None itself answers nothing."""
    guard = desk.guard(ASK)
    call, pending = await desk.paused(guard)
    unanswered = (await desk.reopen(guard, {pending.id: None})).unanswered
    await desk.reopen(guard, {pending.id: GRANT})

    done = await desk.body(guard, replace(call, run=await desk.reopen(guard, {pending.id: None})))

    assert frozenset({pending.id}) == unanswered
    assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))


async def test_answers_to_two_runs_at_once_are_an_error(desk):
    """A foreign answer is nobody's: neither run gets any."""
    guard = desk.guard(ASK)
    (one, mine), (other, theirs) = [await desk.paused(guard) for _ in range(2)]

    with pytest.raises(AnswerError, match="another run"):
        await desk.reopen(guard, {mine.id: GRANT, theirs.id: GRANT})

    entries = [entry for call in (one, other) for entry in desk.ledger.of_run(call.run.id)]
    assert [EntryState.PAUSED] * 2 == [entry.state for entry in entries]


async def test_an_answer_to_a_call_of_check_is_an_error(desk, check):
    """What `check` left waiting is `resume`'s, and not part of any run."""
    guard = desk.guard(ASK)
    pending = (await check(guard, "pay", {"to": "x"})).pending

    with pytest.raises(AnswerError, match=r"guard\.resume"):
        await desk.reopen(guard, {pending.id: GRANT})

    assert EntryState.PAUSED is desk.ledger.get(pending.id).state


@pytest.mark.parametrize("id", ["made-up", "", 7, None])
async def test_an_answer_to_nothing_is_an_error(desk, id):
    """Fault X029: an unknown id is told, not dropped."""
    guard = desk.guard(ASK)
    call, pending = await desk.paused(guard)

    with pytest.raises(AnswerError):
        await desk.reopen(guard, {pending.id: GRANT, id: GRANT})

    assert [EntryState.PAUSED] == [entry.state for entry in desk.ledger.of_run(call.run.id)]


async def test_no_answers_are_an_error(desk):
    """A run is opened with at least one answer."""
    with pytest.raises(AnswerError):
        await desk.reopen(desk.guard(ASK), {})


async def test_a_guard_without_a_ledger_has_no_runs(desk):
    """An id alone, which a client could hold, opens nothing."""
    _, pending = await desk.paused(desk.guard(ASK))

    with pytest.raises(AnswerError, match="no ledger"):
        await desk.reopen(desk.bench.guard(ASK), {pending.id: GRANT})


@pytest.mark.parametrize("answer", [True, ("x",), [None]], ids=repr)
async def test_a_ledger_that_names_odd_calls_of_a_run_is_an_error(desk, answer, monkeypatch):
    """Fault kind 1: what is no entry of the run opens none."""
    guard = desk.guard(ASK)
    call, pending = await desk.paused(guard)
    monkeypatch.setattr(desk.ledger, "of_run", lambda _: answer if answer is not True else [True])

    for asking in (
        desk.reopen(guard, {pending.id: GRANT}),
        desk.waiting(guard, call.run.id),
    ):
        with pytest.raises(LedgerError):
            await asking


async def test_entries_of_another_run_open_none(desk, monkeypatch):
    """A ledger that mixes up runs is an error, and no grant."""
    guard = desk.guard(ASK)
    call, _ = await desk.paused(guard)
    _, pending = await desk.paused(guard)
    foreign = desk.ledger.of_run(call.run.id)
    monkeypatch.setattr(desk.ledger, "of_run", lambda _: foreign)

    with pytest.raises(LedgerError):
        await desk.reopen(guard, {pending.id: GRANT})


async def test_an_async_ledger_serves_runs_as_well(bench, desk):
    """A ledger's methods may be async."""

    class Async:
        durable = False

        def __init__(self):
            self._inner = MemoryLedger()

        def __getattr__(self, name):
            method = getattr(self._inner, name)

            async def call(*args, **kwargs):
                await asyncio.sleep(0)
                return method(*args, **kwargs)

            return call

    guard = desk.guard(ASK, on_approval=pause_approval(Async()))
    call = await desk.answered(guard)

    done = await desk.body(guard, call)

    assert (Outcome.COMPLETED, 1) == (done.outcome, len(bench.ran))


class TestDurability:
    def test_a_ledger_in_memory_is_warned_of(self):
        """A pause that ends with the process is said where the user governs."""
        with pytest.warns(EphemeralLedgerWarning, match="SQLiteLedger"):
            _govern(MemoryLedger())

    @pytest.mark.parametrize("durable", [True, False], ids=["durable", "none"])
    def test_any_other_is_not(self, durable, tmp_path):
        """Neither a durable ledger nor a guard without one warns (a warning would be an error)."""
        _govern(SQLiteLedger(tmp_path / "ledger.sqlite") if durable else None)


def _govern(ledger):
    warn_unless_durable(ledger)


async def test_a_run_is_taken_up_by_its_id(bench, desk):
    """Where the answers are in the ledger already, the id of the run is all that is needed."""
    guard = desk.guard(ASK)
    call = await desk.answered(guard)

    run = await desk.reopen(guard, {}, run=call.run.id)
    await desk.body(guard, replace(call, run=run))

    assert 1 == len(bench.ran)


@pytest.mark.parametrize("answers", [None, [], "x", 5])
async def test_answers_come_in_a_mapping(desk, answers):
    """What is no mapping is an error that says what to give."""
    with pytest.raises(AnswerError, match="mapping"):
        await desk.reopen(desk.guard(ASK), answers)


async def test_a_call_of_a_run_is_not_the_guards_to_resume(bench, desk):
    """`resume` is for `check`; a call of a framework's run stays as it is, and goes on there."""
    guard = desk.guard(ASK)
    call, pending = await desk.paused(guard)

    turned = await guard.resume(pending.id, ApprovalDecision(True, "ana"))
    run = await desk.reopen(guard, {pending.id: ApprovalDecision(True, "ana")})
    await desk.body(guard, replace(call, run=run))

    assert ("part_of_a_run", 1) == (turned.result.code, len(bench.ran))


@pytest.mark.parametrize(("parent", "ends"), [("a", "refused_arguments"), ("b", "")])
async def test_refused_text_ends_the_call_that_waits_in_its_own_place(bench, desk, parent, ends):
    """Fault X037: a call of the same id inside of another body is another call, and goes on."""
    guard = desk.guard(ASK)
    call = await desk.answered(guard, parent="a", call_id="c1")
    twice = replace(call, arguments='{"to": "bo", "to": "eve"}', parent=parent)

    refused = await desk.body(guard, twice)
    again = replace(call, run=await desk.reopen(guard, {}, run=call.run.id))
    done = await desk.body(guard, again)

    assert "refused_arguments" == refused.result.code
    assert (0 if ends else 1) == len(bench.ran)
    assert ("approval_spent" if ends else "") == done.result.code
