r"""What is certain about the texts in which a pattern is found.

Read from Python's own parse of the pattern, and only where its meaning is plain: literal texts,
sets, alternatives and bounded repeats, without flags. Whatever else a pattern has, nothing is said
of that part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.policy._patterns.tree import parse

__all__ = ["Certain", "certain_of", "is_bound"]

_MOST_TEXTS = 64
_FLAGS = re.IGNORECASE | re.MULTILINE | re.VERBOSE
_STARTS = ("AT_BEGINNING", "AT_BEGINNING_STRING")
_ENDS = ("AT_END", "AT_END_STRING")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


@dataclass(frozen=True, slots=True)
class Certain:
    """Where the pattern is found, the text is one of `texts`, begins with `prefix`, and so on.

    `exactly` says that the converse holds as well: it is found in every such text (if that is short
    enough to be searched). `everywhere` says that it is found in every text.
    """

    texts: frozenset[str] | None = None
    prefix: str = ""
    suffix: str = ""
    fragments: tuple[str, ...] = ()
    exactly: bool = False
    everywhere: bool = False


def certain_of(pattern: str, permitting: bool) -> Certain:
    """Say what is certain about the texts in which a pattern is found, in one position."""
    try:
        parsed = parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return Certain()
    if parsed.state.flags & _FLAGS:
        return Certain()
    items = [(str(op), argument) for op, argument in parsed]
    if _is_empty_able(items):
        return Certain(everywhere=True)
    starts = bool(items) and items[0][0] == "AT" and str(items[0][1]) in _STARTS
    ends = bool(items) and items[-1][0] == "AT" and str(items[-1][1]) in _ENDS
    before_newline = ends and not permitting and str(items[-1][1]) == "AT_END"
    body = items[1 if starts else 0 : -1 if ends else None]
    if starts and ends:
        texts = _texts(body)
        if texts is not None:
            more = {f"{text}\n" for text in texts} if before_newline else set()
            return Certain(texts=frozenset(texts | more), exactly=True)
    lead, trail = _literal(body), _literal(body[::-1])[::-1]
    whole = all(name == "LITERAL" for name, _ in body)
    return Certain(
        prefix=lead if starts else "",
        suffix=trail if ends and not before_newline else "",
        fragments=tuple(_fragments(body)),
        exactly=whole and not (starts and ends) and not before_newline,
    )


def is_bound(pattern: str) -> tuple[bool, bool]:
    """Whether every text that the pattern accepts is tied to its start, and to its end.

    An anchor beside `.*` ties nothing. True of a pattern that cannot be read.
    """
    try:
        parsed = parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return True, True
    multiline = bool(parsed.state.flags & re.MULTILINE)
    return (
        _is_tied(parsed, _STARTS[multiline:], last=False),
        _is_tied(parsed, _ENDS[multiline:], last=True),
    )


def _is_tied(parsed: Any, anchors: tuple[str, ...], *, last: bool) -> bool:
    items = [(str(op), argument) for op, argument in parsed]
    if last:
        items.reverse()
    if not items:
        return False
    name, argument = items[0]
    if name == "AT" and str(argument) in anchors:
        return not (len(items) > 1 and _is_anything(*items[1]))
    if name == "SUBPATTERN":
        return _is_tied(argument[3], anchors, last=last)
    return name == "BRANCH" and all(_is_tied(one, anchors, last=last) for one in argument[1])


def _is_anything(name: str, argument: Any) -> bool:
    if name not in _REPEATS:
        return False
    least, most, body = argument
    return least <= 1 and most >= 1000 and [str(op) for op, _ in body] in (["ANY"], ["NOT_LITERAL"])


def _is_empty_able(items: Sequence[tuple[str, Any]]) -> bool:
    """Whether the pattern is found, as an empty text, at the start of every text."""
    for name, argument in items:
        if name in _REPEATS and argument[0] == 0:
            continue
        if name == "AT" and str(argument) in _STARTS:
            continue
        if name == "SUBPATTERN" and _is_empty_able([(str(o), a) for o, a in argument[3]]):
            continue
        if name == "BRANCH" and any(
            _is_empty_able([(str(o), a) for o, a in branch]) for branch in argument[1]
        ):
            continue
        return False
    return True


def _texts(items: Sequence[tuple[str, Any]]) -> set[str] | None:
    """Give all the texts of a sequence, if they are few."""
    texts = {""}
    for name, argument in items:
        more = _texts_of(name, argument)
        if more is None or len(texts) * len(more) > _MOST_TEXTS:
            return None
        texts = {left + right for left in texts for right in more}
    return texts


def _texts_of(name: str, argument: Any) -> set[str] | None:
    if name == "LITERAL":
        return {chr(argument)}
    if name == "IN":
        if all(str(op) == "LITERAL" for op, _ in argument):
            return {chr(point) for _, point in argument}
        return None
    if name == "SUBPATTERN":
        _, added, removed, body = argument
        return None if added or removed else _texts([(str(o), a) for o, a in body])
    if name == "BRANCH":
        united: set[str] = set()
        for branch in argument[1]:
            texts = _texts([(str(o), a) for o, a in branch])
            if texts is None:
                return None
            united |= texts
        return united if len(united) <= _MOST_TEXTS else None
    if name in ("MAX_REPEAT", "MIN_REPEAT") and argument[:2] == (0, 1):
        texts = _texts([(str(o), a) for o, a in argument[2]])
        return None if texts is None else texts | {""}
    return None


def _literal(items: Sequence[tuple[str, Any]]) -> str:
    text = ""
    for name, argument in items:
        if name != "LITERAL":
            break
        text += chr(argument)
    return text


def _fragments(items: Sequence[tuple[str, Any]]) -> list[str]:
    """Give the literal texts that are in every text in which the pattern is found."""
    found, text = [], ""
    for name, argument in [*items, ("", None)]:
        if name == "LITERAL":
            text += chr(argument)
            continue
        if text:
            found.append(text)
        text = ""
        if name == "SUBPATTERN" and not argument[1] and not argument[2]:
            found += _fragments([(str(o), a) for o, a in argument[3]])
        if name in _REPEATS and argument[0] >= 1:
            found += _fragments([(str(o), a) for o, a in argument[2]])
    return found
