"""Conjunctions of tests of single arguments, each conjunction in one closure.

Most rules are of this shape, and reading in place, without a call for every part, halves their
cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

from adjudge._types import ActionRequest
from adjudge.policy._faults import Answer
from adjudge.policy._kleene import Matcher, first_fault
from adjudge.policy._model import Leaf, Match, Ref
from adjudge.policy._operators import TESTS, Test

__all__ = ["ArgumentTest", "all_arguments", "is_argument_test"]


class ArgumentTest(NamedTuple):
    """A test of the argument of one name; `absent` is the answer where there is none."""

    key: str
    absent: bool
    test: Test


def is_argument_test(match: Match) -> TypeGuard[Leaf]:
    """Tell whether this tests the value of one argument, and nothing else of the request."""
    if not isinstance(match, Leaf) or isinstance(match.operand, Ref):
        return False
    path, plain = match.path, match.operator in TESTS or match.operator == "matches"
    asks_for_absence = match.operator == "eq" and match.operand is None
    return plain and not asks_for_absence and path.root == "args" and len(path.steps) == 1


def all_arguments(tests: Sequence[ArgumentTest]) -> Matcher:
    """Join tests as `all_of` does: false where one is false, else an error where one is."""
    if len(tests) == 1:
        return _one(*tests[0])
    if len(tests) == 2:
        return _two(*tests)
    joined = tuple(tests)

    def all_hold(request: ActionRequest, _item: Any) -> Answer:
        args = request.args
        answer: Answer = True
        for key, absent, test in joined:
            value = args.get(key)
            one = absent if value is None else test(value)
            if one is False:
                return False
            if one is not True:
                answer = one if answer is True else first_fault(answer, one)
        return answer

    return all_hold


def _one(key: str, absent: bool, test: Test) -> Matcher:
    def holds(request: ActionRequest, _item: Any) -> Answer:
        value = request.args.get(key)
        return absent if value is None else test(value)

    return holds


def _two(first: ArgumentTest, second: ArgumentTest) -> Matcher:
    key, absent, test = first
    other_key, other_absent, other_test = second

    def both_hold(request: ActionRequest, _item: Any) -> Answer:
        args = request.args
        value = args.get(key)
        one = absent if value is None else test(value)
        if one is False:
            return False
        value = args.get(other_key)
        other = other_absent if value is None else other_test(value)
        if other is False or one is True:
            return other
        return one if other is True else first_fault(one, other)

    return both_hold
