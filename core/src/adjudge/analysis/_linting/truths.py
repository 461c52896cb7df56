"""Conditions that no call meets, and conditions that are never false.

Both are proved under the exact meaning of the policy language: a condition that is only ever false
or in error is never true; one that is only ever true, in error or without its value is never false.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from adjudge.analysis._linting.conditions import ANY, FALSE, TRUE, Steps
from adjudge.analysis._linting.findings import Finding
from adjudge.analysis._linting.formulas import Formula
from adjudge.analysis._linting.prover import Prover
from adjudge.analysis._linting.views import LayerView, RuleView, parts_below, shown_leaf
from adjudge.analysis._parts import Part
from adjudge.policy._model import Leaf, Place

__all__ = ["condition_findings", "first_leaf", "never_matches"]

_ROOTS: Mapping[str, str] = {"size": ".size", "normalized": ".normal"}
_MOST_PARTS = 40
_FALSE_OF_SOME = ("eq", "in", "gt", "ge", "lt", "le", "between", "host_in", "under")


def never_matches(view: RuleView, layer: LayerView, prover: Prover) -> bool:
    """Whether it is certain that no call meets a rule."""
    return all(
        prover.refutes(formulas.of_tool(), view.can_match(formulas))
        for formulas in map(layer.formulas, view.tools or (None,))
    )


def condition_findings(
    view: RuleView, layer: LayerView, prover: Prover, *, dead: bool
) -> Iterator[Finding]:
    """Find what is never true and what is never false in one rule; `dead`: it never matches."""
    walk = _Walk(view, layer, prover)
    if dead:
        yield walk.contradiction(view.readings, whole=True)
    else:
        yield from walk.findings(view.readings, ".", may_be_true=True)


class _Walk:
    """Looks at the parts of one rule from the top, and says each thing once."""

    def __init__(self, view: RuleView, layer: LayerView, prover: Prover) -> None:
        self._view = view
        self._layer = layer
        self._formulas = layer.formulas()
        self._prover = prover

    def findings(
        self, readings: Sequence[Part], root: str, *, may_be_true: bool = False
    ) -> Iterator[Finding]:
        """Find what is wrong with a part, in every reading of it, or else with what is below.

        `may_be_true` says that it is not in question whether some call meets it.
        """
        part = readings[0]
        if part.kind == "always":
            return
        if not may_be_true and self._is_never(readings, TRUE, root):
            yield self.contradiction(readings, whole=False, root=root)
        elif self._is_never_false(readings, root):
            if self._is_never(readings, ANY & ~TRUE, root):
                message = (
                    f"{_shown(part)} is true of every call. Remove it, or write match: always if "
                    "everything is meant."
                )
            else:
                message = _never_false(part)
            yield self._finding("always_true", message, part)
        else:
            inner_root = root
            if isinstance(part.match, Leaf):
                inner_root = _ROOTS.get(part.match.operator, ".")
            # What meets all of them meets each.
            may_be_true = part.kind == "all_of"
            for each in zip(*map(parts_below, readings), strict=True):
                yield from self.findings(each, inner_root, may_be_true=may_be_true)

    def _is_never(self, readings: Sequence[Part], answers: int, root: str) -> bool:
        return all(
            self._prover.refutes(self._formulas.said(each, answers, root)) for each in readings
        )

    def _is_never_false(self, readings: Sequence[Part], root: str) -> bool:
        part = readings[0]
        if part.kind == "all_of" or _is_plainly_false_of_some(part):
            # Of a conjunction, each part is asked about.
            return False
        present = [self._formulas.present(path) for path in _needed(part, root)]
        return all(
            self._prover.refutes(self._formulas.said(each, FALSE, root), *present)
            for each in readings
        )

    def contradiction(self, readings: Sequence[Part], *, whole: bool, root: str = ".") -> Finding:
        """Say which conditions exclude each other, as few of them as do."""
        part = readings[0]
        parts = list(_conjuncts(part))
        for each in tuple(parts) if len(parts) <= _MOST_PARTS else ():
            fewer = [other for other in parts if other is not each]
            if fewer and self._excluded(fewer, root):
                parts = fewer
        so = "so this rule never matches" if whole else "so this is never true"
        shown = " and ".join(map(_shown, parts))
        if len(parts) == 1:
            message = f"No call meets {shown}, {so}. Correct its operand, or remove it."
            return self._finding("never_true", message, parts[0])
        message = f"No call meets {shown} together, {so}. Write any_of if either is enough."
        return self._finding("contradiction", message, parts[-1])

    def _excluded(self, parts: Sequence[Part], root: str) -> bool:
        tools = self._view.tools if root == "." else None
        for tool in tools or (None,):
            formulas = self._layer.formulas(tool)
            goals: list[Formula] = [formulas.said(each, TRUE, root) for each in parts]
            if not self._prover.refutes(*goals):
                return False
        return True

    def _finding(self, code: str, message: str, part: Part) -> Finding:
        leaf = first_leaf(part)
        place: Place = self._view.place if leaf is None else leaf.place
        return Finding(code, message, self._view.name, place)


def _is_plainly_false_of_some(part: Part) -> bool:
    leaf = part.match
    return (
        isinstance(leaf, Leaf)
        and leaf.operator in _FALSE_OF_SOME
        and leaf.path.root != "given"
        and leaf.operand is not None
    )


def _conjuncts(part: Part) -> Iterator[Part]:
    if part.kind == "all_of":
        for each in part.parts:
            yield from _conjuncts(each)
    else:
        yield part


def _needed(part: Part, root: str) -> frozenset[Steps]:
    """Give the paths whose absence a part does not ask about."""
    read: set[Steps] = set()
    asked: set[Steps] = set()
    for leaf in _leaves(part):
        start = root if leaf.path.root == "." else leaf.path.root
        about_absence = leaf.operator == "exists" or (
            leaf.operator == "eq" and leaf.operand is None
        )
        (asked if about_absence else read).add((start, *leaf.path.steps))
    return frozenset(read - asked)


def _leaves(part: Part) -> Iterator[Leaf]:
    if isinstance(part.match, Leaf):
        yield part.match
    for each in part.parts:
        yield from _leaves(each)


def first_leaf(part: Part) -> Leaf | None:
    """Give the first leaf of a part, where it can be pointed at."""
    return next(_leaves(part), None)


def _never_false(part: Part) -> str:
    leaf = part.match
    if isinstance(leaf, Leaf) and leaf.path.root != ".":
        path = shown_leaf(leaf).partition(f".{leaf.operator}: ")[0]
        return (
            f"{_shown(part)} is never false: whatever {path} is, it is true. Write "
            f"{path}.exists: true if that is meant, or test what matters."
        )
    return f"{_shown(part)} is never false where there is a value. Remove it, or test what matters."


def _shown(part: Part) -> str:
    if isinstance(part.match, Leaf):
        return shown_leaf(part.match)
    inside = [_shown(each) for each in part.parts]
    if part.kind == "not":
        return f"not: {{{inside[0]}}}"
    if part.kind == "always":
        return "always"
    shown = ", ".join(inside[:3]) + (", ..." if len(inside) > 3 else "")
    return f"{part.kind}: [{shown}]"
