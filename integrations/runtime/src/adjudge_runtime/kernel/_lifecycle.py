"""The life of a session: its states, what can happen in each, and nothing besides.

`TRANSITIONS` is complete: a pair of state and event that is not in it is an error, never a guess.
The three terminal states have no way out. `lifecycle_diagram` draws the table itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from adjudge import AdjudgeError

__all__ = [
    "TERMINAL_STATES",
    "TRANSITIONS",
    "Event",
    "IllegalTransition",
    "RunState",
    "lifecycle_diagram",
    "transition",
]


class RunState(StrEnum):
    """Where a session stands."""

    CREATED = "created"
    PLANNING = "planning"
    ACTING = "acting"
    WAITING_INPUT = "waiting_input"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Event(StrEnum):
    """What can happen to a session."""

    START = "start"
    PROPOSE = "propose"
    OBSERVE = "observe"
    NEED_INPUT = "need_input"
    RESUME_INPUT = "resume_input"
    SUSPEND = "suspend"
    RESUME = "resume"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"


TERMINAL_STATES = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED})

_EVERYWHERE = {Event.FAIL: RunState.FAILED, Event.CANCEL: RunState.CANCELLED}
_BY_STATE: Mapping[RunState, Mapping[Event, RunState]] = {
    RunState.CREATED: {
        Event.START: RunState.PLANNING,
        Event.CANCEL: RunState.CANCELLED,
    },
    RunState.PLANNING: {
        Event.PROPOSE: RunState.ACTING,
        Event.NEED_INPUT: RunState.WAITING_INPUT,
        Event.SUSPEND: RunState.SUSPENDED,
        Event.FINISH: RunState.COMPLETED,
        **_EVERYWHERE,
    },
    RunState.ACTING: {
        Event.OBSERVE: RunState.PLANNING,
        Event.NEED_INPUT: RunState.WAITING_INPUT,
        Event.SUSPEND: RunState.SUSPENDED,
        **_EVERYWHERE,
    },
    RunState.WAITING_INPUT: {
        Event.RESUME_INPUT: RunState.PLANNING,
        Event.SUSPEND: RunState.SUSPENDED,
        **_EVERYWHERE,
    },
    RunState.SUSPENDED: {
        Event.RESUME: RunState.PLANNING,
        **_EVERYWHERE,
    },
}

TRANSITIONS: Mapping[tuple[RunState, Event], RunState] = MappingProxyType(
    {
        (state, event): reached
        for state, events in _BY_STATE.items()
        for event, reached in events.items()
    }
)
"""Every step that there is, by state and event."""


class IllegalTransition(AdjudgeError, RuntimeError):
    """The event cannot happen in the state; nothing has changed."""

    code = "illegal_transition"

    def __init__(self, state: RunState, event: Event) -> None:
        possible = sorted(name for here, name in TRANSITIONS if here is state)
        ways = f"from there: {', '.join(possible)}" if possible else "it has ended"
        super().__init__(f"A session that is {state.value} cannot {event.value}; {ways}.")
        self.state = state
        self.event = event

    def __reduce__(self) -> tuple[type[IllegalTransition], tuple[RunState, Event]]:
        return (type(self), (self.state, self.event))


def transition(state: RunState, event: Event) -> RunState:
    """Give the state that an event leads to; raises `IllegalTransition` where it cannot happen."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(RunState(state), Event(event)) from None


def lifecycle_diagram() -> str:
    """Draw the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {RunState.CREATED.value}"]
    lines += [
        f"    {state.value} --> {reached.value}: {event.value}"
        for (state, event), reached in TRANSITIONS.items()
    ]
    lines += [f"    {state.value} --> [*]" for state in RunState if state in TERMINAL_STATES]
    return "\n".join(lines) + "\n"
