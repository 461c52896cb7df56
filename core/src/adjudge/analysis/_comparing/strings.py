"""Strings that a regular expression may match, and strings close to them that it may not.

They are read off the tree of Python's own parser and are suggestions alone: whether one matches is
for the engine to say.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adjudge.policy._patterns.tree import parse

__all__ = ["strings_for"]

_MOST = 40
_MOST_OF_PART = 6
_LONGEST = 2048
_OF_CATEGORY: Mapping[str, str] = {
    "CATEGORY_DIGIT": "05",
    "CATEGORY_NOT_DIGIT": "a ",
    "CATEGORY_SPACE": " \n",
    "CATEGORY_NOT_SPACE": "a0",
    "CATEGORY_WORD": "a0_",
    "CATEGORY_NOT_WORD": "- ",
}
_OTHERS = "x0A _-./:é\n"


def strings_for(pattern: str) -> list[str]:
    """Give texts of which some match the pattern and some do not, at most 40."""
    try:
        parsed = parse(pattern)
        plain = list(_Strings().sequence(parsed))
    except (re.error, RecursionError, OverflowError):
        plain = []
    near = [text for base in plain[:3] for text in _near(base)]
    return list(dict.fromkeys([*plain[: _MOST // 2], *near, *plain, "", "x"]))[:_MOST]


def _near(text: str) -> Iterator[str]:
    yield from (f"{text}x", f"x{text}", f"{text}\n", text[:-1], text[1:], text.swapcase())
    yield from (f"x {text} x", f"/{text}/", f"{text}{text}")


class _Strings:
    def __init__(self) -> None:
        self._groups: dict[int, str] = {}

    def sequence(self, parsed: Iterable[Any]) -> list[str]:
        """Give the simplest text first, then those in which one part is another."""
        parts = [self._part(str(op), argument) or [""] for op, argument in parsed]
        texts = ["".join(part[0] for part in parts)]
        for place, part in enumerate(parts):
            before = "".join(other[0] for other in parts[:place])
            after = "".join(other[0] for other in parts[place + 1 :])
            texts += [before + text + after for text in part[1:]]
        short = [text for text in texts if len(text) <= _LONGEST]
        return list(dict.fromkeys(short))[:_MOST] or [""]

    def _part(self, name: str, argument: Any) -> list[str]:
        if name == "LITERAL":
            return [chr(argument)]
        if name == "NOT_LITERAL":
            return [char for char in _OTHERS if char != chr(argument)][:2]
        if name == "ANY":
            return ["x", "/"]
        if name == "IN":
            return _members(argument)[:_MOST_OF_PART]
        if name == "BRANCH":
            branches = [self.sequence(branch) for branch in argument[1]]
            # In turn, so that none is cut off by another.
            rounds = itertools.zip_longest(*branches)
            return [text for each in rounds for text in each if text is not None][:_MOST]
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repeated(*argument)
        if name == "SUBPATTERN":
            texts = self.sequence(argument[3])
            if argument[0] is not None:
                self._groups[argument[0]] = texts[0]
            return texts
        if name == "ATOMIC_GROUP":
            return self.sequence(argument)
        if name == "GROUPREF":
            return [self._groups.get(argument, "")]
        if name == "ASSERT":
            # Where nothing else follows, the text ahead is what makes it hold.
            return ["", *self.sequence(argument[1])[:2]] if argument[0] > 0 else [""]
        return [""]

    def _repeated(self, least: Any, most: Any, body: Any) -> list[str]:
        texts = self.sequence(body)
        least, most = int(least), int(most)
        counts = [max(least, 1), least, least + 1, least - 1, most, most + 1]
        usable = [n for n in dict.fromkeys(counts) if 0 <= n * max(len(texts[0]), 1) <= _LONGEST]
        repeated = [texts[0] * count for count in usable]
        return [*repeated, *(text * max(least, 1) for text in texts[1:_MOST_OF_PART])]


def _members(items: Iterable[Any]) -> list[str]:
    found: list[str] = []
    negated = False
    for op, argument in items:
        name = str(op)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            found.append(chr(argument))
        elif name == "RANGE":
            low, high = argument
            # The ends, and what lies just beyond them.
            found += [chr(low), chr(high), *(chr(n) for n in (low - 1, high + 1) if 0 < n < 0xD800)]
        elif name == "CATEGORY":
            found += _OF_CATEGORY.get(str(argument), "")
    return [char for char in _OTHERS if char not in found] + found if negated else found
