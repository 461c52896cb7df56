"""Layers judged alone and then combined (clause 20)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adjudge._types import Decision, Verdict
from reference.edits import CannotApply, in_conflict, rewritten
from reference.judging import (
    Alone,
    Judgement,
    default_judgement,
    judge_alone,
    marker,
    newly_met,
    over,
    over_all,
    shortest,
)
from reference.policy import LayeredReference, ReferencePolicy
from reference.reading import World

Named = list[tuple[str, ReferencePolicy, Alone]]


def judge_layers(policy: LayeredReference, world: World) -> tuple[Judgement, tuple[str, ...]]:
    """Give the combined judgement, and the errored rules with their layers."""
    alone: Named = [(name, layer, _tagged(name, layer, world)) for name, layer in policy.layers]
    errors = tuple(rule for _, _, one in alone for rule in one.errors)
    floors = tuple(floor for _, _, one in alone for floor in one.floors)
    if all(one.judgement is None for _, _, one in alone):
        # Defaults, the strictest of all layers', count otherwise only if all abstain.
        defaults = [default_judgement(layer, world) for _, layer, _ in alone]
        strictest = max(defaults, key=lambda one: one.strictness)
        return over_all(floors, strictest), errors
    if policy.merge == "strict_overrides_loose":
        return _strictest(alone, world), errors
    decided = [one.judgement for _, _, one in alone if one.judgement is not None]
    bare = tuple(replace(floor, obligations=()) for floor in floors)
    if policy.merge == "first_layer_wins":
        return over_all(bare, decided[0]), errors
    if policy.merge == "last_layer_wins":
        return over_all(bare, decided[-1]), errors
    return over_all(floors, _custom(policy.merge, alone)), errors


def _tagged(name: str, layer: ReferencePolicy, world: World) -> Alone:
    one = judge_alone(layer, world)
    floors = list(one.floors)
    if one.judgement is None and one.restricting_erred:
        floors.append(default_judgement(layer, world))
    return replace(
        one,
        judgement=None if one.judgement is None else _named(name, one.judgement),
        floors=tuple(_named(name, floor) for floor in floors),
        errors=tuple(f"{name}:{rule}" for rule in one.errors),
    )


def _named(name: str, judgement: Judgement) -> Judgement:
    return replace(judgement, rules=tuple(f"{name}:{rule}" for rule in judgement.rules))


def _custom(merge: Any, alone: Named) -> Judgement:
    offered = tuple(
        (name, None if one.judgement is None else public(one.judgement, one.errors))
        for name, _, one in alone
    )
    failed = Judgement(Verdict.DENY, (marker(merge.__name__),))
    try:
        said = merge(offered)
    except Exception:
        return failed
    if not isinstance(said, Decision):
        return failed
    return Judgement(
        said.verdict,
        said.matched_rules,
        said.approver_sets,
        said.timeout_seconds,
        said.obligations,
        said.effective_args,
    )


def public(judgement: Judgement, errors: tuple[str, ...]) -> Decision:
    """Give a judgement as the Decision that callers see; the marks of errored rules lead."""
    asks = judgement.verdict is Verdict.APPROVE_REQUIRED
    matched = [*errors, *(rule for rule in judgement.rules if rule not in errors)]
    return Decision(
        judgement.verdict,
        matched_rules=tuple(sorted(matched, key=lambda rule: "<rule_error:" not in rule)),
        approver_sets=judgement.approvers if asks else (),
        effective_args=None if judgement.verdict is Verdict.DENY else judgement.final,
        timeout_seconds=judgement.timeout if asks else None,
        obligations=judgement.obligations,
    )


def _strictest(alone: Named, world: World) -> Judgement:
    """The strictest wins, on the arguments that the transforms of all layers compose to."""
    if any(voice.verdict is Verdict.DENY for voice in _voices(alone)):
        return _combined(_voices(alone), None)  # what a layer denies has no result to judge
    try:
        final = _composed(alone, world)
    except CannotApply:
        refusal = Judgement(Verdict.DENY)
        return _combined([refusal, *_voices(alone)], None)
    if final is None:
        return _combined(_voices(alone), None)
    voices = []
    for name, layer, one in alone:
        voices += _on_result(name, layer, one, world, final)
    return _combined(voices, final)


def _voices(alone: Named) -> list[Judgement]:
    voices: list[Judgement] = []
    for _, _, one in alone:
        voices += list(one.floors) if one.judgement is None else [one.judgement]
    return voices


def _composed(alone: Named, world: World) -> Any:
    """Compose the transforms in layer order, equal ones once; None where there is none."""
    edits: list[Any] = []
    for _, _, one in alone:
        if one.applied is None or one.answer is None:
            continue
        mine = [(edit.kind, edit.path, edit.value) for edit in one.answer.edits]
        if any(mine == [(e.kind, e.path, e.value) for e in theirs] for theirs in edits):
            continue
        if any(in_conflict(one.answer.edits, theirs) for theirs in edits):
            raise CannotApply
        edits.append(one.answer.edits)
    if not edits:
        return None
    return rewritten([edit for several in edits for edit in several], world)


def _on_result(
    name: str, layer: ReferencePolicy, one: Alone, world: World, final: Any
) -> list[Judgement]:
    """One layer's voices once the result is known."""
    if one.applied is not None and one.judgement is not None:
        # Where its own transform matched: as in clause 19.
        met = newly_met(layer, world, one.applied, final, one.without)
        return [over_all(tuple(_named(name, each) for each in met), one.judgement)]
    # Elsewhere afresh, the stricter of its judgements on the original and on the final arguments.
    result = replace(world, request=replace(world.request, args=final))
    again = _tagged(name, layer, result)
    if again.applied is not None:
        return [Judgement(Verdict.DENY, (f"{name}:{again.applied.id}",))]
    if one.judgement is None:
        return [*one.floors, *([again.judgement] if again.judgement else again.floors)]
    if again.judgement is not None:
        return [_stricter(one.judgement, again.judgement)]
    voice = over_all(again.floors, one.judgement)
    if one.judgement.verdict is Verdict.ALLOW:
        # Its default, if it allowed the original and no rule matches the final.
        voice = over(_named(name, default_judgement(layer, result)), voice)
    return [voice]


def _stricter(one: Judgement, other: Judgement) -> Judgement:
    if one.strictness == other.strictness:
        return over(other, one)
    return max(one, other, key=lambda judgement: judgement.strictness)


def _combined(voices: list[Judgement], final: Any) -> Judgement:
    verdict = max(voices, key=lambda one: one.strictness).verdict
    giving = [one for one in voices if one.verdict is verdict]
    # A transform that applies under an ask or a preview is named as well.
    runs = verdict is not Verdict.DENY and final is not None
    naming = [one for one in voices if one in giving or (runs and one.final is not None)]
    counted = giving if verdict in (Verdict.DENY, Verdict.DRY_RUN) else voices
    return Judgement(
        verdict,
        _flat(one.rules for one in naming),
        _flat(one.approvers for one in giving),
        shortest(*(one.timeout for one in giving)),
        _flat(one.obligations for one in counted),
        final,
    )


def _flat(several: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    for some in several:
        found += [one for one in some if one not in found]
    return tuple(found)
