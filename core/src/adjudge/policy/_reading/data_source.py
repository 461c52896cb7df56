"""Turn plain Python data (a dict, or what TOML gives) into nodes.

Values are held to what JSON can say; enums stand for their values, tuples and sets for lists.
Places are paths, without lines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any

from adjudge._values import MAX_INT_DIGITS
from adjudge.policy._model import Place
from adjudge.policy._reading.nodes import (
    Entry,
    Fields,
    Items,
    Node,
    Problems,
    Scalar,
    below,
    check_bounds,
)

__all__ = ["nodes_of", "scalar_node"]

_MAX_REPEATED = 500_000
_MAX_INT = 10**MAX_INT_DIGITS


def nodes_of(data: Mapping[str, Any], problems: Problems) -> Node:
    """Give the tree of a mapping."""
    return _Builder(problems).node(data, Place("", problems.file), 0)


class _Builder:
    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        # Held, so that none of them can give way to another with its id.
        self._seen: dict[int, object] = {}
        self._repeated = 0

    def node(self, value: Any, place: Place, depth: int) -> Node:
        check_bounds(depth, place, self._problems)
        kind = type(value)
        if kind is str or kind is int:
            return scalar_node(value, place)
        if isinstance(value, Mapping):
            self._note_repeated(value, place)
            return self._fields(value, place, depth)
        if isinstance(value, list | tuple):
            self._note_repeated(value, place)
            return self._items(value, place, depth)
        if isinstance(value, set | frozenset):
            self._note_repeated(value, place)
            # A set has no order of its own, and the policy's id must not depend on chance.
            return self._items(sorted(value, key=repr), place, depth)
        return scalar_node(value, place)

    def _note_repeated(self, value: Collection[Any], place: Place) -> None:
        """Count what stands in several places: a few lists of lists can stand for billions."""
        if id(value) not in self._seen:
            self._seen[id(value)] = value
            return
        self._repeated += 1 + len(value)
        if self._repeated > _MAX_REPEATED:
            self._problems.add(
                place,
                f"Lists and mappings that stand in several places stand for more than "
                f"{_MAX_REPEATED} values; write them out.",
            )
            self._problems.stop_if_any()

    def _fields(self, value: Mapping[Any, Any], place: Place, depth: int) -> Fields:
        entries = []
        for key, item in value.items():
            text = key if type(key) is str else str(getattr(key, "value", key))
            at = below(place, text)
            surprise = None
            if not isinstance(key, str):
                surprise = f"A key is text; this one is {type(key).__name__} {key!r}."
            elif not _is_unicode(text):
                surprise = "A key holds a lone surrogate; it must be Unicode text."
            entries.append(Entry(text, self.node(item, at, depth + 1), at, surprise))
        return Fields(tuple(entries), place)

    def _items(self, values: list[Any] | tuple[Any, ...], place: Place, depth: int) -> Items:
        return Items(
            tuple(
                self.node(item, below(place, index), depth + 1) for index, item in enumerate(values)
            ),
            place,
        )


def scalar_node(value: Any, place: Place) -> Scalar:
    """Give the node of a single value; what JSON cannot say comes with a sentence about it."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return Scalar(value, place)
    if isinstance(value, str):
        if _is_unicode(value):
            return Scalar(str.__str__(value), place)
        return Scalar("", place, "The text holds a lone surrogate; it must be Unicode.")
    if isinstance(value, int | float | Decimal):
        return _number(value, place)
    return Scalar(
        None,
        place,
        f"A {type(value).__name__} is no JSON value; write it as a string in quotes.",
    )


def _number(value: int | float | Decimal, place: Place) -> Scalar:
    if isinstance(value, int):
        if -_MAX_INT < value < _MAX_INT:
            return Scalar(int(value), place)
        return Scalar(
            0, place, f"An integer of more than {MAX_INT_DIGITS} digits cannot be compared with."
        )
    finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    if not finite:
        return Scalar(0, place, f"{value} is no finite number; write a finite one.")
    return Scalar(value if isinstance(value, Decimal) else float(value), place)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
