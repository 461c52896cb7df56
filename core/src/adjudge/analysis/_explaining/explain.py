"""Explain: why a call gets the verdict that it gets, rule by rule and condition by condition.

Nothing is decided here. The decision is `evaluate`'s, what a layer says is the engine's judgement,
and how a rule stands is what the engine's own test of it answers; this file only puts them side by
side and says it in words. Python rules are called once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge._types import ActionRequest, Decision, Verdict
from adjudge.analysis._explaining.condition_answers import Conditions
from adjudge.analysis._explaining.explanation import (
    ConditionAnswer,
    Explanation,
    LayerAnswer,
    RuleAnswer,
)
from adjudge.analysis._explaining.seeing import Shown
from adjudge.analysis._parts import part_of
from adjudge.policy import LayeredPolicyBundle, PolicyBundle, evaluate
from adjudge.policy._compile import CompiledPolicy
from adjudge.policy._faults import DOUBT, Fault
from adjudge.policy._judge import (
    default_decision,
    judge,
    newly_met,
    on_final,
    rewritten,
)
from adjudge.policy._match import Reading, literal_tools
from adjudge.policy._model import Rule
from adjudge.policy._python_rules import name_of
from adjudge.policy._rules import CompiledRule, Met, Step, ask
from adjudge.policy._transform import CannotApply
from adjudge.policy._verdicts import tagged

__all__ = ["explain"]


def explain(bundle: PolicyBundle | LayeredPolicyBundle, request: ActionRequest) -> Explanation:
    """Say why a call gets its verdict.

    The request is judged as it is: what `under` reads must be resolved in it already. Values are
    shown as the record has them, secrets taken out.
    """
    decision = evaluate(bundle, request)
    shown = Shown(request)
    if isinstance(bundle, LayeredPolicyBundle):
        policies = [policy for _, policy in bundle.layers]
        compiled = bundle._compiled
        combined_by = name_of(bundle.merge)
    else:
        policies, compiled = [bundle], (bundle._compiled,)
        combined_by = ""
    layers = tuple(
        _Explaining(policy, rules, request, decision).layer()
        for policy, rules in zip(policies, compiled, strict=True)
    )
    principal = request.context.principal
    final = shown.args(decision.effective_args)
    return Explanation(
        tool=request.tool,
        namespace=request.namespace,
        principal=f"{principal.kind} {principal.id}",
        args=shown.args(request.args),
        decision=_with_args(decision, final),
        final_args=final,
        layers=layers,
        combined_by=combined_by,
        summary=tuple(_summary(decision, layers, combined_by)),
    )


def _with_args(decision: Decision, final: Any) -> Decision:
    return decision if final is None else replace(decision, effective_args=final)


class _Explaining:
    """One policy, or one layer, and one call as that layer sees it."""

    def __init__(
        self,
        bundle: PolicyBundle,
        policy: CompiledPolicy,
        request: ActionRequest,
        decision: Decision,
    ) -> None:
        self._bundle = bundle
        self._source = source = bundle.source
        self._policy = policy
        self._request = policy.prepared(request, None)
        self._judgement = judge(policy, self._request)
        self._final = self._final_args(decision)
        self._rules = {rule.id: rule for rule in source.rules}
        self._namespaces = {
            tool: entry.namespace
            for tool, entry in source.tools.items()
            if entry.namespace is not None
        }
        self._conditions = Conditions(Shown(self._request), source.predicates)

    def _final_args(self, decision: Decision) -> Mapping[str, Any] | None:
        """Give the arguments that the call would run with, also where that is then denied."""
        rewrite = self._judgement.rewrite
        if decision.effective_args is not None or rewrite is None:
            return decision.effective_args
        if self._judgement.decision is not None and self._judgement.decision.effective_args:
            return self._judgement.decision.effective_args
        base = rewrite.met if isinstance(rewrite.met, Decision) else rewrite.rule.decision
        assert base is not None
        try:
            return rewritten(self._request, rewrite.rule, base)[1]
        except CannotApply:
            return None

    def layer(self) -> LayerAnswer:
        """Explain it."""
        told: list[RuleAnswer] = []
        ended = False
        for asked in self._in_order():
            if isinstance(asked, Rule):
                told.append(self._of_another_namespace(asked, ended=ended))
                continue
            test, _, rule = asked
            met: Met | None = None if ended else ask(test, self._request)
            told.append(self._rule(rule, met, self._after(test)))
            ended = ended or met is True or isinstance(met, Decision)
        default = default_decision(self._policy, self._request)
        decided = self._judgement.decision
        count = len(self._source.rules) + len(self._bundle.python_rules)
        return LayerAnswer(
            name=self._policy.layer,
            verdict="" if decided is None else str(decided.verdict),
            reason=default.reason if decided is None else decided.reason,
            default=str(default.verdict),
            rules=tuple(told),
            other_rules=count - len(told),
            newly_met=self._newly_met(),
        )

    def _in_order(self) -> list[Step | Rule]:
        """Give what is asked about the tool, and the rules that are about a namesake of it."""
        priorities = dict(self._bundle.python_rule_priorities)
        names = [name_of(rule) for rule in self._bundle.python_rules]
        steps = self._policy.rules.steps(self._request)
        keyed: list[tuple[tuple[int, int, int], Step | Rule]] = []
        for step in steps:
            name = step[2].id
            rule = self._rules.get(name)
            if rule is None:
                keyed.append(((-priorities.get(name, 0), 1, names.index(name)), step))
            else:
                keyed.append(((-rule.priority, 0, rule.order), step))
        asked = {rule.id for _, _, rule in steps}
        keyed += [
            ((-rule.priority, 0, rule.order), rule)
            for rule in self._source.rules
            if rule.id not in asked and self._request.tool in (literal_tools(rule.match) or ())
        ]
        return [each for _, each in sorted(keyed, key=lambda pair: pair[0])]

    def _of_another_namespace(self, rule: Rule, *, ended: bool) -> RuleAnswer:
        return RuleAnswer(
            rule=tagged(self._policy.layer, rule.id),
            verdict=str(rule.verdict),
            answer="not asked" if ended else "false",
            outcome="the search had ended" if ended else "is about a tool of another namespace",
            place=rule.place,
            readings=() if ended else self._readings(rule),
        )

    def _after(self, test: Any) -> str:
        if self._final is None:
            return ""
        return _word(ask(test, on_final(self._request, self._final)))

    def _newly_met(self) -> tuple[str, ...]:
        rewrite = self._judgement.rewrite
        if rewrite is None or self._final is None:
            return ()
        met = newly_met(self._policy, self._request, rewrite, self._final)
        return tuple(
            f"{name} ({decision.verdict})" for decision in met for name in decision.matched_rules
        )

    def _rule(self, rule: CompiledRule, met: Met | None, after: str) -> RuleAnswer:
        written = self._rules.get(rule.id)
        verdict = str(rule.verdict) if rule.verdict is not None else _verdict_of(met)
        return RuleAnswer(
            rule=tagged(rule.layer, rule.id),
            verdict=verdict,
            answer="not asked" if met is None else _word(met),
            outcome=self._outcome(rule, met),
            fault=met.cause if isinstance(met, Fault) else "",
            on_final=after,
            place=None if written is None else written.place,
            readings=() if written is None or met is None else self._readings(written),
        )

    def _outcome(self, rule: CompiledRule, met: Met | None) -> str:
        rewrite = self._judgement.rewrite
        applies = rewrite is not None and rewrite.rule is rule
        if met is None:
            return "the search had ended"
        if isinstance(met, Fault):
            if rule.floor is Verdict.ALLOW:
                return "an error in a plain allow binds nobody; the search goes on"
            return f"an error is no answer: at least {rule.floor}; the search goes on"
        if met is DOUBT:
            if applies:
                return "matches as a restriction alone, and the call would run: it rewrites"
            return "matches as a restriction alone, and something else holds: it is left out"
        if met is False:
            return "does not match; the search goes on"
        if applies:
            return "matches: it rewrites and is judged again"
        if rewrite is not None and rewrite.met is DOUBT:
            return "matches and would let the call run: a doubtful rewrite applies instead"
        return "matches: it decides"

    def _readings(self, rule: Rule) -> tuple[ConditionAnswer, ...]:
        def of(*, permitting: bool) -> ConditionAnswer:
            return self._conditions.of(part_of(rule.match, Reading(permitting, self._namespaces)))[
                1
            ]

        if rule.verdict is not Verdict.TRANSFORM:
            return (of(permitting=rule.verdict is Verdict.ALLOW),)
        both = (of(permitting=True), of(permitting=False))
        return both[:1] if both[0] == both[1] else both


def _verdict_of(met: Met | None) -> str:
    return str(met.verdict) if isinstance(met, Decision) else "Python rule"


def _word(met: Met) -> str:
    if isinstance(met, Fault):
        return "error"
    if met is DOUBT:
        return "doubtful"
    return "false" if met is False else "true"


def _summary(decision: Decision, layers: Sequence[LayerAnswer], combined_by: str) -> list[str]:
    """Say in sentences what led to the verdict."""
    told: list[str] = []
    for layer in layers:
        who = f'layer "{layer.name}"' if layer.name else "the policy"
        told += [
            f'"{rule.rule}" could not be judged: {rule.fault}; {rule.outcome}.'
            for rule in layer.rules
            if rule.answer == "error"
        ]
        told += [
            f'"{rule.rule}" {rule.outcome}.'
            for rule in layer.rules
            if rule.outcome.startswith("matches")
        ]
        if layer.newly_met:
            told.append(f"The rewritten arguments newly meet {', '.join(layer.newly_met)}.")
        if not layer.verdict:
            told.append(f"No rule of {who} matches; its default is {layer.default}.")
        elif combined_by:
            told.append(f"So {who} says {layer.verdict}.")
    if combined_by:
        told.append(f"{combined_by} combines the layers.")
    named = ", ".join(decision.matched_rules) or "no rule"
    told.append(f"So the verdict is {decision.verdict}, by {named}.")
    return told
