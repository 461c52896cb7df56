"""Mutation: which mistakes in a policy its test cases notice, and which case is missing."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from properties.calls import requests
from properties.policies import layered, policies
from properties.trying import examples

from adjudge import Decision, PolicyCompileError, PolicyLayer, compile_policy, evaluate
from adjudge.analysis import (
    MUTANT_KINDS,
    Expectation,
    PolicyCase,
    PolicyTests,
    mutate_policy,
    read_policy_tests,
    run_policy_tests,
)
from adjudge.analysis._testing.mutants import mutants_of
from adjudge.policy._reading.source import read_policy


def changes(rule, **policy):
    """Give what is changed of a policy of one rule, as kind and sentence."""
    source = read_policy({"version": 1, "rules": [{"id": "r", **rule}], **policy})
    return [(each.kind, each.change) for each in mutants_of(source)]


def of_match(match, decision="allow"):
    """Give the changed matches of a rule, without the rule being dropped or its verdict changed."""
    ignored = ("rule_dropped", "verdict_loosened", "default_loosened")
    found = changes({"match": match, "decision": decision})
    return [change for change in found if change[0] not in ignored]


def pay_cases(*cases):
    """Give cases of calls of the tool `pay`, as (args, expected)."""
    named = [
        {"name": str(place), "call": {"tool": "pay", "args": args}, "expect": expect}
        for place, (args, expect) in enumerate(cases)
    ]
    return read_policy_tests({"adjudge_tests": 1, "cases": named})


def survivors(rules, *cases, **policy):
    """Give kind, rule and call of what no case notices."""
    report = mutate_policy(compile_policy({"rules": rules, **policy}), pay_cases(*cases))
    assert report.baseline.passed
    return [(each.mutant.kind, each.mutant.rule, each.call) for each in report.survivors]


PAY = {"id": "pay", "match": {"tool": "pay", "args.amount.le": 50}, "decision": "allow"}


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (None, ["default_loosened"]),
        ({"pay": {}}, []),
        ({"pay": {}, "wipe": {}}, ["default_loosened"]),
    ],
)
def test_a_missing_case_is_looked_for_among_the_tools_that_there_are(tools, expected):
    """A default that no call of a listed tool falls to makes no difference there."""
    rules = [PAY, {"id": "more", "match": {"tool": "pay"}, "decision": "deny"}]
    source = {
        "adjudge_tests": 1,
        "cases": [
            {"name": "50", "call": {"tool": "pay", "args": {"amount": 50}}, "expect": "allow"},
            {"name": "51", "call": {"tool": "pay", "args": {"amount": 51}}, "expect": "deny"},
            {"name": "x", "call": {"tool": "pay", "args": {"amount": "x"}}, "expect": "deny"},
        ],
    }
    tests = read_policy_tests({**source, **({} if tools is None else {"tools": tools})})
    report = mutate_policy(compile_policy({"rules": rules}), tests)
    found = [each for each in report.survivors if each.mutant.kind == "default_loosened"]

    assert expected == sorted({each.mutant.kind for each in found})
    assert all(tools is None or each.call.tool in tools for each in report.survivors)


# What is changed


def test_a_policy_has_its_rules_verdicts_and_defaults_changed():
    """Each rule is dropped, each restricting verdict and default is allow."""
    kinds = [kind for kind, _ in changes({"match": "always", "decision": "dry_run"})]

    assert ["default_loosened", "default_loosened", "rule_dropped", "verdict_loosened"] == kinds


def test_a_default_that_allows_is_loose_already():
    """Nothing is looser than allow."""
    defaults = {"on_no_match": "allow", "on_missing_shadow": "allow"}

    assert [("rule_dropped", "the rule is gone")] == changes(
        {"match": "always", "decision": "allow"}, defaults=defaults
    )


@pytest.mark.parametrize(
    ("match", "kinds"),
    [
        ("always", []),
        ({"args.a": 1}, ["condition_dropped"]),
        ({"args.a": 1, "args.b": 2}, ["condition_dropped", "condition_dropped"]),
        (
            {"any_of": [{"args.a": 1}, {"args.b": 2}]},
            ["condition_dropped", *["alternative_dropped"] * 2],
        ),
        ({"not": {"args.a": 1}}, ["condition_dropped", "negation_dropped"]),
        ({"args.a.ne": 1}, ["condition_dropped", "negation_dropped"]),
        ({"args.a.gt": 1}, ["condition_dropped", "bound_swapped", "bound_moved"]),
        ({"args.a.gt": "x"}, ["condition_dropped", "bound_swapped"]),
        ({"args.a.gt": {"ref": "args.b"}}, ["condition_dropped", "bound_swapped"]),
        (
            {"args.a.between": [1, 2]},
            ["condition_dropped", *["bound_swapped"] * 2, *["bound_moved"] * 2],
        ),
        ({"args.a.size": {"ge": 3}}, ["condition_dropped", "bound_swapped", "bound_moved"]),
        ({"args.a.in": ["x", "y"]}, ["condition_dropped", "member_dropped", "member_dropped"]),
        ({"args.a.in": ["x"]}, ["condition_dropped"]),
        ({"args.a.in": {"ref": "args.b"}}, ["condition_dropped"]),
        ({"args.a.ends_with": "x"}, ["condition_dropped"]),
        ({"args.a.matches": "^x$"}, ["condition_dropped", "anchor_dropped", "anchor_dropped"]),
        ({"args.a.matches": r"x\$"}, ["condition_dropped"]),
        ({"args.a.matches": "^"}, ["condition_dropped"]),
    ],
)
def test_every_part_of_a_match_is_changed(match, kinds):
    """Conditions, alternatives, negations, bounds, members and anchors, at any depth."""
    assert kinds == [kind for kind, _ in of_match(match)]


@pytest.mark.parametrize(
    ("match", "moved"),
    [
        ({"args.a.gt": 100}, "args.a.gt: 101 in place of args.a.gt: 100"),
        ({"args.a.ge": 100}, "args.a.ge: 99 in place of args.a.ge: 100"),
        ({"args.a.lt": 0.3}, "args.a.lt: 0.2 in place of args.a.lt: 0.3"),
        ({"args.a.le": 1.25}, "args.a.le: 1.26 in place of args.a.le: 1.25"),
    ],
)
def test_a_bound_is_moved_by_one_of_its_last_place(match, moved):
    """So that a case at the bound and one beside it hold it in its place."""
    assert moved in [change for _, change in of_match(match)]


def test_what_a_rule_does_is_changed_too():
    """Edits, approvers and obligations go one by one."""
    rewriting = changes(
        {
            "match": "always",
            "decision": "transform",
            "transform": [{"path": "args.a", "set": 1}, {"path": "args.b", "delete": True}],
            "obligations": ["log", "tell"],
        }
    )
    asking = changes({"match": "always", "decision": "approve_required", "approvers": ["ana"]})

    assert ["edit_dropped"] * 2 + ["obligation_dropped"] * 2 == [kind for kind, _ in rewriting][4:]
    assert ("approvers_dropped", "anybody may approve, not only ana") == asking[-1]


@settings(max_examples=examples(60))
@given(policies(most=4))
def test_every_kind_is_known_and_every_change_is_one(policy):
    """A mutant differs from the policy, and is of a kind that is explained."""
    source = policy.compiled().source

    for changed in mutants_of(source):
        assert changed.kind in MUTANT_KINDS
        assert changed.of(source) != source


# What is noticed


def test_cases_on_both_sides_of_everything_leave_nothing_over():
    """The bound's value and its neighbour, another tool, the wrong kind."""
    report = mutate_policy(
        compile_policy({"rules": [PAY], "defaults": {"on_missing_shadow": "allow"}}),
        read_policy_tests(
            {
                "adjudge_tests": 1,
                "cases": [
                    {
                        "name": "at",
                        "call": {"tool": "pay", "args": {"amount": 50}},
                        "expect": "allow",
                    },
                    {
                        "name": "above",
                        "call": {"tool": "pay", "args": {"amount": 51}},
                        "expect": "deny",
                    },
                    {
                        "name": "other",
                        "call": {"tool": "x", "args": {"amount": 1}},
                        "expect": "deny",
                    },
                ],
            }
        ),
    )

    assert report.passed
    assert {"at", "above", "other"} == {each.killed_by for each in report.results}


def test_a_survivor_comes_with_the_call_that_is_missing():
    """The call is decided otherwise by the mutant, and both decisions are given."""
    policy = compile_policy({"rules": [PAY]})
    report = mutate_policy(policy, pay_cases(({"amount": 50}, "allow"), ({"amount": 500}, "deny")))
    (moved,) = (each for each in report.survivors if each.mutant.kind == "bound_moved")

    assert ("pay", {"amount": 51}) == (moved.call.tool, moved.call.args)
    assert ("deny", "allow") == (moved.before.verdict, moved.after.verdict)
    assert moved.before == evaluate(policy, moved.call)
    assert not report.passed


def test_a_default_that_no_case_meets_survives():
    """Of a tool that is irreversible and has no preview, where no case has one."""
    found = survivors([PAY], ({"amount": 50}, "allow"), ({"amount": 51}, "deny"))
    declared = [call.declared for kind, _, call in found if kind == "default_loosened"]

    assert [False] == [each.reversible for each in declared]


def test_a_change_without_effect_is_no_survivor():
    """A rule that denies what nothing allows changes no call; it is told as equal."""
    rules = [PAY, {"id": "no", "match": {"tool": "pay", "args.amount.gt": 50}, "decision": "deny"}]
    cases = pay_cases(({"amount": 50}, "allow"), ({"amount": 51}, "deny"))
    policy = compile_policy({"rules": rules, "defaults": {"on_missing_shadow": "deny"}})
    report = mutate_policy(policy, cases, max_calls=400)

    assert ("rule_dropped", "no") in [(each.mutant.kind, each.mutant.rule) for each in report.equal]
    assert ("rule_dropped", "no") not in [
        (each.mutant.kind, each.mutant.rule) for each in report.survivors
    ]


def test_nothing_is_changed_while_a_case_fails():
    """Whether a mistake is noticed means nothing then."""
    report = mutate_policy(compile_policy({"rules": [PAY]}), pay_cases(({"amount": 50}, "deny")))

    assert (False, (), False) == (report.passed, report.results, report.baseline.passed)


def test_a_change_that_is_no_policy_is_left_out():
    """Without its anchor the pattern could take cubic time, which is refused."""
    pattern = r"^.*a.*b$"
    rule = {"id": "r", "match": {"args.amount.matches": pattern}, "decision": "allow"}
    report = mutate_policy(
        compile_policy({"rules": [rule]}), pay_cases(({"amount": "ab"}, "allow")), max_calls=100
    )
    anchors = [each for each in report.results if each.mutant.kind == "anchor_dropped"]

    assert 1 == len(anchors)


def test_layers_and_python_rules_are_changed_where_they_stand():
    """A rule of a layer is reported with it; a Python rule is dropped."""

    def closed(request, context):
        return Decision("deny") if request.args.get("amount") == 13 else None

    policy = compile_policy(
        [PolicyLayer("org", {"version": 1}, (closed,)), PolicyLayer("team", {"rules": [PAY]})]
    )
    cases = pay_cases(({"amount": 50}, "allow"), ({"amount": 13}, "deny"))
    report = mutate_policy(policy, cases, max_calls=100)
    noticed = {(each.mutant.kind, each.mutant.rule): each.killed_by for each in report.killed}

    assert "0" == noticed["rule_dropped", "team:pay"]
    assert "1" == noticed["python_rule_dropped", "org:closed"]


def test_progress_is_told_of_every_mutant():
    """How many of how many, to the end."""
    told = []
    report = mutate_policy(
        compile_policy({"rules": [PAY]}),
        pay_cases(({"amount": 50}, "allow")),
        progress=lambda done, of: told.append((done, of)),
    )

    count = len(report.results)
    assert [(done, count) for done in range(1, count + 1)] == told


@settings(max_examples=examples(12))
@given(policies(most=3) | layered(), st.lists(requests(), min_size=1, max_size=3))
def test_a_survivor_is_one(policy, asked):
    """No case fails on it, its call is decided otherwise, and whoever is killed is told by whom."""
    compiled = policy.compiled()
    cases = tuple(
        PolicyCase(str(place), request, Expectation(evaluate(compiled, request).verdict))
        for place, request in enumerate(asked)
    )
    report = mutate_policy(compiled, PolicyTests(cases), max_calls=60)
    # A path may be resolved otherwise than the drawn request has it.
    assume(report.baseline.passed)
    names = {case.name for case in cases}

    assert len(report.results) == len(report.killed) + len(report.survivors) + len(report.equal)
    for result in report.results:
        assert result.killed_by is None or result.killed_by in names
        if result.survived:
            assert result.before == evaluate(compiled, result.call)
            assert result.before != result.after


@settings(max_examples=examples(25))
@given(policies(most=3), st.lists(requests(), min_size=1, max_size=3))
def test_who_notices_does_not_depend_on_how_little_is_compiled(policy, asked):
    """A mutant is noticed exactly if the cases fail on the whole changed policy."""
    compiled = policy.compiled()
    cases = PolicyTests(
        tuple(
            PolicyCase(str(place), request, Expectation(evaluate(compiled, request).verdict))
            for place, request in enumerate(asked)
        )
    )
    report = mutate_policy(compiled, cases, max_calls=1)
    assume(report.baseline.passed and not compiled.python_rules)
    noticed = []
    for changed in mutants_of(compiled.source):
        try:
            whole = compile_policy(changed.of(compiled.source))
        except PolicyCompileError:
            continue
        noticed.append(not run_policy_tests(whole, cases).passed)

    assert noticed == [result.killed_by is not None for result in report.results]
