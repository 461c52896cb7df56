"""Policies with one thing wrong: a rule that is gone, a verdict or a condition that is looser.

Made from a policy as it was read, never from its text. Which of them a test notices, and which
decide as the policy does after all, is not told here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from adjudge._types import Verdict
from adjudge._values import FrozenList, kind_of
from adjudge.analysis._linting.views import shown_leaf
from adjudge.policy._faults import spell
from adjudge.policy._model import (
    AllOf,
    Always,
    AnyOf,
    Defaults,
    Leaf,
    Match,
    Not,
    Place,
    PolicySource,
    Ref,
    Rule,
)

__all__ = ["MUTANT_KINDS", "Changed", "Mutant", "mutants_of"]

MUTANT_KINDS: Mapping[str, str] = {
    "rule_dropped": "a rule is gone",
    "python_rule_dropped": "a Python rule is gone",
    "verdict_loosened": "a rule allows what it denied, asked about, previewed or rewrote",
    "default_loosened": "a default allows",
    "condition_dropped": "one condition of several that must hold is gone",
    "alternative_dropped": "one of several alternatives is gone",
    "negation_dropped": "a not is gone",
    "bound_swapped": "a bound takes in its own value, or leaves it out",
    "bound_moved": "a bound is one step further on",
    "member_dropped": "one member of a list is gone",
    "anchor_dropped": "a pattern is not tied to the start or the end of the text",
    "edit_dropped": "one edit of a transform is gone",
    "approvers_dropped": "anybody may approve",
    "obligation_dropped": "an obligation is gone",
}

_SWAPPED: Mapping[str, str] = {"gt": "ge", "ge": "gt", "lt": "le", "le": "lt"}
_WITH_MEMBERS = ("in", "contains_any", "contains_all", "starts_with", "ends_with", "host_in")
_MATCHES = (Always, Leaf, AllOf, AnyOf, Not)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to a policy.

    `kind` is one of `MUTANT_KINDS`, `rule` the rule's id with its layer (None for a default),
    `place` where the changed thing stands, `change` a clause that says what was done.
    """

    kind: str
    rule: str | None
    place: Place | None
    change: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A change: other defaults, or `after` in the place of the rule `before` (None: it is gone)."""

    kind: str
    place: Place | None
    change: str
    before: Rule | None = None
    after: Rule | None = None
    defaults: Defaults | None = None

    def of(self, source: PolicySource) -> PolicySource:
        """Give the changed policy."""
        if self.defaults is not None:
            return replace(source, defaults=self.defaults)
        rules = (self.after if rule is self.before else rule for rule in source.rules)
        return replace(source, rules=tuple(rule for rule in rules if rule is not None))


@dataclass(frozen=True, slots=True)
class _Variant:
    """A changed match."""

    kind: str
    place: Place | None
    change: str
    match: Match


def mutants_of(source: PolicySource) -> Iterator[Changed]:
    """Give every change, in the order of the text; Python rules are not looked at."""
    yield from _defaults(source)
    for rule in source.rules:
        yield Changed("rule_dropped", rule.place, "the rule is gone", rule)
        for kind, place, change, after in _changed_rules(rule):
            yield Changed(kind, place or rule.place, change, rule, after)


def _defaults(source: PolicySource) -> Iterator[Changed]:
    for name in ("on_no_match", "on_missing_shadow"):
        stated: Verdict = getattr(source.defaults, name)
        if stated is not Verdict.ALLOW:
            defaults: Defaults = replace(source.defaults, **{name: Verdict.ALLOW})
            place = Place(f"defaults.{name}", source.file)
            change = f"{name} is allow in place of {stated}"
            yield Changed("default_loosened", place, change, defaults=defaults)


_ChangedRule = tuple[str, Place | None, str, Rule]


def _changed_rules(rule: Rule) -> Iterator[_ChangedRule]:
    if rule.verdict is not Verdict.ALLOW:
        loose = replace(rule, verdict=Verdict.ALLOW, approvers=(), timeout_seconds=None, edits=())
        change = f"the verdict is allow in place of {rule.verdict}"
        yield "verdict_loosened", None, change, loose
    for variant in _of_whole(rule.match):
        yield variant.kind, variant.place, variant.change, replace(rule, match=variant.match)
    if len(rule.edits) > 1:
        for place, edit in enumerate(rule.edits):
            edits = _without(rule.edits, place)
            change = f"edit {place + 1} of the transform is gone"
            yield "edit_dropped", edit.place, change, replace(rule, edits=edits)
    if rule.approvers:
        change = f"anybody may approve, not only {', '.join(rule.approvers)}"
        yield "approvers_dropped", None, change, replace(rule, approvers=())
    for place, obligation in enumerate(rule.obligations):
        left = _without(rule.obligations, place)
        change = f"the obligation {obligation.id} is gone"
        yield "obligation_dropped", None, change, replace(rule, obligations=left)


def _without(items: Sequence[Any], place: int) -> tuple[Any, ...]:
    return (*items[:place], *items[place + 1 :])


def _of_whole(match: Match) -> Iterator[_Variant]:
    if not isinstance(match, AllOf | Always):
        yield _Variant(
            "condition_dropped", _place_of(match), f"{_shown(match)} is not asked", Always()
        )
    yield from _variants(match)


def _variants(match: Match) -> Iterator[_Variant]:
    if isinstance(match, AllOf | AnyOf):
        joined = isinstance(match, AllOf)
        for place, part in enumerate(match.parts):
            if len(match.parts) > 1:
                left = _without(match.parts, place)
                smaller = left[0] if len(left) == 1 else replace(match, parts=left)
                kind = "condition_dropped" if joined else "alternative_dropped"
                change = f"{_shown(part)} is {'not asked' if joined else 'no alternative'}"
                yield _Variant(kind, _place_of(part), change, smaller)
            for variant in _variants(part):
                parts = (*match.parts[:place], variant.match, *match.parts[place + 1 :])
                yield replace(variant, match=replace(match, parts=parts))
    elif isinstance(match, Not):
        yield _Variant(
            "negation_dropped",
            _place_of(match.part),
            f"the not before {_shown(match.part)} is gone",
            match.part,
        )
        for variant in _variants(match.part):
            yield replace(variant, match=Not(variant.match))
    elif isinstance(match, Leaf):
        yield from _of_leaf(match)


def _of_leaf(leaf: Leaf) -> Iterator[_Variant]:
    if isinstance(leaf.operand, _MATCHES):
        for variant in _variants(leaf.operand):
            yield replace(variant, match=replace(leaf, operand=variant.match))
    elif isinstance(leaf.operand, Ref):
        if leaf.operator in _SWAPPED:
            yield _leaf_variant("bound_swapped", leaf, operator=_SWAPPED[leaf.operator])
    elif leaf.operator in _SWAPPED:
        yield from _of_bound(leaf)
    elif leaf.operator == "between":
        yield from _of_range(leaf)
    elif leaf.operator == "matches":
        yield from _of_pattern(leaf)
    elif leaf.operator in _WITH_MEMBERS and isinstance(leaf.operand, list | tuple):
        yield from _of_members(leaf)


def _leaf_variant(kind: str, leaf: Leaf, **changes: Any) -> _Variant:
    # As written, a path may end in the operator that is changed here.
    path = replace(leaf.path, text=spell(leaf.path.root, leaf.path.steps))
    changed = replace(leaf, path=path, **changes)
    change = f"{shown_leaf(changed)} in place of {shown_leaf(leaf)}"
    return _Variant(kind, leaf.place, change, changed)


def _of_bound(leaf: Leaf) -> Iterator[_Variant]:
    """Change a bound at its value, and just beside it; two cases hold it in its place."""
    yield _leaf_variant("bound_swapped", leaf, operator=_SWAPPED[leaf.operator])
    # A bound that leaves its value out is moved inwards, one that takes it in outwards: the other
    # way is noticed by whatever notices the swap.
    steps = 1 if leaf.operator in ("gt", "le") else -1
    if kind_of(leaf.operand) == "number":
        yield from _moved_to(leaf, _moved(leaf.operand, steps))


def _of_range(leaf: Leaf) -> Iterator[_Variant]:
    low, high = leaf.operand
    least, most = _bound(leaf, "ge", low), _bound(leaf, "le", high)
    above, below = _bound(leaf, "gt", low), _bound(leaf, "lt", high)
    for end, match in ((low, AllOf((above, most))), (high, AllOf((least, below)))):
        change = f"{shown_leaf(leaf)} leaves {end!r} out"
        yield _Variant("bound_swapped", leaf.place, change, match)
    if kind_of(low) == "number":
        for ends in ((_moved(low, -1), high), (low, _moved(high, 1))):
            yield from _moved_to(leaf, FrozenList(ends))


def _moved_to(leaf: Leaf, operand: Any) -> Iterator[_Variant]:
    # One step is lost beside a very large number.
    if operand != leaf.operand:
        yield _leaf_variant("bound_moved", leaf, operand=operand)


def _bound(leaf: Leaf, operator: str, operand: Any) -> Leaf:
    return replace(leaf, operator=operator, operand=operand)


def _moved(bound: Any, steps: int) -> Any:
    """Move a number by one, or by one of its last decimal place."""
    if isinstance(bound, int):
        return bound + steps
    exact: Decimal = Decimal(repr(bound)) if isinstance(bound, float) else bound
    exponent = exact.as_tuple().exponent
    step = Decimal((0, (1,), min(exponent, 0))) if isinstance(exponent, int) else Decimal(1)
    moved = exact + steps * step
    return float(moved) if isinstance(bound, float) else moved


def _of_members(leaf: Leaf) -> Iterator[_Variant]:
    members: Sequence[Any] = leaf.operand
    for place, member in enumerate(members if len(members) > 1 else ()):
        left = FrozenList(_without(members, place))
        shown = repr(member)
        change = f"{_shown(leaf)} is asked without {shown}"
        yield _Variant("member_dropped", leaf.place, change, replace(leaf, operand=left))


def _of_pattern(leaf: Leaf) -> Iterator[_Variant]:
    pattern: str = leaf.operand
    starts = re.match(r"\^|\\A", pattern)
    ends = re.search(r"(?<!\\)(?:\\\\)*(\$|\\Z)\Z", pattern)
    if starts and len(pattern) > starts.end():
        yield _leaf_variant("anchor_dropped", leaf, operand=pattern[starts.end() :])
    if ends and ends.start(1):
        yield _leaf_variant("anchor_dropped", leaf, operand=pattern[: ends.start(1)])


def _place_of(match: Match) -> Place | None:
    if isinstance(match, Leaf):
        return match.place
    if isinstance(match, Not):
        return _place_of(match.part)
    return _place_of(match.parts[0]) if isinstance(match, AllOf | AnyOf) else None


def _shown(match: Match) -> str:
    """Write a match for a sentence: a leaf in full, of more than one the first and how many."""
    if isinstance(match, Leaf):
        return shown_leaf(match)
    if isinstance(match, Not):
        return f"not {_shown(match.part)}"
    if isinstance(match, AllOf | AnyOf):
        word = "all" if isinstance(match, AllOf) else "any"
        return f"{word} of {_shown(match.parts[0])} and {len(match.parts) - 1} more"
    return "always"
