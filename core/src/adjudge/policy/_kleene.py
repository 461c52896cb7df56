"""Kleene's connectives over matchers: an error gives way to whatever settles the question.

Which of several errors is reported depends on no order either (clause 6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjudge._types import ActionRequest
from adjudge.policy._faults import Answer, Fault

__all__ = ["Matcher", "all_of", "any_of", "first_fault", "negation"]

Matcher = Callable[[ActionRequest, Any], Answer]
"""Judges a request; the second argument is the element inside a quantifier, else None."""


def _always(_request: ActionRequest, _item: Any) -> Answer:
    return True


def all_of(parts: list[Matcher]) -> Matcher:
    """Join: false where one is false, else an error where one is, else true."""
    if len(parts) <= 1:
        return parts[0] if parts else _always
    if len(parts) == 2:
        return _both(*parts)

    def all_hold(request: ActionRequest, item: Any) -> Answer:
        answer: Answer = True
        for part in parts:
            one = part(request, item)
            if one is False:
                return False
            if one is not True:
                answer = one if answer is True else first_fault(answer, one)
        return answer

    return all_hold


def _both(first: Matcher, second: Matcher) -> Matcher:
    def both_hold(request: ActionRequest, item: Any) -> Answer:
        one = first(request, item)
        if one is False:
            return False
        other = second(request, item)
        if other is False or one is True:
            return other
        return one if other is True else first_fault(one, other)

    return both_hold


def any_of(parts: list[Matcher]) -> Matcher:
    """Offer: true where one is true, else an error where one is, else false."""
    if len(parts) == 1:
        return parts[0]

    def one_holds(request: ActionRequest, item: Any) -> Answer:
        answer: Answer = False
        for part in parts:
            one = part(request, item)
            if one is True:
                return True
            if one is not False:
                answer = one if answer is False else first_fault(answer, one)
        return answer

    return one_holds


def first_fault(one: Answer, other: Answer) -> Answer:
    """Choose between two faults, the same one in either order."""
    assert isinstance(one, Fault)
    assert isinstance(other, Fault)
    return min(one, other)


def negation(part: Matcher) -> Matcher:
    """Turn true and false round; an error stays one."""

    def negated(request: ActionRequest, item: Any) -> Answer:
        answer = part(request, item)
        if answer is True:
            return False
        return True if answer is False else answer

    return negated
