"""Tells arguments that plainly are what a schema asks for from those that need a look.

Where all arguments are there and each is of the very type that the schema names, holding them
against it would change nothing, and takes longer than all else of a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Kinds", "kinds_of", "plainly_fits"]

Kinds = Mapping[str, type]
"""The types of a tool's arguments, by name."""

_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
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
