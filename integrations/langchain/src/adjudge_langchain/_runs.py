"""The place of a call in a LangGraph run, and the run's waiting for people.

A run is known to the ledger by its thread, and a call by the task that runs it, so what a call
waits for is found again in any process. LangGraph's own `interrupt` makes the run wait; the answer
is in the guard's ledger alone, and what LangGraph is resumed with grants nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from langgraph.types import interrupt

from adjudge import LedgerError, PendingApproval, ToolGuard
from adjudge.integration import WAITING, EntryState, GovernedRun, LedgerEntry, digest, thaw

__all__ = [
    "Place",
    "UnreadableRun",
    "attempt_of",
    "carry_on",
    "governed_run",
    "governed_run_sync",
    "mark_of",
    "pending_mark",
    "place_of",
    "resumption",
    "run_id_of",
    "vouching_for_pauses",
    "wait",
]

_KEY = "adjudge"
# Where LangGraph keeps the saver of a run; without one it cannot be resumed, and it says so nowhere
# else. A test fails when it moves.
_CHECKPOINTER = "__pregel_checkpointer"
# What the path of a task begins with that a `Send` has started, as the agents of `create_agent`
# have one for each call; then comes its number.
_PUSHED = "__pregel_push"
_VOUCHED: ContextVar[bool] = ContextVar("adjudge_vouched", default=False)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a graph a call is made."""

    run_id: str
    """The id under which the ledger keeps the calls of the thread."""
    task: str
    """The namespace of the task: the same whenever the task is run again."""
    pauses: bool
    """Whether the task can be run again later without anything else being run again with it."""


def place_of(config: Mapping[str, Any]) -> Place | None:
    """Find the place of a call; None outside of a graph that could be resumed."""
    configurable = config.get("configurable") or {}
    thread, task = configurable.get("thread_id"), configurable.get("checkpoint_ns")
    if thread is None or not task or configurable.get(_CHECKPOINTER) is None:
        return None
    path: tuple[Any, ...] = (config.get("metadata") or {}).get("langgraph_path") or ()
    alone = len(path) > 1 and path[0] == _PUSHED and isinstance(path[1], int)
    return Place(run_id_of(thread), str(task), alone or _VOUCHED.get())


def run_id_of(thread_id: object) -> str:
    """Name the run of a thread, as the ledger knows it."""
    return digest({"langgraph": str(thread_id)})


@contextmanager
def vouching_for_pauses() -> Iterator[None]:
    """Let calls wait in a task that runs several: whoever says so answers for the others."""
    token = _VOUCHED.set(True)
    try:
        yield
    finally:
        _VOUCHED.reset(token)


# What the ledger knows of the run


class UnreadableRun(GovernedRun):
    """A run of which the ledger could not say what waits in it: its calls are denied."""

    def __init__(self, run_id: str, error: Exception) -> None:
        super().__init__(run_id)
        self._why = f"the ledger cannot be read ({type(error).__name__})"

    def take(self, occurrence: str) -> LedgerEntry | None:
        """Raise `LedgerError`, which the guard makes a denial of."""
        raise LedgerError(self._why)


async def governed_run(guard: ToolGuard, run_id: str) -> GovernedRun:
    """Read the run's calls from the ledger; where it cannot be read, each of them is denied."""
    try:
        return await guard.reopen({}, run=run_id)
    except Exception as error:
        return UnreadableRun(run_id, error)


def governed_run_sync(guard: ToolGuard, run_id: str) -> GovernedRun:
    """Do what `governed_run` does, for callers without an event loop."""
    try:
        return guard.reopen_sync({}, run=run_id)
    except Exception as error:
        return UnreadableRun(run_id, error)


def attempt_of(run: GovernedRun | None, key: str, number: int) -> int:
    """Number an attempt: that which waits, or is about to go on; else `number`, as was counted."""
    if run is not None:
        earlier = 1
        while (entry := run.waits(f"{key}/{earlier}")) is not None:
            if entry.state in WAITING:
                return earlier
            earlier += 1
    return number


# The interrupt


def carry_on(run: GovernedRun, occurrence: str) -> None:
    """Wait on if the call waits for a person, and take up what it is resumed with if not."""
    entry = run.waits(occurrence)
    if entry is not None and entry.approver_sets:
        still = entry.state is EntryState.PAUSED and entry.id in run.unanswered
        wait(entry, goes_on=not still)


def wait(pending: PendingApproval | LedgerEntry, *, goes_on: bool) -> None:
    """Make the graph's task wait, or take what it was resumed with if the call goes on.

    Whatever else the task was resumed with is no answer, and is passed over: what comes after it
    belongs to the body, if that waits for something of its own.
    """
    question = _question(pending)
    while True:
        given = interrupt(question)
        if goes_on and _resumed(given) == pending.id:
            return


def resumption(pending_id: str) -> dict[str, Any]:
    """Give what a task is resumed with once the ledger has the answer to its call."""
    return {_KEY: {"goes_on": pending_id}}


def mark_of(value: object) -> Mapping[str, Any] | None:
    """Read our part of an interrupt's value, None where it is not ours."""
    mark = value.get(_KEY) if isinstance(value, Mapping) else None
    return mark if isinstance(mark, Mapping) else None


def pending_mark(value: object) -> str | None:
    """Read the id of the call about which an interrupt asks."""
    found = (mark_of(value) or {}).get("pending")
    return found if isinstance(found, str) else None


def _resumed(given: object) -> object:
    return (mark_of(given) or {}).get("goes_on")


def _question(pending: PendingApproval | LedgerEntry) -> dict[str, Any]:
    """Say what is asked, as plain JSON, in the shape of the human-in-the-loop middleware."""
    if isinstance(pending, LedgerEntry):
        tool, reason, sets = pending.tool, pending.reason, pending.approver_sets
        args = pending.args if pending.final_args is None else pending.final_args
    else:
        decision = pending.decision
        tool, reason, sets = pending.request.tool, decision.reason, decision.approver_sets
        final = decision.effective_args
        args = pending.request.args if final is None else final
    shown = json.dumps(thaw(args), default=str)
    return {
        "type": "tool_approval",
        "tool_call_id": pending.call_id,
        "name": tool,
        "args": json.loads(shown),
        "description": f"The policy has a person asked about {tool} ({reason}).\n{shown}",
        _KEY: {
            "pending": pending.id,
            "digest": pending.digest,
            "reason": reason,
            "approvers": [list(names) for names in sets],
            "expires_at": pending.expires_at.isoformat() if pending.expires_at else None,
        },
    }
