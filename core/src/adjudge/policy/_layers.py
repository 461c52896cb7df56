"""Layers: policies that are judged alone and then combined (clause 20).

A layer can only tighten under `strict_overrides_loose`; under the other combiners one layer's word
counts, and still the floors of every layer's errors hold.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge._types import ActionRequest, Decision, ExecutionContext, Verdict
from adjudge._values import canonical_json
from adjudge.policy._compile import CompiledPolicy
from adjudge.policy._faults import describe
from adjudge.policy._judge import (
    Judgement,
    default_decision,
    judge,
    newly_met,
    on_final,
    own_default,
)
from adjudge.policy._python_rules import name_of
from adjudge.policy._transform import CannotApply, apply_edits, compose
from adjudge.policy._verdicts import (
    STRICTNESS,
    approval_of,
    checked,
    combine,
    distinct,
    error_marker,
    in_order,
    marks_of,
    strictest,
    united,
)

__all__ = [
    "Combiner",
    "Layers",
    "decide_layers",
    "first_layer_wins",
    "last_layer_wins",
    "strict_overrides_loose",
]

Layers = tuple[tuple[str, Decision | None], ...]
Combiner = Callable[[Layers], Decision]


def strict_overrides_loose(layers: Layers) -> Decision:
    """Let the strictest layer win; those that agree add their obligations and approver sets.

    As the combiner of a bundle it also composes the layers' transforms and has the result judged by
    every layer. Called by itself it sees decisions only, so two different rewrites deny. Raises
    `ValueError` where every layer abstains.
    """
    decided = _decided(layers)
    rewrites = {canonical_json(each.effective_args): each for each in decided if _rewrites(each)}
    if len(rewrites) > 1 and strictest(each.verdict for each in decided) is not Verdict.DENY:
        return Decision(
            Verdict.DENY,
            "layers rewrite the arguments in different ways",
            in_order(name for each in rewrites.values() for name in each.matched_rules),
        )
    final = next((each.effective_args for each in rewrites.values()), None)
    return _strictest_of(decided, final)


def first_layer_wins(layers: Layers) -> Decision:
    """Let the first layer that decides win. Raises `ValueError` where every layer abstains."""
    return _decided(layers)[0]


def last_layer_wins(layers: Layers) -> Decision:
    """Let the last layer that decides win. Raises `ValueError` where every layer abstains."""
    return _decided(layers)[-1]


def _decided(layers: Layers) -> list[Decision]:
    decided = [decision for _, decision in layers if decision is not None]
    if not decided:
        raise ValueError("Every layer abstains, so there is nothing to combine.")
    return decided


def _rewrites(decision: Decision) -> bool:
    return decision.effective_args is not None


def _strictest_of(decisions: Sequence[Decision], final: Mapping[str, Any] | None) -> Decision:
    """Join the decisions of several layers (clause 20)."""
    verdict = strictest(each.verdict for each in decisions)
    givers = [each for each in decisions if each.verdict is verdict]
    if len(decisions) == 1 and decisions[0].effective_args is final:
        return decisions[0]
    denied = verdict is Verdict.DENY
    heard = givers if denied else [each for each in decisions if each in givers or _rewrites(each)]
    marks = [mark for each in decisions for mark in marks_of(each)]
    approver_sets, timeout = approval_of(verdict, decisions)
    return Decision(
        verdict=verdict,
        reason=distinct(each.reason for each in givers),
        matched_rules=in_order([*marks, *(name for each in heard for name in each.matched_rules)]),
        approver_sets=approver_sets,
        effective_args=None if denied else final,
        timeout_seconds=timeout,
        obligations=united(givers if denied or verdict is Verdict.DRY_RUN else decisions),
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's judgement of one request, as that layer sees the request."""

    policy: CompiledPolicy
    request: ActionRequest
    judgement: Judgement


def decide_layers(
    policies: Sequence[CompiledPolicy],
    merge: Combiner,
    request: ActionRequest,
    context: ExecutionContext | None,
) -> Decision:
    """Decide by several layers."""
    layers = [
        _Layer(policy, seen, judge(policy, seen))
        for policy, seen in ((policy, policy.prepared(request, context)) for policy in policies)
    ]
    if all(layer.judgement.decision is None for layer in layers):
        return _by_default(layers)
    if merge is strict_overrides_loose:
        return _strictly(layers)
    return _by_combiner(layers, merge)


def _by_default(layers: Sequence[_Layer]) -> Decision:
    defaults = [default_decision(layer.policy, layer.request) for layer in layers]
    base = max(defaults, key=lambda decision: STRICTNESS[decision.verdict])
    return combine(base, [floor for layer in layers for floor in _floors(layer, layer.judgement)])


def _floors(layer: _Layer, judgement: Judgement) -> list[Decision]:
    """Give the floors of a layer; if it abstains and a restriction erred, its default is one."""
    floors = list(judgement.floors)
    if judgement.decision is None and judgement.default_holds:
        floors.append(own_default(layer.policy, layer.request))
    return floors


def _strictly(layers: Sequence[_Layer]) -> Decision:
    voices = [voice for layer in layers for voice in _voices(layer)]
    rewrites = [
        (layer.policy.layer, layer.judgement.rewrite.edits)
        for layer in layers
        if layer.judgement.rewrite is not None
    ]
    if not rewrites or any(voice.verdict is Verdict.DENY for voice in voices):
        return _strictest_of(voices, None)
    try:
        final = apply_edits(layers[0].request.args, compose(rewrites))
    except CannotApply as error:
        writers = [voice for voice in voices if _rewrites(voice)]
        refusal = Decision(
            Verdict.DENY,
            f"the layers' rewrites cannot be joined: {error}",
            tuple(name for voice in writers for name in voice.matched_rules),
        )
        return _strictest_of([*voices, refusal], None)
    return _strictest_of([v for layer in layers for v in _voices_on(layer, final)], final)


def _voices(layer: _Layer) -> list[Decision]:
    decision = layer.judgement.decision
    return _floors(layer, layer.judgement) if decision is None else [decision]


def _voices_on(layer: _Layer, final: Mapping[str, Any]) -> list[Decision]:
    """Give what a layer says once the arguments are what all layers make of them."""
    before, rewrite = layer.judgement.decision, layer.judgement.rewrite
    if rewrite is not None:
        assert before is not None
        return [combine(before, newly_met(layer.policy, layer.request, rewrite, final))]
    judgement = judge(layer.policy, on_final(layer.request, final))
    after = judgement.decision
    floors = _floors(layer, judgement)
    if after is not None and judgement.rewrite is not None:
        after = Decision(
            Verdict.DENY,
            f"the rewritten arguments meet a transform of layer {layer.policy.layer!r}",
            after.matched_rules,
        )
    if before is None:
        return [*_voices(layer), *(floors if after is None else [after])]
    if after is not None:
        return [_stricter(before, after)]
    if before.verdict is Verdict.ALLOW:
        floors.append(own_default(layer.policy, layer.request))
    return [combine(before, floors)]


def _stricter(before: Decision, after: Decision) -> Decision:
    """Give the stricter of two judgements of one layer, both where they agree, errors marked."""
    if before.verdict is after.verdict:
        return combine(before, [after])
    loose, strict = sorted((before, after), key=lambda each: STRICTNESS[each.verdict])
    return replace(strict, matched_rules=in_order([*marks_of(loose), *strict.matched_rules]))


def _by_combiner(layers: Sequence[_Layer], merge: Combiner) -> Decision:
    offered = tuple((layer.policy.layer, layer.judgement.decision) for layer in layers)
    try:
        answer: Any = merge(offered)
        chosen = _accepted(answer, offered)
    except Exception as error:
        name = name_of(merge)
        chosen = Decision(
            Verdict.DENY,
            f"combiner {name!r} failed: {describe(error)}",
            (error_marker("", name, type(error).__name__),),
        )
    floors = [
        floor
        for layer in layers
        if layer.judgement.decision is not chosen
        for floor in _floors(layer, layer.judgement)
    ]
    if merge in (first_layer_wins, last_layer_wins):
        floors = [replace(floor, obligations=()) for floor in floors]
    return combine(chosen, floors)


def _accepted(answer: Any, offered: Iterable[tuple[str, Decision | None]]) -> Decision:
    """Check what a combiner returned; its arguments must be ones that a layer has judged."""
    decided = [decision for _, decision in offered if decision is not None]
    chosen: Decision
    if any(answer is decision for decision in decided):
        chosen = answer
        return chosen
    if inspect.iscoroutine(answer):
        answer.close()
    if not isinstance(answer, Decision):
        raise TypeError(f"it returned a {type(answer).__name__}, expected a Decision")
    chosen = checked(answer)
    judged = [canonical_json(each.effective_args) for each in decided if _rewrites(each)]
    if _rewrites(chosen) and canonical_json(chosen.effective_args) not in judged:
        raise ValueError("it returned arguments that no layer has judged")
    return chosen
