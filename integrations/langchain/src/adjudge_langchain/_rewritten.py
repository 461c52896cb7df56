"""Whether what a tool's schema made of a rewritten argument is the value that was written.

Schemas have kinds and spellings of their own for the same value, and those are taken. What they
make of it is judged again in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from adjudge.integration import OpaqueValue, canonical_json

__all__ = ["hides", "took"]


def hides(value: Any) -> bool:
    """Whether a secret is in a value."""
    if isinstance(value, Mapping):
        return any(map(hides, value.values()))
    return isinstance(value, OpaqueValue) or (
        isinstance(value, list | tuple) and any(map(hides, value))
    )


def took(wanted: Any, got: Any) -> bool:
    """Whether a value is the one that was written, with defaults filled in and kinds adapted."""
    if isinstance(got, OpaqueValue):
        return True  # a secret, which shows nothing
    if isinstance(wanted, Mapping):
        return isinstance(got, Mapping) and all(
            name in got and took(each, got[name]) for name, each in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        if not isinstance(got, list | tuple):
            return False
        if len(wanted) == len(got) and all(map(took, wanted, got)):
            return True
        return set(map(canonical_json, wanted)) == set(map(canonical_json, got))  # a set
    if isinstance(wanted, int | float) and isinstance(got, int | float):
        return wanted == got
    return wanted == got or _is_same_text(str(wanted), str(got))


def _is_same_text(wanted: str, got: str) -> bool:
    """Whether two texts mean the same, as text or as a date, an id or a path."""
    readings: tuple[Callable[[str], object], ...]
    readings = (_folded, datetime.fromisoformat, UUID, PurePosixPath)
    for reading in readings:
        try:
            if reading(wanted) == reading(got):
                return True
        except ValueError:
            continue
    return False


def _folded(text: str) -> str:
    return text.strip().casefold()
