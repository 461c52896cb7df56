"""The door of the reference evaluator."""

from __future__ import annotations

from dataclasses import replace

from adjudge._types import ActionRequest, Decision, ExecutionContext
from reference.judging import judge_alone, judged_with_default
from reference.layering import judge_layers, public
from reference.policy import LayeredReference, ReferencePolicy
from reference.reading import World


def reference_evaluate(
    policy: ReferencePolicy | LayeredReference,
    request: ActionRequest,
    context: ExecutionContext | None = None,
) -> Decision:
    """Decide one request; the reason is left empty, and the kinds of errors are not named."""
    if context is not None:
        # Clause 18: a context given to `evaluate` replaces the request's everywhere.
        request = replace(request, context=context)
    given = frozenset(request.args) if request.given is None else request.given
    world = World(request, given)
    if isinstance(policy, LayeredReference):
        judgement, errors = judge_layers(policy, world)
        return public(judgement, errors)
    alone = judge_alone(policy, world)
    return public(judged_with_default(policy, world, alone), alone.errors)
