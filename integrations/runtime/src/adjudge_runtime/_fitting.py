"""Tells arguments that plainly are what a tool's schema asks for from those that need a look.

A schema is held against arguments by the guard, which fills in defaults and coerces. Where all
arguments are there and each is of the very type that the schema names, that would change nothing,
and takes longer than all else of a step. What this does not recognise is left to the guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.integration import FrozenDict
from adjudge_runtime._values import ToolCall

__all__ = ["Kinds", "kinds_of", "plainly_fits"]

Kinds = Mapping[str, type]
"""The types of a tool's arguments, by name."""

_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_SAYS_NO_MORE = frozenset({"type", "default", "description"})


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


def plainly_fits(call: ToolCall, kinds: Kinds | None) -> bool:
    """Whether a schema of these types would take a call's arguments just as they are."""
    args = call.args
    if kinds is None or (type(args) is not dict and type(args) is not FrozenDict):
        return False
    if len(args) != len(kinds):
        return False
    for name, value in args.items():  # noqa: SIM110  (a generator takes longer)
        if type(value) is not kinds.get(name):
            return False
    return True
