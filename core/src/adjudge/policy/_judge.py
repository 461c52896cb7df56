"""Judging by one policy, or one layer: search, floors of errored rules, transforms on their result.

Clauses 8, 14, 15, 17 and 19. Nothing here raises for what a policy or a request says; a test that
raises is an error of its rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge._types import ActionRequest, Decision, Verdict
from adjudge.policy._compile import CompiledPolicy
from adjudge.policy._faults import DOUBT, Fault, raised
from adjudge.policy._model import Edit, Place
from adjudge.policy._rules import CompiledRule, Met, Step, ask
from adjudge.policy._transform import CannotApply, apply_edits
from adjudge.policy._verdicts import STRICTNESS, combine, error_marker, strictest, tagged

__all__ = [
    "Judgement",
    "Rewrite",
    "decide",
    "default_decision",
    "judge",
    "newly_met",
    "on_final",
    "own_default",
    "rewritten",
]

_RUNNING = (Verdict.ALLOW, Verdict.TRANSFORM)
_RESTRICTING = (Verdict.DENY, Verdict.DRY_RUN, Verdict.APPROVE_REQUIRED)
_COMPUTED = Place("a Python rule")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A transform in force: its rule, whether it was plainly met or doubtful, and what it writes.

    `ignored` are the doubtful transforms before it, which this decision leaves out (clause 8).
    """

    rule: CompiledRule
    met: Met
    edits: Sequence[Edit]
    ignored: frozenset[int]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one policy says of a request: a decision, floors included; None where no rule matches.

    `floors` has one entry for each errored rule, `rewrite` the transform that was applied, also
    where its result is denied. `default_holds` says that a restricting rule erred.
    """

    decision: Decision | None
    floors: tuple[Decision, ...]
    rewrite: Rewrite | None
    default_holds: bool


class _Search:
    """What asking the rules in order gave: the first that matches, and what was passed."""

    __slots__ = ("doubtful", "floors", "met", "restriction_erred", "rule")

    def __init__(self) -> None:
        self.rule: CompiledRule | None = None
        self.met: Met = False
        self.floors: list[Decision] = []
        self.doubtful: list[CompiledRule] = []
        self.restriction_erred = False

    def through(self, steps: Iterable[Step], request: ActionRequest) -> _Search:
        """Ask these rules too, unless the search has ended."""
        if self.rule is None:
            for test, _, rule in steps:
                if self.take(rule, ask(test, request)):
                    break
        return self

    def take(self, rule: CompiledRule, met: Met) -> bool:
        """Note how a rule stands; say whether the search ends with it."""
        if isinstance(met, Fault):
            self.floors.append(_floor(rule, met))
            self.restriction_erred |= rule.verdict in _RESTRICTING
        elif met is DOUBT:
            self.doubtful.append(rule)
        elif met is not False:
            self.rule, self.met = rule, met
            return True
        return False


def decide(policy: CompiledPolicy, request: ActionRequest) -> Decision:
    """Decide by one policy alone, defaults included."""
    found = policy.ready.get(request.tool) if request.namespace is None else None
    steps = iter(policy.rules.steps(request) if found is None else found)
    for test, decision, rule in steps:
        try:
            met = test(request, None)
        except Exception as error:
            met = raised(error)
        if met is False:
            continue
        if met is True and decision is not None:
            return decision
        search = _Search()
        search.take(rule, met)
        return _by_search(policy, request, search, steps)
    return policy.default(request.tool, request.declared)


def _by_search(
    policy: CompiledPolicy, request: ActionRequest, search: _Search, steps: Iterator[Step]
) -> Decision:
    judgement = _conclude(policy, request, search.through(steps, request))
    if judgement.decision is not None:
        return judgement.decision
    return combine(default_decision(policy, request), judgement.floors)


def judge(policy: CompiledPolicy, request: ActionRequest) -> Judgement:
    """Judge by one layer: None as decision where no rule of it matches."""
    search = _Search().through(policy.rules.steps(request), request)
    return _conclude(policy, request, search)


def _conclude(policy: CompiledPolicy, request: ActionRequest, search: _Search) -> Judgement:
    floors = tuple(search.floors)
    decision: Decision | None = None
    rewrite: Rewrite | None = None
    if search.rule is not None:
        ignored = frozenset(rule.position for rule in search.doubtful)
        decision, rewrite = _matched(policy, request, search.rule, search.met, ignored)
        decision = combine(decision, floors)
    elif search.doubtful:
        decision = combine(own_default(policy, request), floors)
    for index in reversed(range(len(search.doubtful))):
        assert decision is not None
        if decision.verdict not in _RUNNING:
            break
        ignored = frozenset(rule.position for rule in search.doubtful[:index])
        decision, rewrite = _matched(policy, request, search.doubtful[index], DOUBT, ignored)
        # A call that may run has no floor to it; these are the marks of plain allow rules.
        decision = combine(decision, floors)
    return Judgement(decision, floors, rewrite, search.restriction_erred)


def _matched(
    policy: CompiledPolicy,
    request: ActionRequest,
    rule: CompiledRule,
    met: Met,
    ignored: frozenset[int],
) -> tuple[Decision, Rewrite | None]:
    """Give the decision of a rule that matched, judged on what it rewrites, and the rewrite."""
    base = met if isinstance(met, Decision) else rule.decision
    assert base is not None
    try:
        edits, final = rewritten(request, rule, base)
    except CannotApply as error:
        reason = f"the transform of {_called(rule)} cannot be applied: {error}"
        return Decision(Verdict.DENY, reason, base.matched_rules), None
    if final is None:
        return base, None
    rewrite = Rewrite(rule, met, edits, ignored)
    base = replace(base, effective_args=final)
    return combine(base, newly_met(policy, request, rewrite, final)), rewrite


def rewritten(
    request: ActionRequest, rule: CompiledRule, base: Decision
) -> tuple[Sequence[Edit], Mapping[str, Any] | None]:
    """Give a matched rule's edits and what they make of the arguments; None if it has none."""
    if rule.verdict is Verdict.TRANSFORM:
        return rule.edits, apply_edits(request.args, rule.edits)
    if base.effective_args is not None:
        whole = Edit("set", (), base.effective_args, _COMPUTED)
        return (whole,), base.effective_args
    return (), None


def on_final(request: ActionRequest, final: Mapping[str, Any]) -> ActionRequest:
    """Give the request with other arguments; what the model itself sent stays what it was."""
    given = frozenset(request.args) if request.given is None else request.given
    return replace(request, args=final, given=given)


def newly_met(
    policy: CompiledPolicy, request: ActionRequest, rewrite: Rewrite, final: Mapping[str, Any]
) -> list[Decision]:
    """Give the strictest rules that the final arguments newly meet (clause 19).

    A rule is shadowed by every rule before it that matches the original, and comes out of the
    shadow once none of the rules before it matches the final arguments: who caps an amount and
    allows what is capped does not meet the catch-all below.
    """
    after_rewrite = on_final(request, final)
    decisions: list[Decision] = []
    shadowed = still_shadowed = False
    for test, _, rule in policy.rules.steps(request):
        before, after = ask(test, request), ask(test, after_rewrite)
        if rule.position in rewrite.ignored and (after is False or after is DOUBT):
            # Left out of this decision, unless the rewrite has turned the doubt into certainty.
            continue
        if rule is rewrite.rule:
            shadowed = True
            still_shadowed |= _as_plain(after) or (rewrite.met is DOUBT and after is DOUBT)
            continue
        emerged = shadowed and not still_shadowed
        decision = None if after is False else _restriction(rule, after)
        if decision is not None and (emerged or not _settled(before, after, decision)):
            decisions.append(decision)
        shadowed |= _as_plain(before)
        still_shadowed |= _as_plain(after)
    if not decisions:
        return []
    verdict = strictest(each.verdict for each in decisions)
    return [each for each in decisions if each.verdict is verdict]


def _as_plain(met: Met) -> bool:
    return met is True or isinstance(met, Decision)


def _settled(before: Met, after: Met, decision: Decision) -> bool:
    """Whether the rule had said as much of the original; a Python rule may change its word."""
    if isinstance(before, Decision):
        now = after if isinstance(after, Decision) else decision
        return STRICTNESS[before.verdict] >= STRICTNESS[now.verdict]
    return before is True


def _restriction(rule: CompiledRule, met: Met) -> Decision | None:
    """Say what a rule that is met by rewritten arguments demands; None for one that permits."""
    if isinstance(met, Fault):
        return None if rule.verdict is Verdict.ALLOW else _floor(rule, met)
    if isinstance(met, Decision):
        if met.verdict is Verdict.ALLOW:
            return None
        rewrites = met.effective_args is not None or met.verdict is Verdict.TRANSFORM
        return _rewritten_twice(rule) if rewrites else met
    if rule.verdict is Verdict.TRANSFORM:
        return _rewritten_twice(rule)
    return None if rule.verdict is Verdict.ALLOW else rule.decision


def _rewritten_twice(rule: CompiledRule) -> Decision:
    return Decision(
        Verdict.DENY,
        f"the rewritten arguments meet {_called(rule)}, which would rewrite them again",
        (tagged(rule.layer, rule.id),),
    )


def _floor(rule: CompiledRule, fault: Fault) -> Decision:
    """Give the floor that an errored rule leaves; a plain allow's is allow, which binds nobody."""
    own = rule.decision if rule.verdict is rule.floor else None
    return Decision(
        verdict=rule.floor,
        reason=f"{_called(rule)} could not be judged: {fault.cause}",
        matched_rules=(error_marker(rule.layer, rule.id, fault.kind),),
        approver_sets=own.approver_sets if own else (),
        timeout_seconds=own.timeout_seconds if own else None,
        obligations=own.obligations if own else (),
    )


def _called(rule: CompiledRule) -> str:
    return f"rule {tagged(rule.layer, rule.id)!r}"


def default_decision(policy: CompiledPolicy, request: ActionRequest) -> Decision:
    """Give what holds where no rule matches (clause 17)."""
    return policy.default(request.tool, request.declared)


def own_default(policy: CompiledPolicy, request: ActionRequest) -> Decision:
    """Give the default as the word of this layer, where it is one."""
    decision = default_decision(policy, request)
    names = tuple(tagged(policy.layer, name) for name in decision.matched_rules)
    return replace(decision, matched_rules=names)
