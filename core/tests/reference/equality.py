"""Whether two JSON values are equal, kinds strict at any depth (clauses 1 and 7)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from adjudge._values import kind_of
from reference.logic import Truth, every, truth


def is_nan(value: Any) -> bool:
    """Tell NaN, which no operator accepts (clause 7)."""
    return isinstance(value, float | Decimal) and value != value


def kind(value: Any) -> str:
    """Name a value's kind; NaN is of no kind that an operator accepts."""
    return "NaN" if is_nan(value) else kind_of(value)


def equal(value: Any, operand: Any) -> Truth:
    """Compare with an operand; a foreign kind is an error unless another member settles it."""
    if operand is None:
        # Operators: any kind, if the operand is null. A secret errs in every test but `exists`.
        return Truth.ERROR if kind(value) == "secret" else truth(value is None)
    if kind(value) != kind(operand) or kind(value) in ("NaN", "secret"):
        return Truth.ERROR
    if kind(value) == "list":
        if len(value) != len(operand):
            return Truth.FALSE
        return every(equal(one, other) for one, other in zip(value, operand, strict=True))
    if kind(value) == "object":
        if set(value) != set(operand):
            return Truth.FALSE
        return every(equal(value[key], operand[key]) for key in operand)
    return truth(value == operand)
