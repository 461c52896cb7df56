"""A rule as lint looks at it: what it names, what it reads, when it matches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge._types import Verdict
from adjudge.analysis._linting.conditions import ANY, ERROR, TRUE, Condition, Steps
from adjudge.analysis._linting.formulas import Either, Formula, Formulas
from adjudge.analysis._parts import Part, inner_part, part_of
from adjudge.policy import LayeredPolicyBundle, PolicyBundle
from adjudge.policy._match import Reading, literal_tools
from adjudge.policy._model import Leaf, Path, Place, PolicySource, Ref, Rule
from adjudge.policy._verdicts import tagged

__all__ = ["LayerView", "RuleView", "layer_views", "parts_below", "shown_leaf"]

_MOST_SHOWN = 60
_RESTRICTING = (Verdict.DENY, Verdict.DRY_RUN, Verdict.APPROVE_REQUIRED)


@dataclass(frozen=True, slots=True, eq=False)
class RuleView:
    """One rule in its readings: one of them, or both for a transform."""

    rule: Rule
    name: str
    tools: frozenset[str] | None
    readings: tuple[Part, ...]
    paths: frozenset[Steps]
    demands: frozenset[Steps]
    """The paths at which something must hold for it to match."""

    @property
    def restricts(self) -> bool:
        """Whether its verdict is deny, dry_run or approve_required."""
        return self.rule.verdict in _RESTRICTING

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.rule.place

    def can_match(self, formulas: Formulas) -> Formula:
        """Say that it matches, if only doubtfully."""
        return Either(tuple(formulas.said(part, TRUE) for part in self.readings))

    def does_not_match(self, formulas: Formulas) -> Formula:
        """Say that it does not match plainly: asked, it lets the search go on."""
        first, *others = self.readings
        missed = formulas.said(first, ANY & ~TRUE)
        # An error in either reading of a transform is one.
        return Either((missed, *(formulas.said(part, ERROR) for part in others)))


def _demanded(part: Part) -> Iterator[Steps]:
    if part.kind == "all_of":
        for each in part.parts:
            yield from _demanded(each)
    elif isinstance(part.match, Leaf) and part.match.path.root != "tool":
        yield (part.match.path.root, *part.match.path.steps)


@dataclass(frozen=True, slots=True, eq=False)
class LayerView:
    """One policy, or one layer, with its rules in the order in which they are asked."""

    name: str
    source: PolicySource
    rules: tuple[RuleView, ...]
    has_python_rules: bool
    namespaces: Mapping[str, str]
    _conditions: dict[tuple[int, str], Condition] = field(default_factory=dict)

    def formulas(self, tool: str | None = None) -> Formulas:
        """Give who makes formulas about it; with `tool`, about calls of that tool alone."""
        return Formulas(self.namespaces, tool, known=self._conditions)


def layer_views(bundle: PolicyBundle | LayeredPolicyBundle) -> list[LayerView]:
    """Give each policy of a bundle."""
    if isinstance(bundle, LayeredPolicyBundle):
        return [_layer(name, policy) for name, policy in bundle.layers]
    return [_layer("", bundle)]


def _layer(name: str, bundle: PolicyBundle) -> LayerView:
    source = bundle.source
    namespaces = {
        tool: entry.namespace for tool, entry in source.tools.items() if entry.namespace is not None
    }
    in_order = sorted(source.rules, key=lambda rule: (-rule.priority, rule.order))
    return LayerView(
        name=name,
        source=source,
        rules=tuple(_view(rule, name, namespaces) for rule in in_order),
        has_python_rules=bool(bundle.python_rules),
        namespaces=namespaces,
    )


def _view(rule: Rule, layer: str, namespaces: Mapping[str, str]) -> RuleView:
    if rule.verdict is Verdict.TRANSFORM:
        permitting: Sequence[bool] = (True, False)
    else:
        permitting = (rule.verdict is Verdict.ALLOW,)
    readings = tuple(part_of(rule.match, Reading(each, namespaces)) for each in permitting)
    return RuleView(
        rule=rule,
        name=tagged(layer, rule.id),
        tools=literal_tools(rule.match),
        readings=readings,
        paths=frozenset(_paths(readings[0])),
        demands=frozenset(_demanded(readings[0])),
    )


def _paths(part: Part) -> Iterator[Steps]:
    if isinstance(part.match, Leaf):
        yield _steps(part.match.path)
        if isinstance(part.match.operand, Ref):
            yield _steps(part.match.operand.path)
    for each in part.parts:
        yield from _paths(each)


def _steps(path: Path) -> Steps:
    return (path.root, *path.steps)


def parts_below(part: Part) -> tuple[Part, ...]:
    """Give the parts of a part, and of a quantifier the match about its element."""
    inner = inner_part(part)
    return part.parts if inner is None else (inner,)


def shown_leaf(leaf: Leaf) -> str:
    """Write a leaf as a policy would have it."""
    path = leaf.path.text.removesuffix(f".{leaf.operator}")
    for negated in ("ne", "not_in", "not_between"):
        path = path.removesuffix(f".{negated}")
    return f"{path}.{leaf.operator}: {_shown(leaf.operand)}".removeprefix("..")


def _shown(operand: Any) -> str:
    if isinstance(operand, Ref):
        return f"{{ref: {operand.path.text}}}"
    if isinstance(operand, Leaf):
        return f"{{{shown_leaf(operand)}}}"
    if operand is not None and not isinstance(operand, str | int | float | list | dict):
        return "{...}"
    text = json.dumps(operand, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
