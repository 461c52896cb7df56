"""How lynx chooses among rules and layers, and how clauses 6, 8, 15, 16, 19 and 20 change that.

A policy is its dict; an answer is a `Judgement` of the reference evaluator, so that floors are laid
as they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from differential.lynx_leaves import Clauses, Wrong, answer
from reference import ReferencePolicy
from reference.judging import (
    STRICTNESS,
    Judgement,
    default_judgement,
    judge_alone,
    judged_with_default,
    over_all,
)
from reference.logic import Truth, every, negation, some, truth
from reference.policy import RESTRICTING
from reference.reading import World

from adjudge._types import ActionRequest, Obligation, Verdict
from adjudge.policy._model import PolicySource

SEED_STRICTNESS = {**STRICTNESS, Verdict.APPROVE_REQUIRED: 3, Verdict.DRY_RUN: 2}


@dataclass(frozen=True)
class Read:
    """A policy in both forms: as lynx takes it, and as Adjudge read it."""

    written: dict[str, Any]
    source: PolicySource


def holds(
    match: Any, policy: Read, world: World, clauses: Clauses, *, permitting: bool, odd: bool = False
) -> Truth:
    """Judge a match. Without clause 6 the first error ends it, as an exception does."""

    def parts(items: list[Any], turned: bool = False) -> list[Callable[[], Truth]]:
        return [
            lambda item=item: holds(
                item, policy, world, clauses, permitting=permitting, odd=odd is not turned
            )
            for item in items
        ]

    if isinstance(match, str):
        named = policy.written["predicates"][match]
        return holds(named, policy, world, clauses, permitting=permitting, odd=odd)
    found: list[Callable[[], Truth]] = []
    for key, operand in match.items():
        if key == "all_of":
            found.append(lambda items=operand: _combined(parts(items), every, clauses))
        elif key == "any_of":
            found.append(lambda items=operand: _combined(parts(items), some, clauses))
        elif key == "not":
            found.append(lambda item=operand: negation(parts([item], turned=True)[0]()))
        else:
            found.append(
                lambda key=key, operand=operand: _leaf(
                    key, operand, world.request, clauses, permitting=permitting, odd=odd
                )
            )
    return _combined(found, every, clauses)


def _combined(parts: list[Callable[[], Truth]], how: Any, clauses: Clauses) -> Truth:
    if 6 in clauses:
        return how(part() for part in parts)
    settling = Truth.FALSE if how is every else Truth.TRUE
    for part in parts:
        value = part()
        if value in (settling, Truth.ERROR):
            return value
    return negation(settling)


def _leaf(
    key: str, operand: Any, request: ActionRequest, clauses: Clauses, *, permitting: bool, odd: bool
) -> Truth:
    try:
        return truth(answer(key, operand, request, clauses, permitting=permitting, odd=odd))
    except (Wrong, TypeError):
        return Truth.ERROR


def rule_answer(
    rule: dict[str, Any], policy: Read, world: World, clauses: Clauses
) -> tuple[Truth, bool]:
    """Say whether a rule matches, and whether doubtfully (clause 8, for a transform)."""
    verdict = Verdict(rule["decision"])
    as_permitting, as_restricting = (
        holds(rule["match"], policy, world, clauses, permitting=permitting)
        for permitting in (True, False)
    )
    if verdict is Verdict.ALLOW:
        return as_permitting, False
    if verdict in RESTRICTING or 8 not in clauses:
        return as_restricting, False
    if Truth.ERROR in (as_permitting, as_restricting):
        return Truth.ERROR, False
    return as_restricting, as_permitting is not as_restricting


def choose(
    policy: Read, world: World, clauses: Clauses, without: tuple[str, ...] = ()
) -> tuple[Judgement | None, tuple[Judgement, ...]]:
    """Give the judgement of the first rule that matches, or None, and the floors met on the way."""
    floors: list[Judgement] = []
    rules = sorted(policy.written["rules"], key=lambda rule: -rule.get("priority", 0))
    for rule in rules:
        if rule["id"] in without:
            continue
        found, doubtful = rule_answer(rule, policy, world, clauses)
        if found is Truth.ERROR and 15 in clauses:
            floors += _floor(rule)
        if found is not Truth.TRUE:
            continue
        if doubtful:
            rest, below = choose(policy, world, clauses, (*without, rule["id"]))
            other = rest or over_all(below, _default(policy, world))
            if other.verdict not in (Verdict.ALLOW, Verdict.TRANSFORM):
                return other, below
        return over_all(tuple(floors), _decided(rule, world)), tuple(floors)
    return None, tuple(floors)


def _default(policy: Read, world: World) -> Judgement:
    return default_judgement(ReferencePolicy(policy.source), world)


def _stated(rule: dict[str, Any]) -> Judgement:
    verdict = Verdict(rule["decision"])
    asks = verdict is Verdict.APPROVE_REQUIRED
    obligations = tuple(
        Obligation(one)
        if isinstance(one, str)
        else Obligation(one["id"], one.get("phase", "post"), one.get("params", {}))
        for one in rule.get("obligations", ())
    )
    return Judgement(
        verdict,
        (rule["id"],),
        approvers=(tuple(rule.get("approvers", ())),) if asks else (),
        timeout=rule.get("timeout_seconds") if asks else None,
        obligations=obligations,
    )


def _floor(rule: dict[str, Any]) -> list[Judgement]:
    stated = _stated(rule)
    if stated.verdict in RESTRICTING:
        return [stated]
    if stated.verdict is Verdict.TRANSFORM or stated.obligations:
        return [Judgement(Verdict.DENY, (rule["id"],))]
    return []


def _decided(rule: dict[str, Any], world: World) -> Judgement:
    stated = _stated(rule)
    if stated.verdict is not Verdict.TRANSFORM:
        return stated
    args = dict(world.request.args)
    edit = rule["transform"]
    target = edit.get("jsonpath", "$.args").removeprefix("$.args.")
    if "set" in edit:
        args[target] = edit["set"]
    elif "append" in edit:
        args[target] = str(args.get(target, "")) + str(edit["append"])
    else:
        args.pop(target, None)
    return replace(stated, final=args)


def judge(layers: tuple[Read, ...], merge: str | None, world: World, clauses: Clauses) -> Judgement:
    """Judge a request by a policy or by layers, reading only the given clauses."""
    results = [_one(policy, world, clauses) for policy in layers]
    if all(judgement is None for judgement, _ in results):
        defaults = [_default(policy, world) for policy in layers]
        strictest = max(defaults, key=lambda one: _strictness(clauses)[one.verdict])
        return over_all(tuple(floor for _, floors in results for floor in floors), strictest)
    heard = [one for judgement, floors in results for one in _voice(judgement, floors)]
    if merge in (None, "first_layer_wins"):
        return heard[0]
    if merge == "last_layer_wins":
        return heard[-1]
    top = max(_strictness(clauses)[one.verdict] for one in heard)
    winners = [one for one in heard if _strictness(clauses)[one.verdict] == top]
    obligations: list[Obligation] = []
    for winner in winners:
        obligations += [one for one in winner.obligations if one not in obligations]
    return replace(winners[0], obligations=tuple(obligations))


def _strictness(clauses: Clauses) -> dict[Verdict, int]:
    return STRICTNESS if 16 in clauses else SEED_STRICTNESS


def _voice(judgement: Judgement | None, floors: tuple[Judgement, ...]) -> list[Judgement]:
    if judgement is not None:
        return [judgement]
    return [max(floors, key=lambda floor: floor.strictness)] if floors else []


def _one(
    policy: Read, world: World, clauses: Clauses
) -> tuple[Judgement | None, tuple[Judgement, ...]]:
    if 19 not in clauses:
        return choose(policy, world, clauses)
    reference = ReferencePolicy(policy.source)
    alone = judge_alone(reference, world)
    judgement = None if alone.judgement is None else judged_with_default(reference, world, alone)
    return judgement, alone.floors
