"""Policies on which readings of the clauses can part, each with its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from properties.policies import Layers, Policy
from properties.rules import cap_amount
from properties.trying import view
from reference import reference_evaluate

from adjudge._types import ActionRequest, Decision, ExecutionContext, Principal, ToolMetadata
from adjudge._values import freeze
from adjudge.policy import compile_policy, evaluate

CALL = ActionRequest(
    "search",
    freeze({"limit": 500, "tags": []}),
    ToolMetadata(),
    ExecutionContext(Principal("user", "u1"), "prod"),
)
CAP = {
    "id": "cap",
    "match": {"args.limit.gt": 100},
    "decision": "transform",
    "transform": {"path": "args.limit", "set": 100},
}
NOTHING_ELSE = {"id": "nothing-else", "match": "always", "decision": "deny"}
ERRING = {"id": "erring", "match": {"args.limit.matches": "x"}}


def decide(policy: Policy | Layers, call: ActionRequest = CALL) -> Decision:
    """Decide by both evaluators, which must agree."""
    found = evaluate(policy.compiled(), call)
    assert view(reference_evaluate(policy.reference(), call), call) == view(found, call)
    return found


def rules(*written: dict[str, Any], **more: Any) -> Policy:
    """Give a policy of these rules."""
    return Policy({"version": 1, "rules": list(written), **more})


def test_a_denial_of_the_rest_does_not_meet_what_an_allow_still_covers() -> None:
    """Clause 19: a rule that another still shadows is not newly met, the transform gone or not."""
    search = {"id": "search", "match": {"tool": "search"}, "decision": "allow"}

    assert "transform" == decide(rules(CAP, search, NOTHING_ELSE)).verdict


def test_a_denial_of_the_rest_meets_what_only_the_transform_covered() -> None:
    """Clause 19: once the only rule that shadowed it no longer matches, the denial counts."""
    assert "deny" == decide(rules(CAP, NOTHING_ELSE)).verdict


def test_a_doubtful_transform_has_no_part_in_the_decision_without_it() -> None:
    """Clause 8: where the decision without it stands, it is not counted as newly met either."""
    doubtful = {**CAP, "id": "doubtful", "match": {"not": {"args.tier.in": ["gold"]}}}
    preview = {"id": "preview", "match": {"args.limit.eq": 100}, "decision": "dry_run"}
    decision = decide(rules(doubtful, CAP, preview))

    assert "dry_run" == decision.verdict
    assert decision.effective_args == {"limit": 100, "tags": []}


def test_a_doubtful_transform_that_the_result_makes_certain_denies() -> None:
    """Clause 19: left out as long as it is doubtful, it counts once another's result meets it."""
    doubtful = {**CAP, "id": "doubtful", "match": {"not": {"args.tier.in": ["gold"]}}}
    demoting = {**CAP, "transform": {"path": "args.tier", "set": "basic"}}

    assert "deny" == decide(rules(doubtful, demoting)).verdict


def test_a_doubtful_transform_below_denies_another_ones_result() -> None:
    """Clause 19: a transform that was not plainly true and is met by the result denies."""
    doubtful = {**CAP, "id": "doubtful", "match": {"not": {"args.tier.in": ["gold"]}}}

    assert "deny" == decide(rules(CAP, doubtful)).verdict


def test_a_python_transform_that_matched_all_along_is_not_newly_met() -> None:
    """Clause 19: shadowed on the original and on the final arguments, it changes nothing."""
    mark = {"id": "mark", "priority": 10, "match": "always", "decision": "transform"}
    rule = {**mark, "transform": {"path": "args.mode", "set": "b"}}
    policy = replace(rules(rule), coded=((cap_amount, 0),))
    call = replace(CALL, args=freeze({"amount": 100}))

    assert {"amount": 100, "mode": "b"} == decide(policy, call).effective_args


def test_an_ask_by_default_is_one_ask() -> None:
    """Clause 17: it has one approver set, of whoever the handler asks."""
    decision = decide(rules(defaults={"on_no_match": "approve_required"}))

    assert ((),) == decision.approver_sets


def test_asks_of_floors_add_up() -> None:
    """Clause 15: those of an errored ask and of a matched one must agree, in the shorter time."""
    floor = {**ERRING, "decision": "approve_required", "approvers": ["a"], "timeout_seconds": 9}
    ask = {
        "id": "ask",
        "match": "always",
        "decision": "approve_required",
        "approvers": ["b"],
        "timeout_seconds": 60,
    }
    decision = decide(rules(floor, ask))

    assert {("a",), ("b",)} == set(decision.approver_sets)
    assert 9 == decision.timeout_seconds


def test_a_floor_holds_on_the_final_arguments() -> None:
    """Clause 15: an ask over a matched transform is about what the transform made."""
    decision = decide(rules({**ERRING, "decision": "approve_required"}, CAP))

    assert "approve_required" == decision.verdict
    assert decision.effective_args == {"limit": 100, "tags": []}


def test_a_denial_carries_its_own_obligations_alone() -> None:
    """Clause 19: over a transform with obligations, a denial newly met keeps only its own."""
    met = {
        "id": "met",
        "match": {"args.limit.eq": 100},
        "decision": "deny",
        "obligations": ["tell"],
    }
    decision = decide(rules({**CAP, "obligations": ["log"]}, met))

    assert ["tell"] == [one.id for one in decision.obligations]


def test_all_of_no_members_is_an_error() -> None:
    """Operators: contains_all takes a list that is not empty, also where a ref finds it."""
    match = {"args.limit.exists": True, "context.extra.seen.contains_all": {"ref": "args.tags"}}
    context = replace(CALL.context, extra=freeze({"seen": ["a"]}))
    decision = decide(
        rules({"id": "r", "match": match, "decision": "allow"}), replace(CALL, context=context)
    )

    assert "deny" == decision.verdict
    assert decision.matched_rules[0].startswith("<rule_error:r:")


@pytest.mark.parametrize("path", ["declared.has_shadow", "declared.reversible", "given.limit"])
def test_absence_can_be_asked_of_what_is_true_or_false(path: str) -> None:
    """Clause 8: equality with null compiles where only a bool could stand."""
    assert compile_policy({"rules": [{"id": "r", "match": {path: None}, "decision": "deny"}]})


def test_a_layer_that_abstains_is_judged_on_what_another_rewrote() -> None:
    """Clause 20: it abstains on the original and denies what the other's transform made of it."""
    met = {"id": "met", "match": {"args.limit.eq": 100}, "decision": "deny"}

    assert "deny" == decide(Layers((rules(CAP), rules(met)))).verdict


def test_a_layer_whose_allow_no_longer_holds_falls_to_its_default() -> None:
    """Clause 20: it allowed the original, no rule matches the final, so its default counts."""
    large = {"id": "large", "match": {"args.limit.gt": 100}, "decision": "allow"}

    assert "deny" == decide(Layers((rules(CAP), rules(large)))).verdict


def test_two_layers_that_write_one_path_deny() -> None:
    """Clause 20: unless they write the same."""
    other = {**CAP, "transform": {"path": "args.limit", "set": 50}}

    assert "deny" == decide(Layers((rules(CAP), rules(other)))).verdict
    assert "transform" == decide(Layers((rules(CAP), rules(CAP)))).verdict


@pytest.mark.parametrize("merge", ["first_layer_wins", "last_layer_wins", "loosest"])
def test_floors_hold_under_every_combiner(merge: str) -> None:
    """Clause 20: an errored denial in one layer denies, whichever layer the combiner prefers."""
    allowing = rules({"id": "a", "match": "always", "decision": "allow"})
    erring = rules({**ERRING, "decision": "deny"})

    assert "deny" == decide(Layers((allowing, erring, allowing), merge)).verdict


@pytest.mark.parametrize("merge", ["failing", "answering_nothing"])
def test_a_combiner_that_fails_denies_and_drops_no_floor(merge: str) -> None:
    """Clause 20: the denial carries what the floor of an errored denial carries."""
    allowing = rules({"id": "a", "match": "always", "decision": "allow"})
    erring = rules({**ERRING, "decision": "deny", "obligations": ["tell"]})
    decision = decide(Layers((allowing, erring), merge))

    assert ["tell"] == [one.id for one in decision.obligations]


def test_an_errored_denial_brings_the_layers_default_with_it() -> None:
    """Clause 20: a layer whose restricting rule erred counts its default as a floor besides."""
    erring = rules({**ERRING, "decision": "approve_required"}, defaults={"on_no_match": "deny"})
    allowing = rules({"id": "a", "match": "always", "decision": "allow"})

    assert "deny" == decide(Layers((erring, allowing))).verdict


def test_an_operand_that_is_not_there_is_an_error_in_any_namespace() -> None:
    """Clause 9: the operand is resolved first, so clause 13's namespace does not answer for it."""
    match = {"tool.in": {"ref": "args.tools"}}
    decision = decide(
        rules({"id": "r", "match": match, "decision": "allow", "obligations": ["log"]}),
        replace(CALL, namespace="mcp"),
    )

    assert "deny" == decision.verdict
    assert "<rule_error:r:AbsentReference>" == decision.matched_rules[0]


def test_a_doubtful_transform_has_no_part_in_what_its_layer_says_of_the_result() -> None:
    """Clauses 8 and 20: a layer's decision without it is without it on the final arguments too."""
    doubtful = {**CAP, "id": "doubtful", "match": {"not": {"args.tier.in": ["gold"]}}}
    preview = {"id": "preview", "match": {"args.limit.eq": 100}, "decision": "dry_run"}
    other = rules({"id": "other", "match": {"tool": "other"}, "decision": "deny"})
    decision = decide(Layers((rules(doubtful, CAP, preview), other)))

    assert "dry_run" == decision.verdict
    assert "l0:doubtful" not in decision.matched_rules
