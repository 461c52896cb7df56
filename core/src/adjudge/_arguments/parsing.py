"""Strict reading of the argument text that a model wrote (clause 2).

The grammar is that of `json.loads`, so what is no JSON object here is none in a Python framework
either (`NotAnObject`). What `json.loads` accepts and we do not raises `ArgumentsRefused`: duplicate
keys, NaN and Infinity, numbers that overflow, integers over 4,000 digits, nesting over 64 levels,
lone surrogates. It reads text alone; values that arrive as Python objects go through
`freeze_object` or `project`.
"""

from __future__ import annotations

import json
from typing import Any

from adjudge._values import MAX_INT_DIGITS, FrozenDict, freeze_object
from adjudge.errors import ArgumentsRefused, NotAnObject

__all__ = ["parse_arguments"]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name comes twice")
    return members


def _short(digits: str) -> int:
    if len(digits) > MAX_INT_DIGITS:
        raise ValueError("an integer may be too long")
    return int(digits)


# Made once: a decoder takes longer to make than most arguments take to read.
_QUICK = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_short)


def parse_arguments(text: str) -> FrozenDict:
    """Read a tool call's argument text, once and strictly.

    Raises `NotAnObject` for text that is no JSON or no JSON object, `ArgumentsRefused` for what a
    lenient parser would accept and a strict one must not.
    """
    try:
        value = _QUICK.decode(text)
    except (ValueError, TypeError, RecursionError):
        return _parsed_with_care(text)
    if not isinstance(value, dict):
        raise _no_object()
    return freeze_object(value)


def _parsed_with_care(text: str) -> FrozenDict:
    """Read a text that is not plainly right, and say what is wrong with it."""
    refusals: list[str] = []

    def integer(digits: str) -> int:
        try:
            if len(digits.lstrip("-")) <= MAX_INT_DIGITS:
                return int(digits)
        except ValueError:  # the interpreter may be set to a lower limit than ours
            pass
        refusals.append(f"args holds an integer of {len(digits)} digits; {MAX_INT_DIGITS} is most.")
        return 0

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        unique = dict(pairs)
        if len(unique) != len(pairs):
            refusals.append(f"args holds the key {_first_repeated(pairs)!r} twice in one object.")
        return unique

    try:
        value = json.loads(text, object_pairs_hook=members, parse_int=integer)
    except json.JSONDecodeError as error:
        raise NotAnObject(f"The arguments are not JSON: {error}.") from None
    except RecursionError:
        raise ArgumentsRefused("args is nested too deep to be read.") from None
    if not isinstance(value, dict):
        raise _no_object()
    if refusals:
        raise ArgumentsRefused(refusals[0])
    return freeze_object(value)


def _no_object() -> NotAnObject:
    return NotAnObject("The arguments are JSON, but no object with named values.")


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("called for an object without a repeated key")
