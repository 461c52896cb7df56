"""How lynx answers one test, and how each clause changes that answer.

With no clause this is lynx's reading; with all of 1, 3, 7, 8 and 11 it is Adjudge's. A clause
that is not among those given is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reference.equality import equal, kind
from reference.logic import Truth, truth
from reference.operators import PLAIN

from adjudge._types import ActionRequest
from adjudge.policy._patterns.pattern import compile_pattern

OPERATORS = (
    "matches",
    "in",
    "contains",
    "contains_any",
    "contains_all",
    "gt",
    "ge",
    "lt",
    "le",
    "between",
    "not_between",
    "eq",
)
Clauses = frozenset[int]


class Wrong(Exception):
    """The test is an error."""


def split(key: str) -> tuple[str, str]:
    """Give the path and the operator of a leaf's key."""
    head, _, tail = key.rpartition(".")
    return (head, tail) if head and tail in OPERATORS else (key, "eq")


def read(path: str, request: ActionRequest, clauses: Clauses) -> Any:
    """Give the value at a path or None; by clause 3 a step into a scalar or list is an error."""
    root, *keys = path.split(".")
    if root == "tool":
        return request.tool
    here: Any = {
        "args": request.args,
        "declared": request.declared,
        "context": request.context,
    }.get(root)
    for key in keys:
        if here is None:
            return None
        if isinstance(here, Mapping):
            here = here.get(key)
        elif root == "args" or isinstance(here, str | list | tuple | int | float):
            if 3 in clauses:
                raise Wrong(path)
            return None
        else:
            here = getattr(here, key, None)
    return here


def answer(
    key: str,
    operand: Any,
    request: ActionRequest,
    clauses: Clauses,
    *,
    permitting: bool,
    odd: bool,
) -> bool:
    """Answer one leaf; raises as lynx would, and `Wrong` where a clause makes an error."""
    path, operator = split(key)
    if operator == "not_between" and clauses & {7, 8}:
        inner = answer(
            f"{path}.between", operand, request, clauses, permitting=permitting, odd=not odd
        )
        return not inner if 8 in clauses or read(path, request, clauses) is not None else False
    value = read(path, request, clauses)
    if value is None:
        if 8 in clauses and not (operator == "eq" and operand is None):
            return odd and permitting
        return operator == "eq" and operand is None
    if operator == "matches" and isinstance(value, str):
        if 11 in clauses:
            return compile_pattern(operand, permitting=permitting is not odd).search(value)
        return re.search(operand, value) is not None
    if 7 in clauses:
        found = Truth.ERROR if operator == "matches" else PLAIN[operator](value, operand)
        if found is Truth.ERROR:
            raise Wrong(path)
        return found is Truth.TRUE
    if 1 in clauses:
        return _with_strict_kinds(operator, value, operand)
    return _as_python_has_it(operator, value, operand)


def _with_strict_kinds(operator: str, value: Any, operand: Any) -> bool:
    """Clause 1 alone: kinds are strict, and what is of a foreign kind is not equal."""
    if operator == "eq":
        return _equal(value, operand)
    if operator == "in":
        return any(_equal(value, member) for member in operand)
    if operator.startswith("contains") and kind(value) == "list":
        wanted = [operand] if operator == "contains" else operand
        found = [any(_equal(element, one) for element in value) for one in wanted]
        return any(found) if operator == "contains_any" else all(found)
    if isinstance(value, bool) and operator in ("gt", "ge", "lt", "le", "between", "not_between"):
        raise Wrong(operator)
    return _as_python_has_it(operator, value, operand)


def _equal(value: Any, operand: Any) -> bool:
    return equal(value, operand) is truth(True)


def _as_python_has_it(operator: str, value: Any, operand: Any) -> bool:
    if operator == "eq":
        return bool(value == operand)
    if operator == "in":
        plain = all(isinstance(one, str | int | float | bool) for one in operand)
        return value in (frozenset(operand) if plain else tuple(operand))
    if operator == "contains":
        return operand in value
    if operator == "contains_any":
        return any(one in value for one in operand)
    if operator == "contains_all":
        return all(one in value for one in operand)
    if operator in ("between", "not_between"):
        inside = bool(operand[0] <= value <= operand[1])
        return inside is (operator == "between")
    compare = {
        "gt": lambda: value > operand,
        "ge": lambda: value >= operand,
        "lt": lambda: value < operand,
        "le": lambda: value <= operand,
    }.get(operator)
    # `matches` on what is no text never holds there.
    return bool(compare()) if compare is not None else False
