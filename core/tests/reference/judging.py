"""One policy's judgement of one request: order, floors, defaults, transforms (14 to 19)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from adjudge._types import Obligation, Verdict
from reference.edits import CannotApply, rewritten
from reference.logic import Truth
from reference.policy import RESTRICTING, Answer, Candidate, ReferencePolicy, WrittenRule
from reference.reading import World

# Clause 16.
STRICTNESS = {
    Verdict.ALLOW: 0,
    Verdict.TRANSFORM: 1,
    Verdict.APPROVE_REQUIRED: 2,
    Verdict.DRY_RUN: 3,
    Verdict.DENY: 4,
}


@dataclass(frozen=True)
class Judgement:
    """A decision in the making; `final` is what a transform made of the arguments."""

    verdict: Verdict
    rules: tuple[str, ...] = ()
    approvers: tuple[tuple[str, ...], ...] = ()
    timeout: float | None = None
    obligations: tuple[Obligation, ...] = ()
    final: Any = None

    @property
    def strictness(self) -> int:
        """The verdict's rank."""
        return STRICTNESS[self.verdict]

    @property
    def lets_run(self) -> bool:
        """Whether the body may run, perhaps after a grant."""
        return self.verdict not in (Verdict.DENY, Verdict.DRY_RUN)


@dataclass(frozen=True)
class Alone:
    """What one policy makes of a request; `judgement` is None where no rule matched."""

    judgement: Judgement | None
    floors: tuple[Judgement, ...] = ()
    errors: tuple[str, ...] = ()
    applied: Candidate | None = None
    answer: Answer | None = None
    restricting_erred: bool = False
    without: tuple[Candidate, ...] = ()
    """The doubtful transforms that this leaves out (clause 8)."""


def over(floor: Judgement, base: Judgement) -> Judgement:
    """Put a restriction over a judgement: the stricter counts, of equals both (15 and 19)."""
    if floor.strictness < base.strictness:
        return base
    both = replace(
        floor,
        rules=(*base.rules, *(rule for rule in floor.rules if rule not in base.rules)),
        final=base.final,
        approvers=_union(base.approvers, floor.approvers)
        if Verdict.APPROVE_REQUIRED is base.verdict is floor.verdict
        else floor.approvers,
        timeout=shortest(base.timeout, floor.timeout),
    )
    if floor.strictness == base.strictness:
        return replace(both, obligations=_union(base.obligations, floor.obligations))
    if floor.verdict is Verdict.DENY:
        return replace(both, final=None)  # a denial carries only its own
    if base.lets_run:
        return replace(both, obligations=_union(base.obligations, floor.obligations))
    return both


def over_all(floors: tuple[Judgement, ...], base: Judgement) -> Judgement:
    """Put every floor over a judgement, the loosest first."""
    for floor in sorted(floors, key=lambda one: one.strictness):
        base = over(floor, base)
    return base


def shortest(*timeouts: float | None) -> float | None:
    """Give the shortest time-out of those that are set."""
    return min((one for one in timeouts if one is not None), default=None)


def _union(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*ours, *(one for one in theirs if one not in ours))


def as_seen(policy: ReferencePolicy, world: World) -> World:
    """Give the world with the tool's metadata as this policy has them."""
    return replace(world, request=replace(world.request, declared=policy.metadata(world.request)))


def judge_alone(
    policy: ReferencePolicy, world: World, without: tuple[Candidate, ...] = ()
) -> Alone:
    """Judge by one policy: the first rule that matches, under the floors of those that erred."""
    world = as_seen(policy, world)
    floors: list[Judgement] = []
    errors: list[str] = []
    restricting_erred = False
    for candidate in policy.candidates():
        if candidate in without:
            continue
        answer = candidate.ask(world)
        if answer.matches is Truth.ERROR:
            # Clause 15: a floor, and the search goes on.
            errors.append(marker(candidate.id))
            restricting_erred = restricting_erred or candidate.restricting
            if candidate.floor is not None:
                floors.append(floor_of(candidate, answer))
            continue
        if answer.matches is Truth.FALSE:
            continue
        if answer.doubtful:
            return _doubtful(policy, world, candidate, answer, without)
        judgement = _decided(policy, world, candidate, answer, without)
        applied = candidate if answer.verdict is Verdict.TRANSFORM else None
        return Alone(
            over_all(tuple(floors), judgement),
            tuple(floors),
            tuple(errors),
            applied,
            answer,
            without=without,
        )
    return Alone(None, tuple(floors), tuple(errors), restricting_erred=restricting_erred)


def floor_of(candidate: Candidate, answer: Answer) -> Judgement:
    """Give an errored rule's floor: its verdict, or a denial that carries nothing (clause 15)."""
    assert candidate.floor is not None
    if candidate.restricting:
        return replace(_stated(candidate, answer), rules=(marker(candidate.id),))
    return Judgement(candidate.floor, (marker(candidate.id),))


def marker(rule: str) -> str:
    """Give the mark of an errored rule; the kind of the error is not the reference's to name."""
    return f"<rule_error:{rule}:error>"


def _stated(candidate: Candidate, answer: Answer) -> Judgement:
    assert answer.verdict is not None
    asks = answer.verdict is Verdict.APPROVE_REQUIRED
    return Judgement(
        answer.verdict,
        (candidate.id,),
        approvers=answer.approvers if asks else (),
        timeout=answer.timeout if asks else None,
        obligations=answer.obligations,
    )


def _doubtful(
    policy: ReferencePolicy,
    world: World,
    candidate: Candidate,
    answer: Answer,
    without: tuple[Candidate, ...],
) -> Alone:
    """Clause 8: the decision without it counts; instead of allow or transform it applies."""
    rest = judge_alone(policy, world, (*without, candidate))
    judgement = judged_with_default(policy, world, rest)
    if judgement.verdict not in (Verdict.ALLOW, Verdict.TRANSFORM):
        return replace(rest, judgement=judgement)
    instead = _decided(policy, world, candidate, answer, without)
    return Alone(instead, rest.floors, rest.errors, candidate, answer, without=without)


def judged_with_default(policy: ReferencePolicy, world: World, alone: Alone) -> Judgement:
    """Give a policy's whole judgement, its default where no rule matched."""
    if alone.judgement is not None:
        return alone.judgement
    return over_all(alone.floors, default_judgement(policy, world))


def default_judgement(policy: ReferencePolicy, world: World) -> Judgement:
    """Clause 17: what applies where no rule matches."""
    defaults = policy.source.defaults
    declared = policy.metadata(world.request)
    missing_shadow = _default(defaults.on_missing_shadow, "on_missing_shadow")
    no_match = _default(defaults.on_no_match, "on_no_match")
    if declared is None:
        return missing_shadow if missing_shadow.strictness > no_match.strictness else no_match
    if not declared.reversible and not declared.has_shadow:
        return missing_shadow
    return no_match


def _default(verdict: Verdict, name: str) -> Judgement:
    # An ask without approvers is one set, of whoever the handler asks.
    asks = verdict is Verdict.APPROVE_REQUIRED
    return Judgement(verdict, (f"<default:{name}>",), approvers=((),) if asks else ())


def _decided(
    policy: ReferencePolicy,
    world: World,
    candidate: Candidate,
    answer: Answer,
    without: tuple[Candidate, ...],
) -> Judgement:
    judgement = _stated(candidate, answer)
    if answer.verdict is not Verdict.TRANSFORM:
        return judgement
    try:
        final = rewritten(answer.edits, world)
    except CannotApply:
        return Judgement(Verdict.DENY, (candidate.id,))
    judgement = replace(judgement, final=final)
    return over_all(newly_met(policy, world, candidate, final, without), judgement)


def newly_met(
    policy: ReferencePolicy,
    world: World,
    applied: Candidate,
    final: Any,
    without: tuple[Candidate, ...] = (),
) -> tuple[Judgement, ...]:
    """Clause 19: what a transform's result meets that its original did not."""
    world = as_seen(policy, world)
    result = replace(world, request=replace(world.request, args=final))
    met: list[Judgement] = []
    shadows: list[tuple[Candidate, Answer]] = []
    covered = False
    for candidate in policy.candidates():
        before, after = candidate.ask(world), candidate.ask(result)
        if candidate in without and (after.matches is Truth.FALSE or after.doubtful):
            # Clause 8: this is the decision without it, unless the result made certain of it.
            continue
        still = covered or any(_still(one, was, result) for one, was in shadows)
        uncovered = bool(shadows) and not still
        newly = after.met and (not _same(candidate, before, after) or uncovered)
        if candidate != applied and newly:
            met += _restriction(candidate, after)
        if before.plain or candidate == applied:
            shadows.append((candidate, before))
        # A rule that decides the result keeps what stands below it in the shadow.
        covered = covered or after.plain
    # The strictest wins; where several are, each of them counts.
    most = max((one.strictness for one in met), default=0)
    return tuple(one for one in met if one.strictness == most)


def _same(candidate: Candidate, before: Answer, after: Answer) -> bool:
    """Whether the rule was plainly true already; a Python rule must not have said less."""
    if isinstance(candidate, WrittenRule) or not before.plain:
        return before.plain
    assert before.verdict is not None
    now = Verdict.DENY if after.verdict is None else after.verdict
    return STRICTNESS[before.verdict] >= STRICTNESS[now]


def _still(candidate: Candidate, before: Answer, result: World) -> bool:
    """Whether a rule that shadowed others still matches, no more doubtfully than before."""
    after = candidate.ask(result)
    return after.matches is Truth.TRUE and (before.doubtful or not after.doubtful)


def _restriction(candidate: Candidate, after: Answer) -> list[Judgement]:
    if after.matches is Truth.ERROR:
        # A restricting rule that errs counts as its floor; a transform or a Python rule denies.
        permitting = candidate.floor is None or after.verdict is Verdict.ALLOW
        return [] if permitting else [floor_of(candidate, after)]
    if after.verdict is Verdict.TRANSFORM:
        return [Judgement(Verdict.DENY, (candidate.id,))]
    return [_stated(candidate, after)] if after.verdict in RESTRICTING else []
