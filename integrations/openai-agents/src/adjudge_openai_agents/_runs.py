"""Where in which run a call stands: what a paused call is known by, now and in another process.

The SDK gives a run no id that outlives the process, so a run is known by one of ours. It is found
by the run's usage, which the SDK hands to nested agents too; inside of a body, and in a run that is
resumed, it goes along with the task.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agents import RunContextWrapper
from agents.agent_tool_state import (
    drop_agent_tool_run_result,
    get_agent_tool_state_scope,
    peek_agent_tool_run_result,
)

from adjudge import ToolGuard
from adjudge.integration import GovernedRun

__all__ = [
    "Frame",
    "Suspended",
    "entered",
    "forget_nested",
    "forget_other_runs",
    "frame_of",
    "known_frames",
    "remember",
]


class Suspended(BaseException):
    """An agent that a tool runs waits for a person: `value` is what the SDK wants of the tool."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass(slots=True)
class Frame:
    """A place in a run: under a guard, inside of the bodies of the calls that `parent` names.

    `waits` says that a call proposed here was left waiting.
    """

    guard: ToolGuard
    run: GovernedRun | None
    parent: str = ""
    waits: bool = False

    def inside(self, call_id: str | None) -> Frame:
        """Give the place inside of a call's body."""
        return Frame(self.guard, self.run, f"{self.parent}{json.dumps(call_id)}/")


# The place of what runs in this task.
_FRAME: ContextVar[Frame | None] = ContextVar("adjudge_frame", default=None)

# The runs of this process by the identity of their usage, which cannot be a key itself; where
# agents of one run are under several guards, a run for each.
_BY_USAGE: dict[int, list[Frame]] = {}


@contextmanager
def entered(frame: Frame | None) -> Iterator[None]:
    """Make a place the one of this task; None: whatever runs here is a run of its own."""
    token = _FRAME.set(frame)
    try:
        yield
    finally:
        _FRAME.reset(token)


def frame_of(context: RunContextWrapper[Any], guard: ToolGuard) -> Frame:
    """Give the place in which something is proposed; a run that is not known begins here."""
    frame = _FRAME.get()
    if frame is None or frame.guard is not guard:
        frame = next((each for each in known_frames(context) if each.guard is guard), None)
    if frame is None:
        frame = Frame(guard, GovernedRun() if guard.pauses else None)
    remember(context, frame)
    return frame


def known_frames(context: RunContextWrapper[Any]) -> list[Frame]:
    """Give the places that a run is known by: one for each guard in it."""
    return list(_BY_USAGE.get(id(context.usage), ()))


def remember(context: RunContextWrapper[Any], frame: Frame) -> None:
    """Know a run by its usage, for as long as that lives."""
    key = id(context.usage)
    if key not in _BY_USAGE:
        _BY_USAGE[key] = []
        weakref.finalize(context.usage, _BY_USAGE.pop, key, None)
    known = _BY_USAGE[key]
    if not any(each.guard is frame.guard and each.run is frame.run for each in known):
        # A run that was opened again takes the place of what it was before.
        others = [each for each in known if each.guard is not frame.guard]
        known[:] = [*others, Frame(frame.guard, frame.run)]


def forget_other_runs(context: RunContextWrapper[Any]) -> None:
    """Let go of what another run's nested agent waits for, before this run's own begins.

    0.20 finds it by the text and the id of the call alone, and would go on with it here. A run that
    goes on in the same process has the usage that it had.
    """
    call, scope = getattr(context, "tool_call", None), get_agent_tool_state_scope(context)
    if call is None or scope is not None:
        return  # later releases, and a state that was read again, tell runs apart
    waiting = getattr(peek_agent_tool_run_result(call), "context_wrapper", None)
    if waiting is not None and waiting.usage is not context.usage:
        drop_agent_tool_run_result(call)


def forget_nested(context: RunContextWrapper[Any]) -> None:
    """Let go of a nested agent that waits, where the tool that runs it does not go on.

    The SDK would report its calls as waiting for ever.
    """
    call = getattr(context, "tool_call", None)
    if call is not None:
        drop_agent_tool_run_result(call, scope_id=get_agent_tool_state_scope(context))
