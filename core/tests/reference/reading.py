"""What a path reads: a value, nothing (`ABSENT`) or an error (`Unreadable`); 3, 5 and 9."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from adjudge._types import ActionRequest, ExecutionContext
from adjudge._values import kind_of
from adjudge.policy._model import Path

# Clause 9: what only a caller can supply, and whose lack is an error and never absence.
SESSION_VALUES = ("labels", "history", "counts", "sums", "user_prompt", "trusted")


class Absent(Enum):
    """The value of a path that leads nowhere; null is absent too (clause 3)."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


class Unreadable(Exception):
    """The path cannot be read: an error of the leaf, never absence."""


@dataclass(frozen=True)
class World:
    """All that a leaf may read: the request, what the model itself sent, the element `.`."""

    request: ActionRequest
    given: frozenset[str]
    element: Any = ABSENT


def read(path: Path, world: World) -> Any:
    """Give the value at a path, `ABSENT`, or raise `Unreadable`."""
    steps = path.steps
    request = world.request
    if path.root == ".":
        value: Any = world.element
    elif path.root == "tool":
        value = request.tool
    elif path.root == "tool.namespace":
        value = request.namespace
    elif path.root == "args":
        value = request.args
    elif path.root == "injected":
        value = request.injected
    elif path.root == "given":
        # "whether the model itself sent that argument"; what was not sent is false (clause 3).
        value, steps = steps[0] in world.given, steps[1:]
    elif path.root == "declared":
        # A tool without metadata declares nothing.
        declared = request.declared
        value = None if declared is None else getattr(declared, str(steps[0]))
        steps = steps[1:]
    else:
        value, steps = _context(request.context, steps)
    return _walk(value, steps)


def _context(context: ExecutionContext, steps: tuple[str | int, ...]) -> tuple[Any, Any]:
    first, rest = str(steps[0]), steps[1:]
    if first in SESSION_VALUES:
        if context.session is None or first not in context.session:
            raise Unreadable(first)
        return context.session[first], rest
    if first == "principal":
        return getattr(context.principal, str(rest[0])), rest[1:]
    value = getattr(context, first)
    if first == "environment" and value is None:
        raise Unreadable(first)
    # Clause 1: dates are text.
    return (value.isoformat() if isinstance(value, datetime) else value), rest


def _walk(value: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        if value is None or value is ABSENT:
            return ABSENT
        kind = kind_of(value)
        if kind == "object" and isinstance(step, str):
            value = value.get(step) if isinstance(value, Mapping) else None
        elif kind == "list" and isinstance(step, int):
            value = value[step] if 0 <= step < len(value) else None
        else:
            raise Unreadable(step)
    return ABSENT if value is None else value
