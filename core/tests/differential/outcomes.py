"""One question put to lynx and to Adjudge, and their answers in one shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lynx.core.types as lynx_types
import lynx.policy as lynx_policy

from adjudge._types import ActionRequest, Decision, ToolMetadata
from adjudge._values import canonical_json
from adjudge.policy import (
    PolicyLayer,
    compile_policy,
    evaluate,
    first_layer_wins,
    last_layer_wins,
    strict_overrides_loose,
)

COMBINERS = {
    "strict_overrides_loose": (strict_overrides_loose, lynx_policy.strict_overrides_loose),
    "first_layer_wins": (first_layer_wins, lynx_policy.first_layer_wins),
    "last_layer_wins": (last_layer_wins, lynx_policy.last_layer_wins),
}


@dataclass(frozen=True)
class SeedPolicy:
    """A policy in lynx's language: one dict, or one for each layer."""

    layers: tuple[dict[str, Any], ...]
    merge: str | None = None

    def ours(self) -> Any:
        """Compile it with Adjudge."""
        if self.merge is None:
            return compile_policy(self.layers[0])
        named = [PolicyLayer(f"l{number}", layer) for number, layer in enumerate(self.layers)]
        return compile_policy(named, merge=COMBINERS[self.merge][0])

    def theirs(self) -> Any:
        """Compile it with lynx."""
        if self.merge is None:
            return lynx_policy.compile_policy(self.layers[0])
        named = [
            lynx_policy.PolicyLayer(f"l{number}", layer) for number, layer in enumerate(self.layers)
        ]
        return lynx_policy.compile_policy(named, merge=COMBINERS[self.merge][1])


@dataclass(frozen=True)
class Outcome:
    """What enforcement would go by: verdict, arguments, who must agree by when, what is due."""

    verdict: str
    args: str
    approvers: frozenset[str]
    timeout: float | None
    obligations: frozenset[str]


def outcome_of(decision: Any, request: ActionRequest) -> Outcome:
    """Give an outcome from a decision of either; what the verdict does not use is left out."""
    verdict = str(decision.verdict)
    asks = verdict == "approve_required"
    final = decision.transform_args
    obligations = frozenset(
        canonical_json([one.id, one.phase, dict(one.params)]) for one in decision.obligations
    )
    return Outcome(
        verdict,
        canonical_json(request.args if final is None or verdict == "deny" else final),
        frozenset(decision.approvers) if asks else frozenset(),
        decision.timeout_seconds if asks else None,
        obligations,
    )


def our_outcome(bundle: Any, request: ActionRequest) -> Outcome:
    """Ask Adjudge."""
    decision: Decision = evaluate(bundle, request)
    return outcome_of(decision, request)


def their_outcome(bundle: Any, request: ActionRequest) -> Outcome:
    """Ask lynx."""
    return outcome_of(lynx_policy.evaluate(bundle, *lynx_request(request)), request)


def lynx_request(request: ActionRequest) -> tuple[Any, Any]:
    """Give the same request in lynx's types."""
    declared = request.declared or ToolMetadata()
    context = request.context
    theirs = lynx_types.ExecutionContext(
        principal=lynx_types.Principal(
            context.principal.kind, context.principal.id, context.principal.name
        ),
        environment=context.environment or "",
        workspace=context.workspace,
        correlation_id=context.correlation_id,
        step_seq=context.step_seq,
        timestamp=context.timestamp,
        extra=context.extra,
    )
    metadata = lynx_types.ToolMetadata(
        cost=declared.cost,
        reversible=declared.reversible,
        scope=declared.scope,
        blast_radius_hint=declared.blast_radius_hint,
        has_shadow=declared.has_shadow,
        isolation=declared.isolation,
    )
    return lynx_types.ActionRequest(request.tool, request.args, metadata, theirs), theirs
