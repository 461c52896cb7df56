"""libyaml reads a policy only where it reads what PyYAML's own parser reads, places included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adjudge.errors import PolicyCompileError
from adjudge.policy._reading.nodes import Problems
from adjudge.policy._reading.yaml_events import Doubtful, events_of, fast_events_of
from adjudge.policy._reading.yaml_source import _Composer, read_yaml

pytestmark = pytest.mark.needs_yaml

WORDS = [
    *("-", "a", "b:", ":", "?", "#", "'", '"', "'it''s'", '"a\\n"', "|", "|-", "|2", ">", ">+"),
    *("[", "]", "{", "}", ",", "&a", "*a", "!!str", "!", "---", "...", "<<:", "~", "null", "12"),
    *("1.5", "@", "`", "%YAML", "\\", '"\\x41"', '"\\/"', "é", "ü:", "→"),
]
SPACES = [
    "\n",
    "\n  ",
    "\n    ",
    "\n- ",
    " ",
    "\t",
    "\u00a0",
    "\u2028",
    " # c",
    "key: value\n",
    "x: ,",
]
PIECES = [*WORDS, *SPACES, *SPACES]


def read(text: str, events: Any) -> Any:
    """Give what one parser makes of a text: the tree, or the problems."""
    problems = Problems()
    try:
        return _Composer(events(text), problems, None).document(), list(problems._found)
    except PolicyCompileError as error:
        return error.problems


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map(lambda parts: "".join(parts) + "\n"))
@example("? a\n")
@example("a: |# b\n")
@example("a: >-#b\n  c\n")
@example("!&b!!int! x\n")
@example("{x: , y: 1}\n")
@example("{a? b: c}\n")
@example("[a, b?]\n")
@example("a:\tb\n")
@example("- &a [1]\n- *a\n")
@example("a: " + "x" * 1100 + "\n" + "y" * 1100 + ": b\n")
@example('a: "b\\\n  c"\n')
@example("é: ü\nb: →  # c\n")
def test_where_libyaml_is_not_in_doubt_both_read_the_same(text: str) -> None:
    """Values, keys, surprises, places and problems are the same."""
    try:
        by_libyaml = read(text, fast_events_of)
    except Doubtful:
        return

    assert read(text, events_of) == by_libyaml


@pytest.mark.parametrize(
    "text",
    ["a: [1\n", "a: \tb\n", "? a\n", "a: !!str b\n", "a: |#\n", "a:\n", "%YAML 1.1\n--- a\n"],
)
def test_what_the_two_may_read_differently_is_in_doubt(text: str) -> None:
    """Such a text is left to the parser in Python, its errors too."""
    with pytest.raises(Doubtful):
        list(fast_events_of(text))


def test_a_text_in_doubt_is_read_from_its_beginning() -> None:
    """What was found before the doubt arose is found once."""
    text = "a: yes\na: no\nb: x?\n"
    problems = Problems()
    read_yaml(text, problems)
    expected = Problems()
    _Composer(events_of(text), expected, None).document()

    assert expected._found == problems._found
    assert expected.values == problems.values


def test_a_plain_policy_is_not_in_doubt() -> None:
    """What most policies are made of goes the fast way, where PyYAML has it."""
    import yaml

    text = "version: 1\nrules:\n- id: a\n  match: {tool: x, args.to.matches: '^a?$'}\n"

    if yaml.__with_libyaml__:
        assert list(fast_events_of(text))
