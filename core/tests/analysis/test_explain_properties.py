"""What `explain` says is what the engine does, whatever the policy and the call."""

from __future__ import annotations

import json
import random

from hypothesis import event, given, note, settings
from hypothesis import strategies as st
from properties.calls import _request
from properties.policies import Layers, Policy, layered, policies
from properties.trying import examples, view

from adjudge._types import ActionRequest
from adjudge.analysis import ConditionAnswer, Explanation, RuleAnswer, explain
from adjudge.policy import LayeredPolicyBundle, PolicyBundle, evaluate

CALLS = 10
seeds = st.integers(0, 100_000)


def calls_of(seed: int) -> list[ActionRequest]:
    """Make a few calls of one number."""
    drawn = random.Random(seed)
    return [_request(drawn.randbytes(24)) for _ in range(CALLS)]


def answers_of(rule: RuleAnswer) -> str:
    """Say what the conditions of a rule come to: in both readings, where there are two."""
    first, *others = (reading.answer for reading in rule.readings)
    if not others:
        return first
    (second,) = others
    if "error" in (first, second):
        return "error"
    return "true" if first == "true" else "doubtful" if second == "true" else "false"


def assert_adds_up(told: ConditionAnswer) -> None:
    """Assert that each combination is what Kleene makes of its parts."""
    answers = [part.answer for part in told.parts]
    if told.text == "all_of":
        worst = "false" if "false" in answers else "error" if "error" in answers else "true"
        assert worst == told.answer
    elif told.text == "any_of":
        best = "true" if "true" in answers else "error" if "error" in answers else "false"
        assert best == told.answer
    elif told.text == "not":
        assert {"true": "false", "false": "true", "error": "error"}[answers[0]] == told.answer
    for part in told.parts:
        assert_adds_up(part)


def assert_told_as_decided(
    bundle: PolicyBundle | LayeredPolicyBundle, call: ActionRequest, told: Explanation
) -> None:
    """Assert that the decision is `evaluate`'s, and that every rule stands as the tree says."""
    decision = evaluate(bundle, call)
    assert decision.matched_rules == told.decision.matched_rules
    assert (decision.verdict, decision.reason) == (told.decision.verdict, told.decision.reason)
    assert view(decision, call)["approver_sets"] == view(told.decision, call)["approver_sets"]
    for layer in told.layers:
        for rule in layer.rules:
            if rule.readings:
                assert answers_of(rule) == rule.answer
            for reading in rule.readings:
                assert_adds_up(reading)


@settings(max_examples=examples(60))
@given(policies(), seeds)
def test_one_policy_is_explained_as_it_decides(policy: Policy, seed: int) -> None:
    """The verdict, the rules named, and the answer of each rule are those of the engine."""
    bundle = policy.compiled()
    for call in calls_of(seed):
        note(f"{call}")
        told = explain(bundle, call)
        (layer,) = told.layers
        event(str(told.decision.verdict))

        assert_told_as_decided(bundle, call, told)
        matched = [rule.rule for rule in layer.rules if rule.answer == "true"]
        errors = {rule.rule for rule in layer.rules if rule.answer == "error"}
        marked = {each for each in told.decision.matched_rules if each.startswith("<rule_error:")}
        named = set(told.decision.matched_rules)
        assert len(matched) <= 1
        doubtful = any(rule.answer == "doubtful" for rule in layer.rules)
        # Unless a floor, a doubtful rewrite or a rule that was newly met stands in its place.
        if matched and not errors and not layer.newly_met and not doubtful:
            assert set(matched) <= named
        if not matched and not errors and not layer.verdict:
            assert any(each.startswith("<default:") for each in named)
        if told.final_args is None and not layer.newly_met:
            assert len(errors) == len(marked)


@settings(max_examples=examples(30))
@given(layered(), seeds)
def test_layers_are_explained_as_they_decide(layers: Layers, seed: int) -> None:
    """So it is for each layer, under every combiner."""
    bundle = layers.compiled()
    for call in calls_of(seed):
        note(f"{call}")
        told = explain(bundle, call)

        assert_told_as_decided(bundle, call, told)
        assert len(layers.layers) == len(told.layers)
        assert json.dumps(told.as_json())
