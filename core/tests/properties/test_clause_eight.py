"""The table of clause 8, row by row, and what it says of transforms, in both evaluators."""

from __future__ import annotations

from typing import Any

import pytest
from properties.policies import Policy
from reference import reference_evaluate

from adjudge._types import ActionRequest, Decision, ExecutionContext, Principal, ToolMetadata
from adjudge._values import EMPTY
from adjudge.policy import evaluate

CALL = ActionRequest(
    "pay", EMPTY, ToolMetadata(), ExecutionContext(Principal("user", "u1"), "prod")
)
ABSENT: list[tuple[str, dict[str, Any], str]] = [
    ("deny", {"args.x.gt": 5}, "no match"),
    ("allow", {"args.x.lt": 5}, "no match"),
    ("allow", {"not": {"args.x.in": ["a"]}}, "no match"),
    ("deny", {"not": {"args.x.in": ["a"]}}, "match"),
    ("deny", {"not": {"args.x.ne": "a"}}, "no match"),
    # The same by the short forms, and the two tests that answer absence.
    ("allow", {"args.x.not_in": ["a"]}, "no match"),
    ("deny", {"args.x.not_in": ["a"]}, "match"),
    ("allow", {"args.x.not_between": [1, 5]}, "no match"),
    ("deny", {"args.x.not_between": [1, 5]}, "match"),
    ("deny", {"args.x.exists": False}, "match"),
    ("allow", {"args.x.eq": None}, "match"),
    ("allow", {"args.x.ne": None}, "no match"),
    ("deny", {"args.x": {"size": {"ne": 3}}}, "no match"),
    ("allow", {"not": {"args.x": {"each": {".": {"gt": 1}}}}}, "no match"),
]


def both(source: dict[str, Any], call: ActionRequest = CALL) -> list[Decision]:
    """Ask the compiled policy and the reference evaluator."""
    policy = Policy({"version": 1, **source})
    return [evaluate(policy.compiled(), call), reference_evaluate(policy.reference(), call)]


@pytest.mark.parametrize(("verdict", "match", "outcome"), ABSENT)
def test_what_a_rule_makes_of_an_absent_argument(
    verdict: str, match: dict[str, Any], outcome: str
) -> None:
    """Clause 8: absence matches a restricting rule below a negation, and never a permitting one."""
    otherwise = "deny" if verdict == "allow" else "allow"
    source = {
        "defaults": {"on_no_match": otherwise},
        "rules": [{"id": "r", "match": match, "decision": verdict}],
    }
    expected = verdict if outcome == "match" else otherwise

    assert [expected, expected] == [str(decision.verdict) for decision in both(source)]


DOUBTFUL = {
    "id": "cap",
    "match": {"not": {"args.tier.in": ["gold"]}},
    "decision": "transform",
    "transform": {"path": "args.limit", "set": 10},
}


@pytest.mark.parametrize(
    ("default", "verdict", "args"),
    [
        ("allow", "transform", {"limit": 10}),
        ("approve_required", "approve_required", None),
        ("dry_run", "dry_run", None),
        ("deny", "deny", None),
    ],
)
def test_a_doubtful_transform_applies_only_where_the_call_would_run(
    default: str, verdict: str, args: dict[str, Any] | None
) -> None:
    """Clause 8: what matches through absence replaces an allow, and leaves a denial alone."""
    for decision in both({"defaults": {"on_no_match": default}, "rules": [DOUBTFUL]}):
        assert verdict == decision.verdict
        assert args == decision.effective_args


def test_a_transform_that_errs_in_one_reading_denies() -> None:
    """Clause 8: an error in either reading of a transform is one, and its floor is a denial."""
    call = ActionRequest("pay", {"tier": 7}, CALL.declared, CALL.context)
    decisions = both({"defaults": {"on_no_match": "allow"}, "rules": [DOUBTFUL]}, call)

    assert ["deny", "deny"] == [str(decision.verdict) for decision in decisions]
