"""What the test cases of a policy exercise: rules that decided, conditions seen true and false.

A condition counts in the cases about which its rule was asked (which no rule before it decided);
one that names the tool counts in all. The engine judges it, in the reading of its rule (of a
transform: the permitting one). What can never be false stays unseen; `policy lint` finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge._enforcement.approvals import escaped
from adjudge._types import ActionRequest, Decision, Verdict
from adjudge.analysis._asking import Policy
from adjudge.analysis._linting.views import shown_leaf
from adjudge.analysis._parts import Part, inner_part, leaf_matcher, part_of
from adjudge.analysis._testing.case_running import PolicyTestReport
from adjudge.analysis._testing.cases import spot
from adjudge.policy import LayeredPolicyBundle, PolicyBundle
from adjudge.policy._compile import CompiledPolicy
from adjudge.policy._faults import Fault
from adjudge.policy._judge import on_final
from adjudge.policy._match import Matcher, Reading
from adjudge.policy._model import Leaf, Place, PolicySource, Rule
from adjudge.policy._operators import normal_form
from adjudge.policy._python_rules import name_of
from adjudge.policy._rules import ask
from adjudge.policy._subjects import subject
from adjudge.policy._verdicts import tagged

__all__ = ["ConditionCoverage", "Coverage", "RuleCoverage", "measure_coverage"]

_DEFAULTS = ("on_no_match", "on_missing_shadow")


@dataclass(frozen=True, slots=True)
class ConditionCoverage:
    """One leaf condition of a rule: how often it was true, false and in error."""

    text: str
    place: Place
    true: int
    false: int
    errors: int

    @property
    def answers(self) -> tuple[tuple[str, int], ...]:
        """How often it gave each answer that is to be seen."""
        return (("true", self.true), ("false", self.false))


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """One rule: the names of the cases that it decided, and its conditions.

    `name` is as decisions report it, with the layer. A Python rule has no conditions and no place.
    """

    name: str
    place: Place | None
    decided: tuple[str, ...]
    conditions: tuple[ConditionCoverage, ...]

    @property
    def gaps(self) -> tuple[str, ...]:
        """What no case has shown, a sentence each with its place."""
        missing = [] if self.decided else [f"{spot(self.place)}: it decided no case"]
        for each in self.conditions:
            never = [word for word, times in each.answers if not times]
            if never:
                where = spot(each.place)
                missing.append(f"{where}: {each.text} was never {' or '.join(never)}")
        return tuple(missing)

    @property
    def goals(self) -> int:
        """What there is to see: that it decides, and each condition true and false."""
        return 1 + 2 * len(self.conditions)

    @property
    def met(self) -> int:
        """How much of that was seen."""
        seen = sum(times > 0 for each in self.conditions for _, times in each.answers)
        return seen + bool(self.decided)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What all cases together exercise; `defaults` are the cases that each default decided."""

    rules: tuple[RuleCoverage, ...]
    defaults: Mapping[str, tuple[str, ...]]

    @property
    def percent(self) -> float:
        """How much was seen of what there is to see, in percent; of nothing, all of it."""
        goals = sum(rule.goals for rule in self.rules)
        return 100.0 * sum(rule.met for rule in self.rules) / goals if goals else 100.0

    def explained(self) -> str:
        """Say in lines how much is covered, and what is not."""
        lines = [f"coverage: {self.percent:.1f} %"]
        for rule in self.rules:
            if rule.gaps:
                lines.append(f"  rule {rule.name}")
                lines += [f"    {gap}" for gap in rule.gaps]
        idle = [name for name, cases in self.defaults.items() if not cases]
        lines += [f"  the default {name} decided no case" for name in idle]
        return "\n".join(map(escaped, lines))


def measure_coverage(policy: Policy, report: PolicyTestReport) -> Coverage:
    """Measure what the cases of a report exercise, whether they passed or not."""
    if isinstance(policy, LayeredPolicyBundle):
        layers = [
            _Layer(name, bundle, compiled)
            for (name, bundle), compiled in zip(policy.layers, policy._compiled, strict=True)
        ]
    else:
        layers = [_Layer("", policy, policy._compiled)]
    for result in report.results:
        for layer in layers:
            layer.see(result.request, result.decision)
    decided = _Deciders(report)
    return Coverage(
        rules=tuple(rule for layer in layers for rule in layer.covered(decided)),
        defaults={name: decided.of(f"<default:{name}>") for name in _DEFAULTS},
    )


class _Deciders:
    """Which cases each name decided."""

    def __init__(self, report: PolicyTestReport) -> None:
        self._cases: dict[str, list[str]] = {}
        for result in report.results:
            for name in result.decision.matched_rules:
                self._cases.setdefault(name, []).append(result.case.name)

    def of(self, name: str) -> tuple[str, ...]:
        return tuple(self._cases.get(name, ()))


class _Layer:
    """The rules of one policy, and what was seen of their conditions."""

    def __init__(self, name: str, bundle: PolicyBundle, compiled: CompiledPolicy) -> None:
        self._name = name
        self._bundle = bundle
        self._compiled = compiled
        namespaces = _namespaces(bundle.source)
        self._rules = {rule.id: _Watched(rule, namespaces) for rule in bundle.source.rules}

    def see(self, request: ActionRequest, decision: Decision) -> None:
        """Ask every rule that this request reaches, and note what its conditions say."""
        request = self._compiled.prepared(request, None)
        for watched in self._rules.values():
            watched.see_tool(request)
        seen = [request]
        if decision.effective_args is not None:
            # What a rewrite makes of a call is judged by every rule (clause 19).
            seen.append(on_final(request, decision.effective_args))
        for test, _, rule in self._compiled.rules.steps(request):
            if rule.id in self._rules:
                for each in seen:
                    self._rules[rule.id].see(each)
            met = ask(test, request)
            if len(seen) == 1 and (met is True or isinstance(met, Decision)):
                break

    def covered(self, deciders: _Deciders) -> Iterator[RuleCoverage]:
        for name, watched in self._rules.items():
            shown = tagged(self._name, name)
            yield RuleCoverage(
                shown, watched.rule.place, deciders.of(shown), tuple(watched.covered())
            )
        for function in self._bundle.python_rules:
            shown = tagged(self._name, name_of(function))
            yield RuleCoverage(shown, None, deciders.of(shown), ())


def _namespaces(source: PolicySource) -> dict[str, str]:
    stated = ((name, declaration.namespace) for name, declaration in source.tools.items())
    return {name: namespace for name, namespace in stated if namespace is not None}


class _Watched:
    """One rule, and the tallies of its conditions."""

    def __init__(self, rule: Rule, namespaces: Mapping[str, str]) -> None:
        self.rule = rule
        permitting = rule.verdict in (Verdict.ALLOW, Verdict.TRANSFORM)
        top = part_of(rule.match, Reading(permitting, namespaces))
        self._tallies = [_Tally(part) for part in _leaves(top)]

    def see(self, request: ActionRequest) -> None:
        """Note what the conditions say of a call about which the rule is asked."""
        for tally in self._tallies:
            if not tally.names_tool:
                tally.see(request, None)

    def see_tool(self, request: ActionRequest) -> None:
        """Note what is settled before the rule is asked: whether it is about the tool."""
        for tally in self._tallies:
            if tally.names_tool:
                tally.see(request, None)

    def covered(self) -> Iterator[ConditionCoverage]:
        for tally in self._tallies:
            yield from tally.covered()


class _Tally:
    """What was seen of one condition, and of those about the elements within it."""

    def __init__(self, part: Part) -> None:
        assert isinstance(part.match, Leaf)
        self._leaf = part.match
        self.names_tool = part.match.path.root in ("tool", "tool.namespace")
        self._matcher: Matcher = leaf_matcher(part)
        self._read = subject(part.match.path, part.reading.element)
        inner = inner_part(part)
        self._inner = [] if inner is None else [_Tally(each) for each in _leaves(inner)]
        self._answers: dict[object, int] = {}

    def see(self, request: ActionRequest, item: Any) -> None:
        answer = self._matcher(request, item)
        key = answer if isinstance(answer, bool) else "error"
        self._answers[key] = self._answers.get(key, 0) + 1
        for element in self._elements(request, item) if self._inner else ():
            for tally in self._inner:
                tally.see(request, element)

    def _elements(self, request: ActionRequest, item: Any) -> list[Any]:
        """Give what the inner conditions are asked about; nothing where the kind is foreign."""
        value = self._read(request, item)
        if isinstance(value, Fault):  # It is a tuple as well, and no list of the call's.
            return []
        if self._leaf.operator == "normalized":
            return [normal_form(value)] if isinstance(value, str) else []
        if self._leaf.operator == "size":
            return [len(value)] if isinstance(value, str | list | tuple | Mapping) else []
        return list(value) if isinstance(value, list | tuple) else []

    def covered(self) -> Iterator[ConditionCoverage]:
        yield ConditionCoverage(
            text=shown_leaf(self._leaf),
            place=self._leaf.place,
            true=self._answers.get(True, 0),
            false=self._answers.get(False, 0),
            errors=self._answers.get("error", 0),
        )
        for tally in self._inner:
            yield from tally.covered()


def _leaves(part: Part) -> Iterator[Part]:
    if part.kind == "leaf":
        yield part
    for each in part.parts:
        yield from _leaves(each)
