r"""Write a pattern in RE2's language, where the two engines mean the same.

From the tree of Python's parser, so that nothing of the text is read a second time. What a set, a
dot or a letter without regard to case stands for is asked of Python's own engine, one character
after the other: the Unicode tables and the folding of cases of the two differ. What RE2 has not
(lookarounds, backreferences, atomic groups), or may answer otherwise (a repeat of what can be
empty, a `$` that is not last), has no translation.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterator
from typing import Any

from adjudge.policy._patterns.tree import flags_within, parse

__all__ = ["translated"]

_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_CATEGORIES = {
    "DIGIT": r"\d",
    "NOT_DIGIT": r"\D",
    "SPACE": r"\s",
    "NOT_SPACE": r"\S",
    "WORD": r"\w",
    "NOT_WORD": r"\W",
}.items()
_MOST_REPEATS = 1000
_NOTHING = r"[^\x00-\x{10FFFF}]"


class _Untranslatable(Exception):
    """RE2 has no such thing, or means another by it."""


def translated(pattern: str, *, ascii_only: bool) -> str | None:
    r"""Translate a pattern that Python compiles; None where the engines may differ.

    With `ascii_only` the engines agree on texts of ASCII alone, which is much less to look at, and
    lets `\b` be translated.
    """
    parsed = parse(pattern)
    try:
        return _Writer(ascii_only).sequence(parsed, parsed.state.flags, last=True)
    except (_Untranslatable, RecursionError):
        return None


class _Writer:
    def __init__(self, ascii_only: bool) -> None:
        self._ascii_only = ascii_only
        self._characters = "".join(map(chr, range(128))) if ascii_only else ""
        self._sets: dict[tuple[str, int], str] = {}

    def sequence(self, parsed: Any, flags: int, *, last: bool) -> str:
        """Write one item after the other; `last` says that nothing of the pattern follows."""
        final = len(parsed) - 1
        return "".join(
            self._item(str(op), argument, flags, last=last and index == final)
            for index, (op, argument) in enumerate(parsed)
        )

    def _item(self, name: str, argument: Any, flags: int, *, last: bool) -> str:
        if name == "AT":
            return self._position(str(argument), flags, last=last)
        if name == "BRANCH":
            branches = (self.sequence(branch, flags, last=last) for branch in argument[1])
            return f"(?:{'|'.join(branches)})"
        if name == "SUBPATTERN":
            _, added, removed, body = argument
            return f"(?:{self.sequence(body, flags_within(flags, added, removed), last=last)})"
        if name in _REPEATS:
            least, most, body = argument
            return self._repeat(int(least), int(most), body, flags)
        if name == "LITERAL" and not flags & re.IGNORECASE:
            return _escaped(argument)
        return self._set(_one_character(name, argument), flags)

    def _position(self, where: str, flags: int, *, last: bool) -> str:
        if where in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
            if not (self._ascii_only or flags & re.ASCII):
                raise _Untranslatable  # RE2's words are of ASCII letters.
            return r"\b" if where == "AT_BOUNDARY" else r"\B"
        if where == "AT_BEGINNING":
            return "(?m:^)" if flags & re.MULTILINE else r"\A"
        if where == "AT_BEGINNING_STRING":
            return r"\A"
        if where == "AT_END_STRING":
            return r"\z"
        if where != "AT_END" or not (flags & re.MULTILINE or last):
            raise _Untranslatable
        # Python's `$` looks ahead over one newline; where nothing follows it may as well be read.
        return "(?m:$)" if flags & re.MULTILINE else r"\n?\z"

    def _repeat(self, least: int, most: int, body: Any, flags: int) -> str:
        endless = most >= _endless()
        shortest, _ = body.getwidth()
        if (shortest == 0 and most > 1) or (least if endless else most) > _MOST_REPEATS:
            raise _Untranslatable
        bounds = f"{{{least},{'' if endless else most}}}"
        return f"(?:{self.sequence(body, flags, last=False)}){bounds}"

    def _set(self, source: str, flags: int) -> str:
        """Write the set of characters that Python's engine takes for a one-character pattern."""
        key = (source, flags & (re.IGNORECASE | re.ASCII | re.DOTALL))
        if key not in self._sets:
            self._characters = self._characters or _every_character()
            runs = re.compile(f"(?:{source})+", key[1]).finditer(self._characters)
            ranges = [pair for run in runs for pair in _ranges(run.group())]
            members = "".join(f"{_escaped(low)}-{_escaped(high)}" for low, high in ranges)
            self._sets[key] = f"[{members}]" if members else _NOTHING
        return self._sets[key]


def _endless() -> int:
    """Give the number that Python's parser writes for "without bound"."""
    return int(parse("a*")[0][1][1])


def _every_character() -> str:
    """Give every character but the surrogates, which no well-formed text has."""
    # Several times as fast as joining single characters, and somebody waits for it.
    points = array("I", range(0xD800))
    points.extend(range(0xE000, 0x110000))
    return points.tobytes().decode("utf-32-le" if sys.byteorder == "little" else "utf-32-be")


def _ranges(run: str) -> Iterator[tuple[int, int]]:
    """Give a run of neighbouring characters as ranges; one may lead across the surrogates."""
    low, high = ord(run[0]), ord(run[-1])
    if low < 0xD800 <= 0xDFFF < high:
        yield low, 0xD7FF
        yield 0xE000, high
    else:
        yield low, high


def _escaped(point: int) -> str:
    return f"\\x{{{point:X}}}"


def _one_character(name: str, argument: Any) -> str:
    """Write an item that stands for one character in Python's language again."""
    if name == "ANY":
        return "."
    if name == "LITERAL":
        return _in_python(argument)
    if name == "NOT_LITERAL":
        return f"[^{_in_python(argument)}]"
    if name != "IN":
        raise _Untranslatable
    return "[" + "".join(_member(str(op), value) for op, value in argument) + "]"


def _member(name: str, argument: Any) -> str:
    if name == "NEGATE":
        return "^"
    if name == "LITERAL":
        return _in_python(argument)
    if name == "RANGE":
        return f"{_in_python(argument[0])}-{_in_python(argument[1])}"
    for category, written in _CATEGORIES:
        if str(argument) == f"CATEGORY_{category}":
            return written
    raise _Untranslatable


def _in_python(point: int) -> str:
    return f"\\U{point:08x}"
