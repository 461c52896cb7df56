"""Law 7 under interrupts: whatever a signal handler raises, and when, a call has one ending."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections import Counter

import pytest

from adjudge import ApprovalDecision, ToolGuard, ToolSet, compile_policy, required_sink, tool
from adjudge._enforcement.approvals import pause_approval
from adjudge._ledger.entries import MemoryLedger
from adjudge._record.recorder import PromptSink

GRANT = ApprovalDecision(True, "ana", "fine")
OF = [
    *("/_enforcement/drivers.py", "/_enforcement/mediation.py", "/_enforcement/attempt.py"),
    *("/_enforcement/verdicts.py", "/_record/recorder.py", "/_record/lanes.py"),
]
TERMINAL = frozenset(
    f"action.{how}" for how in ("completed", "failed", "denied", "previewed", "cancelled")
)
KINDS = {
    "allow": ["step.proposed", "policy.evaluated", "action.completed"],
    "raises": ["step.proposed", "policy.evaluated", "action.failed"],
    "deny": ["step.proposed", "policy.evaluated", "action.denied"],
    "unknown": ["step.proposed", "action.denied"],
    "dry_run": ["step.proposed", "policy.evaluated", "action.previewed"],
    "approve_required": [
        "step.proposed",
        "policy.evaluated",
        "approval.requested",
        "approval.granted",
        "action.completed",
    ],
}


class Kept(PromptSink):
    """A sink of ours that takes all events at once."""

    def __init__(self):
        self.events = []

    def __call__(self, event):
        """Take one."""
        self.events.append(event)

    def take_at_once(self, offer):
        """Take all."""
        self.events.extend(offer.events)
        offer.taken = True


class Called:
    """A sink like those of users, which is called for each event."""

    def __init__(self):
        self.events = []

    def __call__(self, event):
        """Take one."""
        self.events.append(event)


def guard_of(verdict, sink, on_approval=lambda request: GRANT):
    """Make a guard whose every call comes to this verdict, and the list of what ran."""
    ran = []

    @tool()
    def note(text: str):
        """Note something."""
        ran.append(text)
        if verdict == "raises":
            raise KeyError(text)
        return text

    @note.shadow
    def preview(text: str):
        """Say what would be noted."""
        return {"would_note": text}

    decision = "allow" if verdict in ("raises", "unknown") else verdict
    rule = {"id": "r", "match": "always", "decision": decision, "reason": "so"}
    if decision == "allow":
        del rule["reason"]
    guard = ToolGuard(
        policy=compile_policy({"version": 1, "rules": [rule]}),
        tools=ToolSet.from_functions(note),
        sinks=[required_sink(sink)],
        on_approval=on_approval,
    )
    return guard, ran


def until_idle(guard):
    """Wait for what an interrupt left to the thread of a sink."""
    end = time.monotonic() + 10
    while guard._recorder._lanes[0]._work.jobs and time.monotonic() < end:
        time.sleep(0.001)


def sync(guard, tool, text):
    """Call through the sync door."""
    return guard.check_sync(tool, {"text": text})


def in_a_loop(guard, tool, text):
    """Call through the async door."""
    return asyncio.run(guard.check(tool, {"text": text}))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("door", [sync, in_a_loop])
@pytest.mark.parametrize(
    ("verdict", "kind"), [*((verdict, Kept) for verdict in KINDS), ("allow", Called)]
)
def test_a_call_that_is_interrupted_has_exactly_one_ending(
    verdict, kind, door, at_each_instruction
):
    """Each of its events is there once, in their order, and the next call is as ever."""
    sink = kind()
    guard, ran = guard_of(verdict, sink)
    name = "nothing" if verdict == "unknown" else "note"

    def begin():
        sink.events.clear()
        ran.clear()
        return lambda: door(guard, name, "a"), None

    def check(_, step):
        until_idle(guard)
        first = [event.kind for event in sink.events]
        ran_first = list(ran)
        sink.events.clear()
        door(guard, name, "b")

        assert KINDS[verdict] == [event.kind for event in sink.events], step
        assert set(Counter(first).values()) <= {1}, (step, first)
        if first or ran_first:
            assert 1 == len(TERMINAL.intersection(first)), (step, first, ran_first)
            assert first[-1] in TERMINAL, (step, first)
            assert first[:-1] == KINDS[verdict][: len(first) - 1], (step, first)
            assert not ran_first or len(first) == len(KINDS[verdict]), (step, first)
            assert "action.completed" not in first or ran_first, (step, first)

    at_each_instruction(begin, check, anywhere=door is sync, of=OF, at_least=40)


def test_an_answer_that_is_interrupted_leaves_one_ending_or_an_open_question(at_each_instruction):
    """A paused call is gone on with once at most, and its ending is there once it was taken up."""

    def begin():
        sink = Kept()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            guard, ran = guard_of("approve_required", sink, pause_approval(MemoryLedger()))
        pending = guard.check_sync("note", {"text": "a"}).pending
        sink.events.clear()
        return lambda: guard.resume_sync(pending.id, GRANT), (guard, sink, ran)

    def check(about, step):
        guard, sink, ran = about
        until_idle(guard)
        kinds = [event.kind for event in sink.events]

        assert len(ran) <= 1
        assert bool(kinds) == len(TERMINAL.intersection(kinds)), (step, kinds)
        assert set(Counter(kinds).values()) <= {1}, (step, kinds)

    at_each_instruction(begin, check, anywhere=False, of=[*OF, "/_enforcement/resumption.py"])
