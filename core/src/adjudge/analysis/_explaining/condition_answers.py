"""The conditions of one rule, each with its answer and the value that it saw.

Each answer is the engine's: of a leaf its own closure's, of a combination that of the engine's
connectives over its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from adjudge.analysis._explaining.explanation import ConditionAnswer
from adjudge.analysis._explaining.seeing import Shown
from adjudge.analysis._parts import Part, combined, inner_part, leaf_matcher, value_matcher
from adjudge.policy._faults import Answer, Fault, raised
from adjudge.policy._model import AllOf, AnyOf, Leaf, Match, Not, Ref
from adjudge.policy._operators import normal_form
from adjudge.policy._subjects import subject

__all__ = ["Conditions"]

_MOST_ELEMENTS = 20
_NOTHING = object()


class Conditions:
    """Explains matches about one call; `predicates` names the parts that stand for one."""

    def __init__(self, shown: Shown, predicates: Mapping[str, Match]) -> None:
        self._shown = shown
        self._predicates = {id(match): name for name, match in predicates.items()}

    def of(self, part: Part) -> tuple[Answer, ConditionAnswer]:
        """Give the answer of a part, and how it came about."""
        return self._part(part, _NOTHING, _NOTHING)

    def _part(self, part: Part, item: Any, shown_item: Any) -> tuple[Answer, ConditionAnswer]:
        if part.kind == "leaf":
            answer, told = self._leaf(part, item, shown_item)
        else:
            pairs = [self._part(each, item, shown_item) for each in part.parts]
            answer = combined(part, [one for one, _ in pairs])
            told = ConditionAnswer(
                part.kind, _word(answer), note=_cause(answer), parts=tuple(two for _, two in pairs)
            )
        name = self._predicates.get(id(part.match))
        return answer, told if name is None else _named(told, name)

    def _leaf(self, part: Part, item: Any, shown_item: Any) -> tuple[Answer, ConditionAnswer]:
        leaf = part.match
        assert isinstance(leaf, Leaf)
        element = None if item is _NOTHING else item
        try:
            answer: Answer = leaf_matcher(part)(self._shown.request, element)
        except Exception as error:
            answer = raised(error)
        value, shown = self._value(leaf, item, shown_item)
        text, operand = self._written(leaf)
        told = ConditionAnswer(
            text=text,
            answer=_word(answer),
            operand=operand,
            seen=None if isinstance(value, Fault) else shown,
            absent=value is None,
            note=_cause(answer) or self._note(part, value, answer),
            place=leaf.place,
            parts=tuple(self._inside(part, value, shown)),
        )
        return answer, told

    def _note(self, part: Part, value: Any, answer: Answer) -> str:
        """Say what beside the value settled the answer (clauses 8 and 13)."""
        leaf, request = part.match, self._shown.request
        assert isinstance(leaf, Leaf)
        about_absence = leaf.operator == "exists" or leaf.operand is None
        if value is None and not about_absence and answer is True:
            return "counts as true here, so that it permits nothing under the negation"
        if leaf.path.root == "tool" and answer is False and request.namespace is not None:
            implied = part.reading.in_permitting_position and not part.reading.namespaced
            if implied and value_matcher(part)(request, request.tool) is True:
                return f"the call is in the namespace {request.namespace!r}, which is not declared"
        return ""

    def _value(self, leaf: Leaf, item: Any, shown_item: Any) -> tuple[Any, Any]:
        if leaf.path.root != ".":
            return self._shown.value(leaf.path)
        read = subject(leaf.path, ".")
        request = self._shown.request
        value, shown = read(request, item), read(request, shown_item)
        return value, None if isinstance(shown, Fault) else shown

    def _written(self, leaf: Leaf) -> tuple[str, Any]:
        path = leaf.path.text
        if not path.endswith(f".{leaf.operator}") or leaf.path.root == ".":
            path = f"{_plain_path(path)} {leaf.operator}"
        else:
            path = f"{path.removesuffix(f'.{leaf.operator}')} {leaf.operator}"
        operand = leaf.operand
        if isinstance(operand, Ref):
            value, shown = self._shown.value(operand.path)
            return f"{path} {{ref: {operand.path.text}}}", (
                None if isinstance(value, Fault) else shown
            )
        inside = isinstance(operand, Leaf | AllOf | AnyOf | Not)
        return path, None if inside else operand

    def _inside(self, part: Part, value: Any, shown: Any) -> Iterator[ConditionAnswer]:
        """Explain the match about the element: of each one, of the size, or of the normal form."""
        inner = inner_part(part)
        leaf = part.match
        assert isinstance(leaf, Leaf)
        if inner is None or value is None or isinstance(value, Fault):
            return
        if leaf.operator == "size" and isinstance(value, str | list | tuple | Mapping):
            yield self._part(inner, len(value), len(value))[1]
        elif leaf.operator == "normalized" and isinstance(value, str):
            yield self._part(inner, normal_form(value), normal_form(shown))[1]
        elif leaf.operator in ("each", "some") and isinstance(value, list | tuple):
            known = shown if isinstance(shown, list | tuple) else [shown] * len(value)
            for one, other in list(zip(value, known, strict=False))[:_MOST_ELEMENTS]:
                yield self._part(inner, one, other)[1]


def _plain_path(path: str) -> str:
    for operator in ("ne", "not_in", "not_between"):
        path = path.removesuffix(f".{operator}")
    return path


def _named(told: ConditionAnswer, name: str) -> ConditionAnswer:
    return replace(told, predicate=name)


def _word(answer: Answer) -> str:
    if isinstance(answer, Fault):
        return "error"
    return "true" if answer else "false"


def _cause(answer: Answer) -> str:
    return answer.cause if isinstance(answer, Fault) else ""
