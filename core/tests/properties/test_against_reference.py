"""The compiled policy decides as the reference evaluator does, whatever is generated."""

from __future__ import annotations

from hypothesis import event, given, note, settings
from hypothesis import strategies as st
from properties.calls import requests
from properties.policies import Layers, Policy, layered, policies
from properties.trying import LAYERED, REQUESTS, SINGLE, rules_of, view
from reference import reference_evaluate

from adjudge._types import ActionRequest, Decision
from adjudge.policy import evaluate

several = st.lists(requests(), min_size=REQUESTS, max_size=REQUESTS)


@settings(max_examples=SINGLE)
@given(policies(), several)
def test_one_policy_decides_as_the_reference_does(
    policy: Policy, calls: list[ActionRequest]
) -> None:
    """Clauses 1 to 19: all that enforcement goes by, and the rules named, are the reference's."""
    compiled, reference = policy.compiled(), policy.reference()
    for call in calls:
        expected = reference_evaluate(reference, call)
        found = evaluate(compiled, call)
        event(str(expected.verdict))
        note(f"{call}")

        assert view(expected, call) == view(found, call)
        assert_names_its_rules(expected, found)


@settings(max_examples=LAYERED)
@given(layered(), several)
def test_layers_decide_as_the_reference_does(layers: Layers, calls: list[ActionRequest]) -> None:
    """Clause 20: so it is for layers, under every combiner."""
    compiled, reference = layers.compiled(), layers.reference()
    for call in calls:
        expected = reference_evaluate(reference, call)
        found = evaluate(compiled, call)
        event(str(expected.verdict))
        note(f"{call}")

        assert view(expected, call) == view(found, call)
        assert_names_its_rules(expected, found)


def assert_names_its_rules(expected: Decision, found: Decision) -> None:
    """Clause 15: the rules that made the decision are named, errored ones first and in the reason.

    Where a rule erred the compiled policy may stop looking once nothing can change the
    decision, and so name fewer.
    """
    marks = ["<rule_error:" in rule for rule in found.matched_rules]
    erred = [rule for rule in expected.matched_rules if "<rule_error:" in rule]

    assert sorted(marks, reverse=True) == marks
    assert rules_of(found) <= rules_of(expected)
    if not erred:
        assert rules_of(found) == rules_of(expected)
    elif len(erred) == len(expected.matched_rules):
        assert any(mark.split(":")[-2] in found.reason for mark in erred)
