"""Rules that meet a call without the argument otherwise than their author may think (clause 8).

A positive condition of a restricting rule is false of an absent argument, so the call goes past the
rule; a negated one is true of it, so the rule meets every call that has no such argument. Both are
only asked about where the argument is known to be optional, or where the rule names no tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adjudge._types import Verdict
from adjudge.analysis._linting.findings import Finding
from adjudge.analysis._linting.formulas import Formula, Formulas
from adjudge.analysis._linting.prover import Prover
from adjudge.analysis._linting.tool_lists import ToolList
from adjudge.analysis._linting.views import LayerView, RuleView
from adjudge.analysis._parts import Part
from adjudge.policy._match import Reading
from adjudge.policy._model import Leaf, Path, Place

__all__ = ["absence_findings"]

_PLACE = Place("")
_RUNNING = (Verdict.ALLOW, Verdict.TRANSFORM)


def absence_findings(layer: LayerView, tools: ToolList, prover: Prover) -> Iterator[Finding]:
    """Find the rules of one layer that miss, or that hit, calls without an argument."""
    asking = _Asking(layer, prover)
    for number, view in enumerate(layer.rules):
        if not view.restricts and view.rule.verdict is not Verdict.ALLOW:
            continue
        known = False
        for tool in tools:
            if view.tools is not None and tool.name not in view.tools:
                continue
            for argument in sorted(_arguments(view) & tool.optional):
                finding = asking.of_optional(number, view, argument, tool.name)
                if finding is not None:
                    known = True
                    yield finding
        if not known and view.restricts:
            yield from asking.of_any_tool(view)


class _Asking:
    def __init__(self, layer: LayerView, prover: Prover) -> None:
        self._layer = layer
        self._prover = prover

    def of_optional(self, number: int, view: RuleView, argument: str, tool: str) -> Finding | None:
        """Ask about an argument that the tool's schema lets the model leave out."""
        if _asks_about(view, argument):
            return None
        missed = self._never_without(view, argument, tool)
        negated = _leaf_of(view, argument, odd=True)
        if view.rule.verdict is Verdict.ALLOW:
            if not missed or negated is None or _leaf_of(view, argument, odd=False):
                return None
            return _finding(
                view,
                negated,
                f"{tool} may be called without args.{argument}, and this rule then does not match: "
                "under a negation an absent value never permits. Write any_of with "
                f"args.{argument}.exists: false if such a call is to be allowed.",
            )
        if not missed:
            if negated is None:
                return None
            return _finding(
                view,
                negated,
                f"{tool} may be called without args.{argument}, and this rule then matches "
                f"({view.rule.verdict}): the negated condition is false of an absent value. Write "
                f"args.{argument}.exists: true beside it if only a value that is there matters.",
            )
        positive = _leaf_of(view, argument, odd=False)
        if positive is None or not self._runs_without(number, argument, tool):
            return None
        return _finding(
            view,
            positive,
            f"{tool} may be called without args.{argument}, and this rule then does not match, so "
            f"that the call may run. Write any_of with args.{argument}.exists: false if it must "
            "not be left out.",
        )

    def of_any_tool(self, view: RuleView) -> Iterator[Finding]:
        """Ask about a rule for every tool that hits whatever has no such argument."""
        part = view.readings[0]
        if ("tool",) in view.paths or _has_positive_argument(part):
            return
        for argument, negated in _negated(part).items():
            if not _asks_about(view, argument) and not self._never_without(view, argument, None):
                yield _finding(
                    view,
                    negated,
                    f"This rule names no tool and matches ({view.rule.verdict}) every call that "
                    f"has no args.{argument}, of whatever tool. Name the tools that it is about, "
                    f"or write args.{argument}.exists: true beside it.",
                )
                return

    def _never_without(self, view: RuleView, argument: str, tool: str | None) -> bool:
        formulas = self._layer.formulas(tool)
        return self._prover.refutes(
            formulas.of_tool(), view.can_match(formulas), _absent(formulas, argument)
        )

    def _runs_without(self, number: int, argument: str, tool: str) -> bool:
        """Whether what follows a rule may let the call run, nothing else asking about absence."""
        for other in self._layer.rules:
            concerned = other.tools is None or tool in other.tools
            speaks = concerned and other.restricts and argument in _arguments(other)
            if speaks and not self._never_without(other, argument, tool):
                return False
        if self._layer.source.defaults.on_no_match in _RUNNING:
            return True
        return any(
            other.rule.verdict in _RUNNING
            and (other.tools is None or tool in other.tools)
            and not self._never_without(other, argument, tool)
            for other in self._layer.rules[number + 1 :]
        )


def _absent(formulas: Formulas, argument: str) -> Formula:
    leaf = Leaf(Path("args", (argument,), f"args.{argument}"), "exists", False, _PLACE)
    return formulas.said(Part("leaf", leaf, Reading(False, {})), 1)


def _arguments(view: RuleView) -> frozenset[str]:
    return frozenset(str(path[1]) for path in view.paths if path[0] == "args")


def _leaves(part: Part) -> Iterator[Part]:
    if part.kind == "leaf":
        yield part
    for each in part.parts:
        yield from _leaves(each)


def _leaf_of(view: RuleView, argument: str, *, odd: bool) -> Leaf | None:
    """Give the first condition on an argument below an odd, or an even, number of negations."""
    for part in _leaves(view.readings[0]):
        leaf = part.match
        assert isinstance(leaf, Leaf)
        about = leaf.path.root == "args" and leaf.path.steps[0] == argument
        if about and part.reading.odd is odd:
            return leaf
    return None


def _negated(part: Part) -> dict[str, Leaf]:
    """Give the first condition on each argument that stands below an odd number of negations."""
    found: dict[str, Leaf] = {}
    for each in _leaves(part):
        leaf = each.match
        assert isinstance(leaf, Leaf)
        if leaf.path.root == "args" and each.reading.odd:
            found.setdefault(str(leaf.path.steps[0]), leaf)
    return found


def _asks_about(view: RuleView, argument: str) -> bool:
    """Whether the rule itself says what holds where the argument is absent."""
    for part in _leaves(view.readings[0]):
        leaf = part.match
        assert isinstance(leaf, Leaf)
        if leaf.path.root in ("args", "given") and leaf.path.steps[0] == argument:
            about = leaf.operator == "exists" or (leaf.operator == "eq" and leaf.operand is None)
            if about or leaf.path.root == "given":
                return True
    return False


def _has_positive_argument(part: Part) -> bool:
    conjuncts: Sequence[Part] = part.parts if part.kind == "all_of" else (part,)
    return any(
        isinstance(each.match, Leaf) and each.match.path.root in ("args", "given")
        for each in conjuncts
    )


def _finding(view: RuleView, leaf: Leaf, message: str) -> Finding:
    return Finding("absent_argument", message, view.name, leaf.place)
