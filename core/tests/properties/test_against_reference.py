"""The compiled policy decides as the reference evaluator does, over generated policies and requests."""

from __future__ import annotations

from adjudge._types import ActionRequest, Decision
from adjudge.policy import evaluate
from hypothesis import event, given, settings
from hypothesis import strategies as st
from properties.calls import requests
from properties.policies import Layers, Policy, layered, policies
from properties.trying import LAYERED, REQUESTS, SINGLE, view
from reference import reference_evaluate

several = st.lists(requests(), min_size=REQUESTS, max_size=REQUESTS)


@settings(max_examples=SINGLE)
@given(policies(), several)
def test_one_policy_decides_as_the_reference_does(
    policy: Policy, calls: list[ActionRequest]
) -> None:
    """Clauses 1 to 19: verdict, arguments, approvers, time-out, obligations and rules are the reference's."""
    compiled, reference = policy.compiled(), policy.reference()
    for call in calls:
        expected = reference_evaluate(reference, call)
        found = evaluate(compiled, call)
        event(str(expected.verdict))

        assert view(expected, call) == view(found, call)
        assert_names_what_erred(expected, found)


@settings(max_examples=LAYERED)
@given(layered(), several)
def test_layers_decide_as_the_reference_does(layers: Layers, calls: list[ActionRequest]) -> None:
    """Clause 20: so it is for layers, under every combiner."""
    compiled, reference = layers.compiled(), layers.reference()
    for call in calls:
        expected = reference_evaluate(reference, call)
        found = evaluate(compiled, call)
        event(str(expected.verdict))

        assert view(expected, call) == view(found, call)
        assert_names_what_erred(expected, found)


def assert_names_what_erred(expected: Decision, found: Decision) -> None:
    """Clause 15: the markers of errored rules lead, and where such a rule alone decides the reason names it."""
    markers = ["<rule_error:" in marker for marker in found.matched_rules]
    assert sorted(markers, reverse=True) == markers
    deciding = [rule for rule in expected.matched_rules if "<rule_error:" not in rule]
    erred = {
        marker.replace("<rule_error:", "").rpartition(":")[0]
        for marker in expected.matched_rules
        if "<rule_error:" in marker
    }
    if deciding and set(deciding) <= erred:
        assert any(rule.rpartition(":")[2] in found.reason for rule in deciding)
