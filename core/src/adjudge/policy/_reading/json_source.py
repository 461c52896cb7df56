"""Read JSON with line and column for every value, and no key twice.

Scalars are the standard library's to read; the structure is walked here because its parser gives
no places. What Python's parser adds to JSON (NaN, Infinity) is a problem.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from adjudge._values import MAX_INT_DIGITS
from adjudge.policy._model import Place
from adjudge.policy._reading.data_source import scalar_node
from adjudge.policy._reading.nodes import Entry, Fields, Items, Node, Problems, check_bounds

__all__ = ["JsonSyntax", "read_json"]

_SPACE = re.compile(r"[ \t\n\r]*")


class JsonSyntax(ValueError):
    """Text that is no JSON, with the 1-based line and column where that shows."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def read_json(text: str, problems: Problems, reached: Callable[[int], None] | None = None) -> Node:
    """Read one JSON text. Raises `JsonSyntax` for what is none.

    Duplicate keys and values that JSON cannot say are noted as problems.
    """
    return _Walker(text, problems, reached).whole()


class _Walker:
    def __init__(
        self, text: str, problems: Problems, reached: Callable[[int], None] | None
    ) -> None:
        self._text = text
        self._problems = problems
        self._reached = reached
        self._at = 0
        # A text may be nothing but lines, and a list takes 36 bytes for each.
        self._line_starts = array("I", [0])
        self._line_starts.extend(found.end() for found in re.finditer("\n", text))
        # An integer of thousands of digits must not raise while it is read.
        self._decoder = json.JSONDecoder(parse_int=_integer)

    def whole(self) -> Node:
        node = self._value("", 0)
        self._skip_space()
        if self._at < len(self._text):
            raise self._wrong("something follows the value that the text holds.")
        return node

    def _value(self, path: str, depth: int) -> Node:
        self._skip_space()
        place = self._place(path)
        check_bounds(depth, place, self._problems)
        if self._text.startswith("{", self._at):
            return self._object(place, depth)
        if self._text.startswith("[", self._at):
            return self._array(place, depth)
        return scalar_node(self._scalar(), place)

    def _object(self, place: Place, depth: int) -> Fields:
        entries: dict[str, Entry] = {}
        self._at += 1
        while not self._closes("}", first=not entries):
            self._skip_space()
            key_at = self._at
            key = self._scalar()
            if not isinstance(key, str):
                self._at = key_at
                raise self._wrong("a key must be a string in double quotes.")
            at = Place(f"{place.path}.{key}" if place.path else key, *self._position(key_at))
            self._skip_space()
            self._take(":")
            value = self._value(at.path, depth + 1)
            first = entries.get(key)
            if first is not None:
                self._problems.add(
                    at,
                    f'"{key}" is given twice; it stands at line {first.place.line}, column '
                    f"{first.place.column} as well. Keep one of them.",
                )
                continue
            entries[key] = Entry(key, value, at, scalar_node(key, at).surprise)
        return Fields(tuple(entries.values()), place)

    def _array(self, place: Place, depth: int) -> Items:
        items: list[Node] = []
        self._at += 1
        while not self._closes("]", first=not items):
            if self._reached is not None:
                self._reached(self._at)
            items.append(self._value(f"{place.path}[{len(items)}]", depth + 1))
        return Items(tuple(items), place)

    def _closes(self, bracket: str, *, first: bool) -> bool:
        self._skip_space()
        if self._text.startswith(bracket, self._at):
            self._at += 1
            return True
        if not first:
            self._take(",")
        return False

    def _take(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            raise self._wrong(f'"{mark}" is missing here.')
        self._at += 1

    def _scalar(self) -> Any:
        if self._text.startswith(("{", "["), self._at):
            raise self._wrong("a key must be a string in double quotes.")
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = error.pos
            raise self._wrong(f"{error.msg.lower()}.") from None
        return value

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _position(self, at: int) -> tuple[str | None, int, int]:
        line = bisect_right(self._line_starts, at)
        return self._problems.file, line, at - self._line_starts[line - 1] + 1

    def _place(self, path: str) -> Place:
        return Place(path, *self._position(self._at))

    def _wrong(self, message: str) -> JsonSyntax:
        _, line, column = self._position(self._at)
        return JsonSyntax(message, line, column)


def _integer(digits: str) -> int:
    """Read an integer, or one that is as plainly too long where Python would refuse to."""
    return int(digits) if len(digits) <= MAX_INT_DIGITS else 10**MAX_INT_DIGITS
