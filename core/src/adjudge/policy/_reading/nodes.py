"""A policy's text as a tree whose every part knows where it stands, and the problems found in it.

Each format (YAML, JSON, TOML, a dict) is read into these nodes, so that one reader serves them
all and every problem has a place. Nothing here knows what a policy means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge._values import MAX_DEPTH
from adjudge.errors import PolicyCompileError
from adjudge.policy._model import Place

__all__ = [
    "MAX_NODES",
    "MAX_SLOW_NODES",
    "MAX_SLOW_TEXT",
    "FASTER",
    "Entry",
    "Fields",
    "Items",
    "Node",
    "Problems",
    "Scalar",
    "below",
    "check_bounds",
    "kind_of_node",
]

MAX_NODES = 3_000_000
MAX_SLOW_TEXT = 4 * 1024 * 1024
MAX_SLOW_NODES = 300_000
"""As much as a parser written in Python reads in about a quarter of a minute."""

FASTER = (
    "Write it as JSON, or as YAML that libyaml reads as PyYAML does (the reference of policies "
    "says which), or split it into layers."
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value.

    `surprise`, where there is one, says why the text may mean something else than it seems to and
    what to write instead; `value` is then what YAML 1.1 makes of it.
    """

    value: Any
    place: Place
    surprise: str | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value`; `place` is the key's. `surprise` says why a key is not plainly text."""

    key: str
    value: Node
    place: Place
    surprise: str | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping, its entries in the order of the text, no key twice."""

    entries: tuple[Entry, ...]
    place: Place

    def get(self, key: str) -> Entry | None:
        """Give the entry of this key, or None."""
        return next((entry for entry in self.entries if entry.key == key), None)


Node = Scalar | Items | Fields


class Problems:
    """Collects what is wrong with one policy, so that its author sees everything at once."""

    def __init__(self, *, file: str | None = None) -> None:
        self.file = file
        self.values = 0
        self.most_values = MAX_NODES
        self._found: dict[tuple[Place, str], None] = {}
        self._rules: dict[str, str] = {}

    def name_rule(self, path: str, rule_id: str) -> None:
        """Let problems at or below this path speak of the rule by its id."""
        self._rules[path] = rule_id

    def add(self, place: Place, message: str) -> None:
        """Note one problem; the message is a whole sentence."""
        self._found[place, message] = None

    def add_text(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        """Note a problem of the text as a whole."""
        self.add(Place("", self.file, line, column), message)

    def take(self, others: Problems) -> None:
        """Take over what was found in an attempt that succeeded."""
        self._found |= others._found
        self.values += others.values

    def stop_if_any(self) -> None:
        """Raise `PolicyCompileError` with all that was found, in the order of the text."""
        if self._found:
            found = sorted(self._found, key=lambda each: (each[0].line or 0, each[0].column or 0))
            raise PolicyCompileError([f"{self._where(place)}{text}" for place, text in found])

    def _where(self, place: Place) -> str:
        position = ""
        if place.line is not None:
            name = place.file or "policy"
            position = f"{name}:{place.line}:{place.column}: "
        elif place.file is not None:
            position = f"{place.file}: "
        rule_path = place.path.split("]", 1)[0] + "]"
        rule_id = self._rules.get(rule_path)
        if rule_id is None:
            return f"{position}{place.path}: " if place.path else position
        if place.line is None:
            return f'{position}{place.path}: rule "{rule_id}": '
        rest = place.path[len(rule_path) :].lstrip(".")
        return f'{position}rule "{rule_id}"{", " + rest if rest else ""}: '


def below(place: Place, step: str | int) -> Place:
    """Give the place of a key or an index in what stands at `place`; line and column stay."""
    if isinstance(step, int):
        path = f"{place.path}[{step}]"
    else:
        path = f"{place.path}.{step}" if place.path else step
    return Place(path, place.file, place.line, place.column)


def check_bounds(depth: int, place: Place, problems: Problems) -> None:
    """Count one more value of the policy, and refuse it where it is too deep or one too many.

    The recursion of all reading is bounded by this.
    """
    problems.values += 1
    if problems.values > problems.most_values:
        slow = problems.most_values < MAX_NODES
        why = f", more than its reader takes in reasonable time. {FASTER}" if slow else "."
        problems.add(place, f"The policy has more than {problems.most_values} values{why}")
        problems.stop_if_any()
    if depth > MAX_DEPTH:
        problems.add(
            place, f"This is nested more than {MAX_DEPTH} levels deep; no policy needs that."
        )
        problems.stop_if_any()


def kind_of_node(node: Node) -> str:
    """Name the kind of a node for a sentence."""
    if isinstance(node, Fields):
        return "a mapping"
    if isinstance(node, Items):
        return "a list"
    value = node.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the bool {str(value).lower()}"
    if isinstance(value, str):
        return f"the string {value!r}" if len(value) <= 40 else "a string"
    if isinstance(value, int | float):
        return f"the number {value!r}" if abs(value) < 1e20 else "a number"
    return f"a {type(value).__name__}"
