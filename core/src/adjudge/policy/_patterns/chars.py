"""Sets of characters as bit masks over sample characters.

Two sets that share a character share a bit: a mask may be too large, never too small. ASCII is
exact; beyond it stand the characters that the pattern names and four samples, a letter, a digit,
a space and a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

__all__ = ["Alphabet", "literals_of"]

# A letter, a digit, a space and a symbol beyond ASCII, for all the characters that a pattern does
# not name.
_BEYOND_ASCII = "\u00e9\u0663\u2003\u2192"

_IN_CATEGORY: Mapping[str, Callable[[str], bool]] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda char: char.isalnum() or char == "_",
}
_ASCII = 128
_ASCII_IN_CATEGORY: Mapping[str, int] = {
    name: sum(1 << point for point in range(_ASCII) if holds(chr(point)))
    for name, holds in _IN_CATEGORY.items()
}


def literals_of(parsed: Any) -> Iterator[int]:
    """Give the code points that a parsed pattern names, at any depth."""
    for op, argument in parsed:
        name = str(op)
        if name in ("LITERAL", "NOT_LITERAL"):
            yield argument
        elif name == "RANGE":
            yield from argument
        elif name == "IN":
            yield from literals_of(argument)
        elif isinstance(argument, tuple):
            for part in argument:
                for each in part if isinstance(part, list) else (part,):
                    if hasattr(each, "getwidth"):
                        yield from literals_of(each)
        elif hasattr(argument, "getwidth"):
            yield from literals_of(argument)


class Alphabet:
    """The sample characters of one pattern."""

    def __init__(self, code_points: Iterable[int]) -> None:
        named = {variant for point in code_points if point > 127 for variant in _cases(chr(point))}
        more = {char for char in named if ord(char) > 127} - set(_BEYOND_ASCII)
        beyond = [*_BEYOND_ASCII, *sorted(more)]
        # The bit of an ASCII character is its code point; these come after it.
        self._beyond = {char: 1 << _ASCII + index for index, char in enumerate(beyond)}
        self.everything = (1 << _ASCII + len(beyond)) - 1

    def any_but_newline(self) -> int:
        """Give what a dot stands for."""
        return self.everything & ~(1 << ord("\n"))

    def literal(self, point: int, *, fold: bool) -> int:
        """Give the mask of one character, of all its cases with `fold`."""
        mask = 0
        for char in _cases(chr(point)) if fold else (chr(point),):
            mask |= 1 << ord(char) if ord(char) < _ASCII else self._beyond.get(char, 0)
        return mask

    def but_literal(self, point: int, *, fold: bool) -> int:
        """Give the mask of every character but one."""
        return self.everything & ~self.literal(point, fold=fold)

    def members(self, items: Iterable[Any], *, fold: bool, ascii_only: bool) -> int:
        """Give the mask of a set in brackets, which is a list of parsed members."""
        perhaps = surely = 0
        negated = False
        for op, argument in items:
            name = str(op)
            if name == "NEGATE":
                negated = True
                continue
            more, certain = self._member(name, argument, fold=fold, ascii_only=ascii_only)
            perhaps |= more
            surely |= certain
        return self.everything & ~surely if negated else perhaps

    def _member(self, name: str, argument: Any, *, fold: bool, ascii_only: bool) -> tuple[int, int]:
        """Give what a member of a set stands for perhaps, and for certain."""
        if name == "LITERAL":
            mask = self.literal(argument, fold=fold)
            return mask, mask
        if name == "RANGE":
            return self._range(*argument, fold=fold)
        if name == "CATEGORY":
            mask = self._category(str(argument).removeprefix("CATEGORY_"), ascii_only=ascii_only)
            return mask, mask
        return self.everything, 0

    def _range(self, low: int, high: int, *, fold: bool) -> tuple[int, int]:
        if high < _ASCII and not fold:
            mask = (1 << high + 1) - (1 << low)
            return mask, mask

        def holds(char: str) -> bool:
            return any(low <= ord(each) <= high for each in (_cases(char) if fold else (char,)))

        mask = sum(1 << point for point in range(_ASCII) if holds(chr(point)))
        mask |= self._mask_beyond(holds)
        if high < _ASCII:
            return mask, mask
        samples = self._mask_beyond(_BEYOND_ASCII.__contains__)
        return mask | samples, mask & ~samples

    def _category(self, name: str, *, ascii_only: bool) -> int:
        kind = name.removeprefix("NOT_")
        mask = _ASCII_IN_CATEGORY[kind]
        if not ascii_only:
            mask |= self._mask_beyond(_IN_CATEGORY[kind])
        return self.everything & ~mask if name.startswith("NOT_") else mask

    def _mask_beyond(self, holds: Callable[[str], bool]) -> int:
        return sum(bit for char, bit in self._beyond.items() if holds(char))


def _cases(char: str) -> tuple[str, ...]:
    """Give a character in each of its cases that is a single character."""
    variants = dict.fromkeys((char, char.lower(), char.upper(), char.title(), char.casefold()))
    return tuple(variant for variant in variants if len(variant) == 1)
