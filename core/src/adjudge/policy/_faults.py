"""What a test answers when it can answer neither true nor false.

A `Fault` is a value, never an exception, so that Kleene's connectives can go on past it (clause 6).
It says in words what was found and what was expected, and never quotes a value: the words reach the
model and the record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from adjudge._values import kind_of

__all__ = [
    "DOUBT",
    "Answer",
    "Doubt",
    "Fault",
    "describe",
    "found",
    "raised",
    "spell",
    "wrong_kind",
]

_ARTICLES: Mapping[str, str] = {
    "object": "an object",
    "null": "null",
    "bool": "a bool",
    "secret": "a secret",
}
_MAX_CAUSE = 300


class Fault(NamedTuple):
    """An error of one test: a stable word for its sort, and a clause that names the path.

    Faults are ordered, so that of several the same one is reported whatever the order of the
    operands.
    """

    kind: str
    cause: str


class Doubt(Enum):
    """The answer of a transform that matches as a restricting rule alone (clause 8)."""

    DOUBTFUL = "doubtful"


DOUBT: Final[Literal[Doubt.DOUBTFUL]] = Doubt.DOUBTFUL

Answer = bool | Fault


def found(value: object) -> str:
    """Say what kind of thing a value is, without saying the value."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that is not finite"
    kind = kind_of(value)
    return _ARTICLES.get(kind, f"a {kind}")


def wrong_kind(where: str, value: object, expected: str) -> Fault:
    """Give the fault of a value whose kind an operator does not accept (clause 7)."""
    return Fault("WrongKind", f"{where} is {found(value)}, expected {expected}")


def describe(error: BaseException) -> str:
    """Say what an exception was, also where its own text fails."""
    try:
        text = str(error)
    except Exception:
        text = ""
    text = text if len(text) <= _MAX_CAUSE else text[:_MAX_CAUSE] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def raised(error: Exception) -> Fault:
    """Give the fault of a test that raised."""
    return Fault(type(error).__name__, f"it raised {describe(error)}")


def spell(root: str, steps: tuple[Any, ...], element: str = ".") -> str:
    """Write a path in its one spelling: plain keys after dots, all others quoted.

    `element` is what the root `.` stands for.
    """
    text = element if root == "." else root
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier():
            text += f"{'' if text == '.' else '.'}{step}"
        else:
            text += f'["{step}"]'
    return text
