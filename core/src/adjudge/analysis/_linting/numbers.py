"""Numbers that stand for all numbers: what no operand tells apart need not be tried twice.

Every test of a number by order or equality answers the same of all numbers between two neighbouring
operands, so one number of each gap, and the operands themselves, are enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from adjudge._values import kind_of
from adjudge.analysis._linting.conditions import Condition

__all__ = ["numbers_for", "sizes_for"]

_MOST_DIGITS = 400


def numbers_for(conditions: Iterable[Condition]) -> list[Any] | None:
    """Give a number for each region that these conditions can tell apart; None if they are huge."""
    points = _operands(conditions)
    if points is None:
        return None
    if not points:
        return [0]
    between = [(low + high) / 2 for low, high in pairwise(points)]
    return [_exact(each) for each in (*points, *between, points[0] - 1, points[-1] + 1)]


def sizes_for(conditions: Iterable[Condition]) -> list[int] | None:
    """Give a length, a whole number from 0 up, for each region; None if they are huge."""
    points = _operands(conditions)
    if points is None:
        return None
    near = {0}
    for point in points:
        low = point.numerator // point.denominator
        near.update(size for size in (low - 1, low, low + 1, low + 2) if size >= 0)
    return sorted(near)


def _operands(conditions: Iterable[Condition]) -> list[Fraction] | None:
    found: set[Fraction] = set()
    for condition in conditions:
        operand = condition.operand
        for each in operand if isinstance(operand, list | tuple) else (operand,):
            if kind_of(each) != "number":
                continue
            if _is_huge(each):
                return None
            found.add(Fraction(each))
    return sorted(found)


def _is_huge(number: int | float | Decimal) -> bool:
    if isinstance(number, Decimal):
        return not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS
    return abs(number) > 10**_MOST_DIGITS if isinstance(number, int) else False


def _exact(number: Fraction) -> int | Decimal:
    """Write a fraction whose denominator divides a power of ten."""
    if number.denominator == 1:
        return number.numerator
    # Every denominator here is made of twos and fives, so this many digits are enough.
    places = number.denominator.bit_length()
    digits = number * 10**places
    return Decimal(f"{digits.numerator}E-{places}")
