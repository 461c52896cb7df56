"""What test cases exercise of a policy: rules that decided, conditions seen true and false."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from properties.calls import requests
from properties.policies import layered, policies
from properties.trying import examples

from adjudge import Decision, PolicyLayer, Verdict, compile_policy
from adjudge.analysis import (
    Expectation,
    PolicyCase,
    PolicyTests,
    measure_coverage,
    run_policy_tests,
)
from adjudge.policy._model import AllOf, Leaf
from adjudge.policy._reading.words import OPERATORS
from adjudge.testing import make_request


def cover(policy, *asked):
    """Measure what some requests exercise; what is expected of them does not matter."""
    compiled = policy if not isinstance(policy, list) else compile_policy({"rules": policy})
    cases = tuple(
        PolicyCase(str(place), request, Expectation("deny")) for place, request in enumerate(asked)
    )
    return measure_coverage(compiled, run_policy_tests(compiled, PolicyTests(cases)))


def seen(rule):
    """Give how often each condition was true, false and in error."""
    return {each.text: (each.true, each.false, each.errors) for each in rule.conditions}


PAY = {"id": "pay", "match": {"tool": "pay", "args.amount.le": 5}, "decision": "allow"}


def test_a_rule_is_covered_by_the_cases_that_it_decided():
    """By the names of the cases."""
    (rule,) = cover([PAY], make_request("pay", {"amount": 1}), make_request("x")).rules

    assert ("pay", ("0",)) == (rule.name, rule.decided)


def test_a_condition_is_seen_true_false_and_in_error():
    """Each answer counts for itself; an error is neither true nor false."""
    asked = [make_request("pay", {"amount": amount}) for amount in (1, 2, 9, "1")]
    (rule,) = cover([PAY], *asked).rules

    assert (2, 1, 1) == seen(rule)["args.amount.le: 5"]


def test_a_condition_does_not_count_where_its_rule_is_not_asked():
    """Neither about another tool, nor below a rule that decided; what names the tool counts."""
    first = {"id": "first", "match": {"args.amount.eq": 9}, "decision": "deny"}
    asked = [make_request("pay", {"amount": 9}), make_request("other", {"amount": 1})]
    _, rule = cover([first, PAY], *asked).rules

    assert {"args.amount.le: 5": (0, 0, 0)}.items() <= seen(rule).items()
    assert (1, 1, 0) == next(value for text, value in seen(rule).items() if "tool" in text)


def test_what_a_rewrite_makes_of_a_call_is_asked_of_every_rule():
    """Clause 19: a rule below the transform sees the final arguments."""
    cap = {
        "id": "cap",
        "priority": 1,
        "match": {"tool": "pay"},
        "decision": "transform",
        "transform": {"path": "args.amount", "set": 3},
    }
    _, rule = cover([cap, PAY], make_request("pay", {"amount": 9})).rules

    assert (1, 1, 0) == seen(rule)["args.amount.le: 5"]


def test_conditions_about_elements_are_seen_by_element():
    """`each`, `some`, `size` and `normalized` have conditions of their own."""
    match = {
        "args.tags.some": {".": {"in": ["a", "b"]}},
        "args.name.size": {"gt": 2},
        "args.name.normalized": {"eq": "abc"},
    }
    rule = {"id": "r", "match": match, "decision": "deny"}
    asked = make_request("x", {"tags": ["a", "z", "b"], "name": "ABC"})
    (covered,) = cover([rule], asked).rules
    counts = [(each.true, each.false) for each in covered.conditions]

    assert [(1, 0), (2, 1), (1, 0), (1, 0), (1, 0), (1, 0)] == counts


def test_a_value_of_a_foreign_kind_has_no_elements():
    """A fault, a string or nothing in place of a list asks no condition about elements."""
    rule = {"id": "r", "match": {"args.a.b.each": {".": 1}}, "decision": "deny"}
    asked = [make_request("x", args) for args in ({"a": 1}, {}, {"a": {"b": "text"}})]
    (covered,) = cover([rule], *asked).rules

    assert [(0, 1, 2), (0, 0, 0)] == [
        (each.true, each.false, each.errors) for each in covered.conditions
    ]


def test_the_percentage_counts_deciding_and_both_answers():
    """Of one rule with two conditions there are five things to see."""
    one = cover([PAY], make_request("pay", {"amount": 1}))
    all_of_it = cover(
        [PAY], *(make_request("pay", {"amount": amount}) for amount in (1, 9)), make_request("x")
    )

    assert (60.0, 100.0) == (one.percent, all_of_it.percent)


def test_a_policy_without_rules_has_nothing_to_cover():
    """Its defaults are told all the same."""
    coverage = cover(compile_policy({"version": 1}), make_request("x"))

    assert (100.0, ()) == (coverage.percent, coverage.rules)
    assert {"on_no_match": ("0",), "on_missing_shadow": ()} == coverage.defaults


def test_layers_and_python_rules_have_the_names_of_decisions():
    """A rule of a layer is layer:rule; a Python rule has no conditions."""

    def closed(request, context):
        return Decision("deny") if request.tool == "x" else None

    layers = [PolicyLayer("org", {"rules": [PAY]}), PolicyLayer("team", {"version": 1}, (closed,))]
    coverage = cover(compile_policy(layers), make_request("x"))

    assert ["org:pay", "team:closed"] == [rule.name for rule in coverage.rules]
    assert [(), ("0",)] == [rule.decided for rule in coverage.rules]


@settings(max_examples=examples(60))
@given(policies(most=4), st.lists(requests(), min_size=1, max_size=4))
def test_a_rule_that_decided_was_seen_to_hold(policy, asked):
    """Whatever decided by several tests that must all hold, each of them was seen true."""
    compiled = policy.compiled()
    covered = {rule.name: rule for rule in cover(compiled, *asked).rules}

    for rule in compiled.source.rules:
        parts = rule.match.parts if isinstance(rule.match, AllOf) else (rule.match,)
        plain = all(isinstance(part, Leaf) for part in parts)
        if plain and covered[rule.id].decided and rule.verdict is not Verdict.TRANSFORM:
            top = [each for each in covered[rule.id].conditions if not is_inner(each)]
            assert all(each.true for each in top)


def is_inner(condition):
    """Whether a condition is about an element."""
    return condition.text.startswith(tuple(f"{word}:" for word in OPERATORS))


@settings(max_examples=examples(30))
@given(layered(), st.lists(requests(), min_size=1, max_size=4))
def test_no_layered_policy_breaks_the_measuring(policy, asked):
    """Whatever is asked of whatever layers, there is an answer."""
    assert 0 <= cover(policy.compiled(), *asked).percent <= 100
