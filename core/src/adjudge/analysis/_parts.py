"""The parts of a match, each with the reading in which the engine compiles it.

Nothing is judged here: a leaf's answer comes from the engine's own closure for that leaf, and the
answer of a combination from the engine's own connectives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from adjudge._types import ActionRequest
from adjudge.policy._faults import Answer
from adjudge.policy._kleene import Matcher, all_of, any_of, negation
from adjudge.policy._match import Reading, compile_match
from adjudge.policy._model import AllOf, Always, AnyOf, Leaf, Match, Not, Path

__all__ = ["Part", "combined", "inner_part", "leaf_matcher", "part_of", "value_matcher"]

_ELEMENT = Path(".", (), ".")


@dataclass(frozen=True, slots=True)
class Part:
    """One node of a match, as it is read in its place."""

    kind: Literal["always", "leaf", "all_of", "any_of", "not"]
    match: Match
    reading: Reading
    parts: tuple[Part, ...] = ()


def part_of(match: Match, reading: Reading) -> Part:
    """Give a match with the reading of each of its parts, as `compile_match` reads them."""
    namespaced = any(
        isinstance(each, Leaf) and each.path.root == "tool.namespace" for each in _conjuncts(match)
    )
    return _part(match, replace(reading, namespaced=namespaced))


def _part(match: Match, reading: Reading) -> Part:
    match match:
        case Leaf():
            return Part("leaf", match, reading)
        case AllOf(parts):
            # A nested conjunction is one with what is around it.
            return Part("all_of", match, reading, tuple(_part(each, reading) for each in parts))
        case AnyOf(parts):
            return Part("any_of", match, reading, tuple(part_of(each, reading) for each in parts))
        case Not(part):
            below = replace(reading, odd=not reading.odd)
            return Part("not", match, reading, (part_of(part, below),))
        case Always():
            return Part("always", match, reading)


def _conjuncts(match: Match) -> Iterator[Match]:
    if isinstance(match, AllOf):
        for each in match.parts:
            yield from _conjuncts(each)
    else:
        yield match


def inner_part(part: Part) -> Part | None:
    """Give the match about the element, of a leaf with `size`, `each`, `some` or `normalized`."""
    leaf = part.match
    if not isinstance(leaf, Leaf) or not isinstance(leaf.operand, Leaf | AllOf | AnyOf | Not):
        return None
    normalized = part.reading.normalized or leaf.operator == "normalized"
    return part_of(leaf.operand, replace(part.reading, normalized=normalized))


def leaf_matcher(part: Part) -> Matcher:
    """Give the engine's own test of a leaf, the namespace that `tool` implies included."""
    leaf = part.match
    assert isinstance(leaf, Leaf)
    if leaf.path.root == "tool" and part.reading.namespaced:
        # Compiled alone, the leaf would not know of the namespace that stands beside it.
        of_name = value_matcher(part)

        def names(request: ActionRequest, _item: Any) -> Answer:
            return of_name(request, request.tool)

        return names
    return compile_match(leaf, part.reading)


def value_matcher(part: Part) -> Matcher:
    """Give the engine's test of a leaf as a test of a value, which is handed in as the element."""
    leaf = part.match
    assert isinstance(leaf, Leaf)
    return compile_match(replace(leaf, path=_ELEMENT), part.reading)


def combined(part: Part, answers: Sequence[Answer]) -> Answer:
    """Give the answer of a combination from those of its parts, by the engine's connectives."""
    known = [_constant(answer) for answer in answers]
    # The connectives hand the request on, and nothing reads it here.
    nobody: Any = None
    if part.kind == "not":
        return negation(known[0])(nobody, None)
    return (any_of if part.kind == "any_of" else all_of)(known)(nobody, None)


def _constant(answer: Answer) -> Matcher:
    return lambda _request, _item: answer
