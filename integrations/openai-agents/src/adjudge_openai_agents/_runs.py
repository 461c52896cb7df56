"""Where in which run a call stands: what a paused call is known by, now and in another process.

The SDK gives a run no id that outlives the process, so a run is known by one of ours. It is found
by the run's usage, which the SDK hands to nested agents too; inside of a body, and in a run that is
resumed, it goes along with the task.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agents import RunContextWrapper

from adjudge import ToolGuard
from adjudge.integration import GovernedRun

__all__ = ["Frame", "Suspended", "entered", "frame_of", "known_frame", "remember"]


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
        return Frame(self.guard, self.run, f"{self.parent}/{call_id}")


# The place of what runs in this task.
_FRAME: ContextVar[Frame | None] = ContextVar("adjudge_frame", default=None)

# The runs of this process by the identity of their usage, which cannot be a key itself.
_BY_USAGE: dict[int, Frame] = {}


@contextmanager
def entered(frame: Frame) -> Iterator[None]:
    """Make a place the one of this task."""
    token = _FRAME.set(frame)
    try:
        yield
    finally:
        _FRAME.reset(token)


def frame_of(context: RunContextWrapper[Any], guard: ToolGuard) -> Frame:
    """Give the place in which something is proposed; a run that is not known begins here."""
    frame = _FRAME.get()
    if frame is None or frame.guard is not guard:
        frame = known_frame(context)
    if frame is None or frame.guard is not guard:
        frame = Frame(guard, GovernedRun() if guard.pauses else None)
    remember(context, frame)
    return frame


def known_frame(context: RunContextWrapper[Any]) -> Frame | None:
    """Give the place that a run is known by, if anything in it was governed."""
    return _BY_USAGE.get(id(context.usage))


def remember(context: RunContextWrapper[Any], frame: Frame) -> None:
    """Know a run by its usage, for as long as that lives."""
    key = id(context.usage)
    if key not in _BY_USAGE:
        _BY_USAGE[key] = Frame(frame.guard, frame.run)
        weakref.finalize(context.usage, _BY_USAGE.pop, key, None)
