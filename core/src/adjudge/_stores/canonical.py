"""Canonical JSON text, read back: exactly what `canonical_json` wrote, or `ValueError`.

What a store gives back is taken on nothing: a key that comes twice, a number that is not finite, a
tag that nobody wrote are all refused.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

__all__ = ["parse_canonical"]


def parse_canonical(text: object) -> Any:
    """Read a value that `canonical_json` wrote; `ValueError` says what it cannot have written."""
    if not isinstance(text, str):
        raise ValueError(f"is a {type(text).__name__} and no text")
    try:
        return json.loads(text, object_pairs_hook=_members, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _members(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("has a key twice in one object")
    if found.keys() == {"$decimal"}:
        return _decimal(found["$decimal"])
    for key in found:
        if key.startswith("$") and not key.startswith("$$"):
            raise ValueError(f"holds the tag {key!r}, which is unknown")
    return {key.removeprefix("$"): item for key, item in found.items()}


def _decimal(text: object) -> Decimal:
    if not isinstance(text, str):
        raise ValueError("holds a decimal that is no text")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("holds a decimal that is none") from None
    if not number.is_finite():
        raise ValueError("holds a decimal that is not finite")
    return number


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which is no JSON")
