"""`explain`: what it says of one call, in words and values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from adjudge import PolicyLayer, compile_policy
from adjudge.analysis import ConditionAnswer, Explanation, explain
from adjudge.testing import make_request


def told(
    *rules: dict[str, Any], tool: str = "pay", policy: dict[str, Any] | None = None, **call: Any
) -> Explanation:
    """Explain one call under a policy of these rules."""
    numbered = [{"id": f"r{number}", **rule} for number, rule in enumerate(rules)]
    bundle = compile_policy({"version": 1, "rules": numbered, **(policy or {})})
    return explain(bundle, make_request(tool, call.pop("args", {}), **call))


def condition(explanation: Explanation, text: str) -> ConditionAnswer:
    """Find a condition by its text."""

    def below(one: ConditionAnswer) -> list[ConditionAnswer]:
        return [one, *(each for part in one.parts for each in below(part))]

    trees = [tree for rule in explanation.layers[0].rules for tree in rule.readings]
    return next(each for tree in trees for each in below(tree) if each.text == text)


ALLOW = {"match": {"tool": "pay"}, "decision": "allow"}
DENY_LARGE = {"match": {"tool": "pay", "args.amount.gt": 5}, "decision": "deny"}


def test_rules_come_in_the_order_asked_and_the_search_ends() -> None:
    """Clause 14: what stands after the rule that decides is not asked."""
    explanation = told(DENY_LARGE, ALLOW, ALLOW, args={"amount": 1})
    (layer,) = explanation.layers

    assert ["false", "true", "not asked"] == [rule.answer for rule in layer.rules]
    assert "matches: it decides" == layer.rules[1].outcome
    assert ("allow", ("r1",)) == (explanation.decision.verdict, explanation.decision.matched_rules)


def test_a_condition_tells_the_value_seen() -> None:
    """Path, operator, operand, value, answer."""
    found = condition(told(DENY_LARGE, args={"amount": 7}), "args.amount gt")

    assert (5, 7, "true", False) == (found.operand, found.seen, found.answer, found.absent)


def test_an_absent_value_is_told_from_null_operands() -> None:
    """Clause 8: absence is said, and what it counts as under a negation."""
    rule = {"match": {"tool": "pay", "not": {"args.to.in": ["a"]}}, "decision": "allow"}
    found = condition(told(rule), "args.to in")

    assert (True, "true") == (found.absent, found.answer)
    assert "permits nothing" in found.note


def test_an_error_is_told_with_its_cause_and_its_floor() -> None:
    """Clause 15: an errored restriction counts as its verdict and the search goes on."""
    explanation = told(DENY_LARGE, ALLOW, args={"amount": "7"})
    first, second = explanation.layers[0].rules

    assert ("error", "true") == (first.answer, second.answer)
    assert "at least deny" in first.outcome
    assert "args.amount is a string, expected a number" == first.fault
    assert "deny" == explanation.decision.verdict


def test_secrets_are_taken_out() -> None:
    """The value seen is the one that the record would have, wherever it is shown."""
    rule = {"match": {"args.api_key.starts_with": "sk"}, "decision": "allow"}
    explanation = told(rule, args={"api_key": "sk-123456"})

    assert "true" == condition(explanation, "args.api_key starts_with").answer
    assert "sk-123456" not in repr(explanation)


def test_a_secret_among_elements_is_taken_out() -> None:
    """So it is inside lists, and in what a ref reads."""
    rule = {
        "match": {
            "args.users": {"some": {".password": "hunter2!"}},
            "args.x": {"ref": "args.password"},
        },
        "decision": "deny",
    }
    users = [{"password": "hunter3!"}]
    explanation = told(rule, args={"users": users, "x": "y", "password": "hunter4!"})

    assert "hunter3!" not in repr(explanation)
    assert "hunter4!" not in repr(explanation)


def test_a_rewrite_tells_what_the_final_arguments_meet() -> None:
    """Clause 19: each rule's answer about the rewritten arguments, and what is newly met."""
    cap = {
        "match": {"tool": "pay", "args.amount.gt": 100},
        "decision": "transform",
        "transform": {"path": "args.amount", "set": 100},
    }
    ask = {"match": {"tool": "pay", "args.amount": 100}, "decision": "approve_required"}
    explanation = told(cap, ask, args={"amount": 500})
    (layer,) = explanation.layers

    assert {"amount": 100} == explanation.final_args
    assert ["false", "true"] == [rule.on_final for rule in layer.rules]
    assert ("r1 (approve_required)",) == layer.newly_met


def test_a_doubtful_transform_shows_both_readings() -> None:
    """Clause 8: matched as a restriction alone, and what came of it."""
    cap = {
        "match": {"tool": "pay", "not": {"args.tier.in": ["gold"]}},
        "decision": "transform",
        "transform": {"path": "args.limit", "set": 1},
    }
    (rule,) = told(cap, policy={"defaults": {"on_no_match": "allow"}}).layers[0].rules

    assert ("doubtful", 2) == (rule.answer, len(rule.readings))
    assert "it rewrites" in rule.outcome


def test_a_foreign_namespace_is_named() -> None:
    """Clause 13: why `tool: pay` is false of a pay."""
    found = condition(told(ALLOW, namespace="evil"), "tool eq")

    assert ("false", "pay") == (found.answer, found.seen)
    assert "'evil'" in found.note


def test_the_default_is_told() -> None:
    """Clause 17: where no rule matches, the default and why."""
    (layer,) = told(DENY_LARGE, args={"amount": 1}).layers

    assert ("", "deny") == (layer.verdict, layer.default)
    assert "no rule allows" in layer.reason


def test_rules_about_other_tools_are_counted() -> None:
    """They are not asked, and not listed."""
    (layer,) = told(ALLOW, {"match": {"tool": "x"}, "decision": "deny"}).layers

    assert (1, 1) == (len(layer.rules), layer.other_rules)


def test_predicates_are_named() -> None:
    """A condition that comes from a predicate says which."""
    policy = {"predicates": {"large": {"args.amount.gt": 5}}}
    rule = {"match": {"all_of": ["large", {"tool": "pay"}]}, "decision": "deny"}
    found = condition(told(rule, policy=policy, args={"amount": 9}), "args.amount gt")

    assert "large" == found.predicate


@pytest.mark.parametrize(
    ("match", "args", "inner"),
    [
        ({"args.x": {"each": {".": {"gt": 1}}}}, {"x": [2, 1]}, ["true", "false"]),
        ({"args.x": {"some": {".n": 1}}}, {"x": [{"n": 1}, {"n": "a"}]}, ["true", "error"]),
        ({"args.x.size": {"gt": 3}}, {"x": "abc"}, ["false"]),
        ({"args.x.normalized": {"eq": "ABC"}}, {"x": "abc"}, ["true"]),
    ],
)
def test_elements_and_sizes_are_explained(
    match: dict[str, Any], args: dict[str, Any], inner: list[str]
) -> None:
    """What stands inside an operator has its own answers, one for each element."""
    (tree,) = told({"match": match, "decision": "deny"}, args=args).layers[0].rules[0].readings

    assert inner == [part.answer for part in tree.parts]


def deny_all(request: Any, context: Any) -> Any:
    """Deny."""
    from adjudge import deny

    return deny("no")


def test_python_rules_stand_in_their_place() -> None:
    """Clause 18: a Python rule has a verdict when it gives one, and no conditions."""
    bundle = compile_policy(
        {"rules": [{"id": "a", "match": {"tool": "x"}, "decision": "allow"}]},
        python_rules=[deny_all],
    )
    (rule,) = explain(bundle, make_request("y", {})).layers[0].rules

    assert ("deny_all", "deny", "true", ()) == (
        rule.rule,
        rule.verdict,
        rule.answer,
        rule.readings,
    )


def test_layers_and_their_combiner_are_told() -> None:
    """Clause 20: each layer alone, and who combines them."""
    bundle = compile_policy(
        [PolicyLayer("org", {"rules": [ALLOW]}), PolicyLayer("team", {"rules": [DENY_LARGE]})]
    )
    explanation = explain(bundle, make_request("pay", {"amount": 1}))

    assert "strict_overrides_loose" == explanation.combined_by
    assert [("org", "allow"), ("team", "")] == [
        (layer.name, layer.verdict) for layer in explanation.layers
    ]
    assert "org:rule_0" == explanation.layers[0].rules[0].rule


def test_values_that_json_lacks_are_written() -> None:
    """Decimals, dates and the like have a JSON form."""
    args = {"at": datetime(2026, 1, 1, tzinfo=UTC)}

    assert "2026-01-01T00:00:00+00:00" == told(ALLOW, args=args).as_json()["args"]["at"]
