"""The life of a session: the table is complete, and its picture is the table's own."""

import pickle
import re
from itertools import product
from pathlib import Path

import pytest

from adjudge_runtime.kernel import (
    TERMINAL_STATES,
    TRANSITIONS,
    Event,
    IllegalTransition,
    RunState,
    lifecycle_diagram,
    transition,
)

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "sessions.md"
PAIRS = list(product(RunState, Event))


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_every_pair_is_listed_or_illegal(state, event):
    """A pair leads where the table says, and to an error where the table says nothing."""
    if (state, event) in TRANSITIONS:
        assert TRANSITIONS[state, event] is transition(state, event)
        return
    with pytest.raises(IllegalTransition) as raised:
        transition(state, event)
    assert ("illegal_transition", state, event) == (
        raised.value.code,
        raised.value.state,
        raised.value.event,
    )


def test_the_table_has_nothing_but_states_and_events():
    """Keys and values of the table are members of the two enumerations."""
    assert set(TRANSITIONS) <= set(PAIRS)
    assert set(TRANSITIONS.values()) <= set(RunState)


def test_terminal_states_have_no_way_out():
    """Nothing happens any more to a session that has ended."""
    assert set() == {state for state, _ in TRANSITIONS} & TERMINAL_STATES


def test_every_other_state_can_reach_every_end():
    """From each state that is not terminal a session can come to fail and be cancelled."""
    for start in set(RunState) - TERMINAL_STATES:
        reached = {start}
        while True:
            more = {to for (state, _), to in TRANSITIONS.items() if state in reached} - reached
            if not more:
                break
            reached |= more
        assert reached >= TERMINAL_STATES


def test_every_state_is_reached():
    """There is a way from the beginning to each state."""
    assert set(RunState) == {RunState.CREATED, *TRANSITIONS.values()}


def test_the_table_cannot_be_changed():
    """Nobody adds a transition at run time."""
    with pytest.raises(TypeError):
        TRANSITIONS[RunState.COMPLETED, Event.START] = RunState.PLANNING


def test_the_error_pickles():
    """The error crosses processes with what it says."""
    error = IllegalTransition(RunState.COMPLETED, Event.PROPOSE)

    assert str(error) == str(pickle.loads(pickle.dumps(error)))


def test_the_picture_of_the_page_is_the_table():
    """The diagram that users see is the one that the table draws."""
    shown = re.search(r"```mermaid\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)

    assert shown is not None
    assert lifecycle_diagram() == shown[1]
    arrows = [line for line in shown[1].splitlines() if "-->" in line and "[*]" not in line]
    assert len(TRANSITIONS) == len(arrows)
