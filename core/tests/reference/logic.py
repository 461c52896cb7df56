"""Three values and how they combine: true, false and error (clause 6)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Truth(Enum):
    """What a test can answer; `ERROR` is Kleene's unknown."""

    TRUE = "true"
    FALSE = "false"
    ERROR = "error"


def truth(answer: bool) -> Truth:
    """Give the truth value of a settled question."""
    return Truth.TRUE if answer else Truth.FALSE


def negation(value: Truth) -> Truth:
    """Turn true and false round; an error stays one."""
    if value is Truth.ERROR:
        return Truth.ERROR
    return truth(value is Truth.FALSE)


def every(values: Iterable[Truth]) -> Truth:
    """Answer false where one is false, else error where one is, else true."""
    seen = list(values)
    if Truth.FALSE in seen:
        return Truth.FALSE
    return Truth.ERROR if Truth.ERROR in seen else Truth.TRUE


def some(values: Iterable[Truth]) -> Truth:
    """Answer true where one is true, else error where one is, else false."""
    seen = list(values)
    if Truth.TRUE in seen:
        return Truth.TRUE
    return Truth.ERROR if Truth.ERROR in seen else Truth.FALSE
