"""Tells arguments that plainly are what a schema asks for from those that need a look.

Where all arguments are there and each is of the very type that the schema names, holding them
against it would change nothing, and takes longer than all else of a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from adjudge._values import FrozenDict

__all__ = ["Kinds", "kinds_of", "plainly_fits", "plainly_taken"]

Kinds = Mapping[str, type]
"""The types of a tool's arguments, by name."""

_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_SMALL = 2**63
_SAYS_NO_MORE = frozenset({"type", "default", "description", "title"})


def kinds_of(schema: Mapping[str, Any]) -> Kinds | None:
    """Give the types that a schema asks for; None where it says more than that."""
    if schema.keys() != {"type", "properties", "required", "additionalProperties"}:
        return None
    if schema["additionalProperties"] is not False:
        return None
    kinds = {}
    for name, described in schema["properties"].items():
        kind = described.get("type")
        if not isinstance(kind, str) or kind not in _TYPES or not described.keys() <= _SAYS_NO_MORE:
            return None
        kinds[name] = _TYPES[kind]
    return kinds


def plainly_fits(args: Mapping[str, Any], kinds: Kinds) -> bool:
    """Whether a schema of these types would take frozen arguments just as they are."""
    if len(args) != len(kinds):
        return False
    for name, value in args.items():  # noqa: SIM110  (a generator takes longer)
        if type(value) is not kinds.get(name):
            return False
    return True


def plainly_taken(args: object, kinds: Kinds) -> FrozenDict | None:
    """Freeze arguments where that changes nothing, and a schema of these types neither.

    None says that they need a look, not that anything is wrong with them.
    """
    if type(args) is dict:
        # Looked at is what was taken, whatever becomes of the other.
        taken = FrozenDict(args)
    elif type(args) is FrozenDict:
        taken = args
    else:
        return None
    if len(taken) != len(kinds):
        return None
    for name, value in taken.items():
        kind = type(value)
        if kind is not kinds.get(name) or type(name) is not str:
            return None
        if kind is str:
            if not value.isascii():
                return None
        elif kind is int:
            if not -_SMALL < value < _SMALL:
                return None
        elif kind is float and not isfinite(value):
            return None
    return taken
