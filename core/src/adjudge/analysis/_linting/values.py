"""Whether any value at one path gives all the answers that are asked of it.

Every value is absent, a secret, no JSON (then every answer is an error, as where the path cannot be
followed), or of a JSON kind; each case is tried alone. Bools, numbers, lengths and whatever a
condition names one by one are put to the engine's own tests; what is left is refuted by what its
answers say, or taken to be possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from adjudge._values import kind_of
from adjudge.analysis._linting.conditions import ANY, ERROR, FALSE, TRUE, Condition, Steps
from adjudge.analysis._linting.formulas import OWN, Every, Formula, Formulas
from adjudge.analysis._linting.numbers import numbers_for, sizes_for
from adjudge.analysis._linting.texts import Asked, candidates_of, text_is_refuted

__all__ = ["Refutes", "is_possible", "possible_cases"]

Refutes = Callable[[Formula], bool]
"""Tells of a formula about an element whether it is certain that none meets it."""

# The most usual first: the first that is possible is often all that is asked for.
CASES = ("string", "absent", "number", "bool", "list", "object", "error", "secret")
_CASES_OF: Mapping[str, tuple[str, ...]] = {
    "tool": ("string",),
    "tool.namespace": ("absent", "string"),
    "given": ("bool",),
    ".size": ("number",),
    ".normal": ("string",),
    OWN: ("bool",),
}


def is_possible(path: Steps, asked: Sequence[Asked], refutes: Refutes) -> bool:
    """Whether some value at the path may give all the answers."""
    root = str(path[0])
    return any(_fits(case, root, asked, refutes) for case in _CASES_OF.get(root, CASES))


def possible_cases(path: Steps, asked: Sequence[Asked], refutes: Refutes) -> frozenset[str]:
    """Give the cases in which a value at the path may give all the answers."""
    root = str(path[0])
    cases = _CASES_OF.get(root, CASES)
    return frozenset(case for case in cases if _fits(case, root, asked, refutes))


def _fits(case: str, root: str, asked: Sequence[Asked], refutes: Refutes) -> bool:
    if case == "absent":
        return all(condition.of_absent() & allowed for condition, allowed in asked)
    if case == "error":
        return all(allowed & ERROR for _, allowed in asked)
    if case == "secret":
        return all(condition.of_secret() & allowed for condition, allowed in asked)
    if case == "bool":
        return any(_gives(value, asked) for value in (True, False))
    if case == "number":
        conditions = [condition for condition, _ in asked]
        values = sizes_for(conditions) if root == ".size" else numbers_for(conditions)
        return values is None or any(_gives(value, asked) for value in values)
    return _fits_container(case, root, asked, refutes)


def _gives(value: object, asked: Sequence[Asked]) -> bool:
    return all(condition.ask(value) & allowed for condition, allowed in asked)


def _fits_container(case: str, root: str, asked: Sequence[Asked], refutes: Refutes) -> bool:
    narrowed = [(condition, allowed & condition.of_kind(case)) for condition, allowed in asked]
    if not all(allowed for _, allowed in narrowed):
        return False
    for condition, allowed in narrowed:
        values = candidates_of(condition) if allowed == TRUE else None
        if values is not None:
            return any(_gives(value, asked) for value in values if kind_of(value) == case)
    if _size_is_refuted(narrowed, refutes):
        return False
    if case == "string":
        in_normal_form = root == ".normal"
        return not text_is_refuted(narrowed, in_normal_form=in_normal_form) and not (
            _normal_form_is_refuted(narrowed, refutes)
        )
    return case != "list" or not _elements_are_refuted(narrowed, refutes)


def _said(condition: Condition, allowed: int, root: str) -> Formula:
    assert condition.inner is not None
    said: Formula | None = condition.said_inside.get(allowed)
    if said is None:
        formulas = Formulas(condition.part.reading.namespaces)
        said = condition.said_inside[allowed] = formulas.said(condition.inner, allowed, root)
    return said


def _size_is_refuted(asked: Sequence[Asked], refutes: Refutes) -> bool:
    sizes = [
        _said(condition, allowed, ".size")
        for condition, allowed in asked
        if condition.operator == "size" and condition.inner is not None
    ]
    return bool(sizes) and refutes(Every(tuple(sizes)))


def _normal_form_is_refuted(asked: Sequence[Asked], refutes: Refutes) -> bool:
    forms = [
        _said(condition, allowed, ".normal")
        for condition, allowed in asked
        if condition.operator == "normalized" and condition.inner is not None
    ]
    return bool(forms) and refutes(Every(tuple(forms)))


def _elements_are_refuted(asked: Sequence[Asked], refutes: Refutes) -> bool:
    """Whether some element must be there, and can be none that meets what all of them must."""
    of_every: list[Formula] = []
    of_some: list[Formula] = []
    for condition, allowed in asked:
        if condition.inner is None or condition.operator not in ("each", "some"):
            continue
        # One element settles `some` with true and `each` with false; the other answer, and the
        # want of the settling one, speak of every element.
        settling = FALSE if condition.operator == "each" else TRUE
        united = TRUE if settling == FALSE else FALSE
        if allowed in (united, settling):
            whose = of_every if allowed == united else of_some
            whose.append(_said(condition, allowed, "."))
        elif not allowed & settling:
            of_every.append(_said(condition, ANY & ~settling, "."))
        if not allowed & united:
            of_some.append(_said(condition, ANY & ~united, "."))
    return any(refutes(Every((one, *of_every))) for one in of_some)
