"""How often the properties are tried, and what of a decision two evaluators must agree on."""

from __future__ import annotations

import os
from typing import Any

from adjudge._types import ActionRequest, Decision, Verdict
from adjudge._values import canonical_json

# `deep` looks for what nobody has thought of; `brief` is for a further Python, or for core without
# its extras, where the run that has them all has looked at whether the property holds.
_FACTORS = {"deep": 10.0, "brief": 0.2}


def examples(usual: int) -> int:
    """Give the number of examples to look at: as ADJUDGE_PROFILE says, more or fewer than usual."""
    return max(1, int(usual * _FACTORS.get(os.environ.get("ADJUDGE_PROFILE", ""), 1)))


REQUESTS = 10
SINGLE = examples(700)
LAYERED = examples(350)
LAWS = examples(150)

STRICTNESS = {
    Verdict.ALLOW: 0,
    Verdict.TRANSFORM: 1,
    Verdict.APPROVE_REQUIRED: 2,
    Verdict.DRY_RUN: 3,
    Verdict.DENY: 4,
}


def strictness(decision: Decision) -> int:
    """Rank a decision by clause 16."""
    return STRICTNESS[decision.verdict]


def view(decision: Decision, request: ActionRequest) -> dict[str, Any]:
    """Give what a decision comes to, whatever the order in which its parts were found."""
    final = decision.effective_args
    return {
        "verdict": str(decision.verdict),
        "args": canonical_json(request.args if final is None else final),
        "approver_sets": sorted(map(list, decision.approver_sets)),
        "timeout_seconds": decision.timeout_seconds,
        "obligations": sorted(
            canonical_json([one.id, one.phase, one.params, one.on]) for one in decision.obligations
        ),
    }


def rules_of(decision: Decision) -> set[str]:
    """Give the rules and marks that a decision names, without the kinds of errors."""
    return set(map(_without_kind, decision.matched_rules))


def _without_kind(marker: str) -> str:
    """Leave out of `<rule_error:RULE:Kind>` what the reference evaluator does not name."""
    if "<rule_error:" not in marker:
        return marker
    return marker.rpartition(":")[0]
