"""What a regular expression is made of, as Python's own parser reads it.

A small tree for the analysis of backtracking: characters, sequences, alternatives, repeats,
lookarounds. Where the tree is coarser than the pattern (atomic groups, backreferences,
conditions) it stands for more ways to match, never for fewer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Nothing public gives a pattern's structure (`sre_parse` is deprecated and warns), and a parser
# of our own could read a pattern otherwise than the engine that runs it. A test fails when this
# moves.
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from adjudge.policy._patterns.chars import Alphabet, literals_of

__all__ = [
    "Alternatives",
    "Characters",
    "Look",
    "Position",
    "Repeat",
    "Sequence",
    "Tree",
    "build_tree",
    "flags_within",
    "is_rigid",
    "is_tied_and_nearly_rigid",
    "parse",
    "shape_of",
]


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of a set."""

    mask: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; an empty one matches the empty text."""

    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of these."""

    branches: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least `least` times, at most `most` (None: without bound)."""

    body: Tree
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """A lookaround: its body is tried, and the text goes on from where it was."""

    body: Tree
    behind: bool


@dataclass(frozen=True, slots=True)
class Position:
    """A test that consumes nothing; `text_start`: it holds at the very start of the text alone."""

    text_start: bool


_SINGLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_OF_KIND = int(re.ASCII | re.LOCALE | re.UNICODE)

Tree = Characters | Sequence | Alternatives | Repeat | Look | Position


def parse(pattern: str) -> Any:
    """Give the parser's own tree; raises what `re.compile` raises."""
    return _parser.parse(pattern)


def build_tree(parsed: Any) -> Tree:
    """Turn the parser's tree into ours."""
    return _Builder(Alphabet(literals_of(parsed))).sequence(parsed, parsed.state.flags)


def flags_within(flags: int, added: int, removed: int) -> int:
    """Give the flags within a group that sets some; of (?a) and (?u) the inner one holds alone."""
    if added & _OF_KIND:
        flags &= ~_OF_KIND
    return (flags | added) & ~removed


def is_rigid(parsed: Any) -> bool:
    """Tell whether a pattern leaves the engine no choice, so that it matches in one way or not.

    Then it is characters, positions and fixed counts of them, and nothing else.
    """
    return all(
        str(op) in _SINGLE or str(op) == "AT" or (str(op) in _REPEATS and _is_fixed(*argument))
        for op, argument in parsed
    )


def is_tied_and_nearly_rigid(parsed: Any, *, longest: int) -> bool:
    """Tell whether a pattern is tied to the text's start and chooses but one count of one set.

    Where the engine stands in the text then says how it came there; all that it can do at each
    place is to try the rest of the pattern, and rest and beginning are not longer than `longest`.
    """
    if not parsed or not _is_text_start(parsed[0][0], parsed[0][1], parsed.state.flags):
        return False
    choices = [
        place
        for place, (op, argument) in enumerate(parsed)
        if str(op) in _REPEATS and not _is_fixed(*argument)
    ]
    if len(choices) != 1:
        return False
    (place,) = choices
    _, _, body = parsed[place][1]
    if len(body) != 1 or str(body[0][0]) not in _SINGLE:
        return False
    parts = (parsed[:place], parsed[place + 1 :])
    return all(map(is_rigid, parts)) and sum(part.getwidth()[1] for part in parts) <= longest


def _is_text_start(op: Any, where: Any, flags: int) -> bool:
    return str(op) == "AT" and (
        str(where) == "AT_BEGINNING_STRING"
        or (str(where) == "AT_BEGINNING" and not flags & re.MULTILINE)
    )


def _is_fixed(least: int, most: int, body: Any) -> bool:
    return least == most and is_rigid(body)


def shape_of(parsed: Any, flags: int, *, text_end: bool) -> Any:
    r"""Give a comparable picture of a parsed pattern.

    With `text_end` each `$` that is not under (?m) is pictured as `\Z`.
    """
    if hasattr(parsed, "getwidth"):
        return tuple(shape_of(item, flags, text_end=text_end) for item in parsed)
    if not isinstance(parsed, tuple | list):
        return str(parsed)
    if len(parsed) == 2 and str(parsed[0]) == "AT":
        is_end = text_end and str(parsed[1]) == "AT_END" and not flags & re.MULTILINE
        return ("AT", "AT_END_STRING" if is_end else str(parsed[1]))
    if len(parsed) == 2 and str(parsed[0]) == "SUBPATTERN":
        _, added, removed, _ = parsed[1]
        flags = flags_within(flags, added, removed)
    return tuple(shape_of(item, flags, text_end=text_end) for item in parsed)


class _Builder:
    def __init__(self, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        self._groups: dict[int, tuple[Tree, int]] = {}

    def sequence(self, parsed: Any, flags: int) -> Tree:
        items = tuple(self._item(str(op), argument, flags) for op, argument in parsed)
        return items[0] if len(items) == 1 else Sequence(items)

    def _item(self, name: str, argument: Any, flags: int) -> Tree:
        if name == "AT":
            return Position(text_start=_is_text_start(name, argument, flags))
        if name == "BRANCH":
            return Alternatives(tuple(self.sequence(branch, flags) for branch in argument[1]))
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = argument
            bound = None if most == _parser.MAXREPEAT else int(most)
            return Repeat(self.sequence(body, flags), int(least), bound)
        if name in ("ASSERT", "ASSERT_NOT"):
            direction, body = argument
            return Look(self.sequence(body, flags), behind=direction < 0)
        if name in ("SUBPATTERN", "ATOMIC_GROUP", "GROUPREF", "GROUPREF_EXISTS"):
            return self._group(name, argument, flags)
        return Characters(self._mask(name, argument, flags))

    def _group(self, name: str, argument: Any, flags: int) -> Tree:
        if name == "ATOMIC_GROUP":
            return self.sequence(argument, flags)
        if name == "GROUPREF":
            return self._repeated(int(argument), flags)
        if name == "GROUPREF_EXISTS":
            _, yes, no = argument
            branches = (self.sequence(yes, flags), self.sequence(no or (), flags))
            return Alternatives(branches)
        group, added, removed, body = argument
        tree = self.sequence(body, flags_within(flags, added, removed))
        if group is not None:
            self._groups[group] = tree, flags & re.IGNORECASE
        return tree

    def _repeated(self, group: int, flags: int) -> Tree:
        """Stand in for a backreference: what its group matches, or anything if cases differ."""
        anything = Repeat(Characters(self._alphabet.everything), 0, None)
        tree, folded = self._groups.get(group, (anything, re.IGNORECASE))
        return tree if folded or not flags & re.IGNORECASE else anything

    def _mask(self, name: str, argument: Any, flags: int) -> int:
        alphabet = self._alphabet
        fold = bool(flags & re.IGNORECASE)
        if name == "LITERAL":
            return alphabet.literal(argument, fold=fold)
        if name == "NOT_LITERAL":
            return alphabet.but_literal(argument, fold=fold)
        if name == "IN":
            return alphabet.members(argument, fold=fold, ascii_only=bool(flags & re.ASCII))
        if name == "ANY" and not flags & re.DOTALL:
            return alphabet.any_but_newline()
        # DOTALL, and whatever a later parser may invent: any character.
        return alphabet.everything
