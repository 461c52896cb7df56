"""Running test cases: what passes, what a failure says, and which cases are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from properties.calls import requests
from properties.policies import layered, policies
from properties.trying import examples

from adjudge import Decision, PolicyCompileError, PolicyLayer, compile_policy, evaluate
from adjudge.analysis import (
    Expectation,
    PolicyCase,
    PolicyTests,
    find_policy_tests,
    load_policy_tests,
    load_tested_policy,
    policy_files_of,
    read_policy_tests,
    run_policy_tests,
)

POLICY = {
    "version": 1,
    "rules": [
        {
            "id": "cap",
            "match": {"tool": "search"},
            "decision": "transform",
            "transform": {"path": "args.limit", "set": 20},
        },
        {
            "id": "ask",
            "match": {"tool": "pay", "args.amount.gt": 50},
            "decision": "approve_required",
            "approvers": ["ana", "bo"],
            "reason": "large",
            "obligations": ["log"],
        },
        {"id": "pay", "match": {"tool": "pay", "args.amount.ge": 0}, "decision": "allow"},
        {"id": "read", "match": {"tool": "read", "args.path.under": "."}, "decision": "allow"},
    ],
}

ERRED = ["<rule_error:ask:WrongKind>", "<rule_error:pay:WrongKind>", "<default:on_no_match>"]


def run(*cases, policy=POLICY, **sections):
    """Run cases on a policy; each is named by its place."""
    named = [{"name": str(place), **case} for place, case in enumerate(cases)]
    tests = read_policy_tests({"adjudge_tests": 1, "cases": named, **sections})
    return run_policy_tests(compile_policy(policy), tests)


def differences(call, expect):
    """Give what differs in the one case."""
    (result,) = run({"call": call, "expect": expect}).results
    assert result.passed is (result.differences == ())
    return result.differences


def call(tool, **args):
    """Give a call as a case has it."""
    return {"tool": tool, "args": args}


@pytest.mark.parametrize(
    ("asked", "expect"),
    [
        (call("search"), {"verdict": "transform", "rule": "cap", "args": {"limit": 20}}),
        (call("pay", amount=5), {"verdict": "allow", "rule": "pay", "args": {"amount": 5}}),
        (call("pay", amount=51), {"verdict": "approve_required", "approvers": ["bo", "ana"]}),
        (call("pay", amount=51), {"verdict": "approve_required", "obligations": ["log"]}),
        (call("pay", amount=51), {"verdict": "approve_required", "reason": "large"}),
        (call("pay", amount=-1), {"verdict": "deny", "default": "on_no_match"}),
        (call("pay", amount="5"), {"verdict": "deny", "rules": ERRED}),
        (call("read", path="a/b"), "allow"),
        (call("read", path="../b"), "deny"),
        ({**call("read", path="a"), "resolved": {"a": "/etc/passwd"}}, "deny"),
        ({**call("read", path="a"), "resolved": {"a": None}}, "deny"),
    ],
)
def test_a_case_passes_where_the_decision_is_the_expected_one(asked, expect):
    """What is not stated is left open; paths are resolved by their text, as a guard would."""
    assert () == differences(asked, expect)


@pytest.mark.parametrize(
    ("asked", "expect", "says"),
    [
        (call("pay", amount=5), "deny", "verdict: expected deny, decided allow"),
        (call("pay", amount=5), {"verdict": "allow", "rule": "cap"}, "rule: expected cap, "),
        (call("pay"), {"verdict": "deny", "rule": "pay"}, "decided by <default:on_no_match>"),
        (
            call("pay", amount=5),
            {"verdict": "allow", "default": "on_no_match"},
            "default: expected on_no_match, decided by pay",
        ),
        (call("pay", amount=5), {"verdict": "allow", "rules": []}, "rules: expected none, "),
        (
            call("search"),
            {"verdict": "transform", "args": {"limit": 20.0}},
            'args: expected {"limit":20.0}, decided {"limit":20}',
        ),
        (
            call("pay", amount=51),
            {"verdict": "approve_required", "approvers": ["ana"]},
            "approvers: expected ana, decided ana, bo",
        ),
        (
            call("pay", amount=51),
            {"verdict": "approve_required", "obligations": []},
            "obligations: expected none, decided log",
        ),
        (
            call("pay", amount=51),
            {"verdict": "approve_required", "reason": ""},
            "reason: expected '', decided 'large'",
        ),
    ],
)
def test_a_case_fails_with_what_differs(asked, expect, says):
    """One clause for each difference, expected and decided."""
    (difference,) = differences(asked, expect)

    assert says in difference


def test_a_failure_says_which_rule_decided_and_why():
    """The explanation has the call, the differences, the rule and its reason."""
    (result,) = run({"call": call("pay", amount=51), "expect": "allow"}).failures

    assert result.explained().splitlines() == [
        'pay {"amount": 51}',
        "  verdict: expected allow, decided approve_required",
        "  decided by: rule ask",
        "  reason: large",
    ]


@pytest.mark.parametrize(
    ("expect", "says"),
    [
        ({"verdict": "allow", "rule": "pya"}, 'no rule "pya". Did you mean "pay"?'),
        ({"verdict": "allow", "rules": ["payy"]}, 'Did you mean "pay"?'),
        ({"verdict": "deny", "rule": "<default:on_no_match>"}, "default: on_no_match"),
    ],
)
def test_a_case_that_names_no_rule_of_the_policy_is_refused(expect, says):
    """It could never pass; the nearest rule is named."""
    with pytest.raises(PolicyCompileError, match="policy has no rule") as refused:
        run({"call": call("pay"), "expect": expect})

    assert says in str(refused.value)


def test_no_case_is_not_a_pass():
    """Nothing checked is not good."""
    with pytest.raises(PolicyCompileError, match="nothing to check"):
        run_policy_tests(compile_policy(POLICY), PolicyTests(()))


def test_python_rules_and_layers_are_tested_by_the_names_that_decisions_give():
    """A Python rule by its name, a rule of a layer as layer:rule."""

    def closed(request, context):
        return Decision("deny", "closed") if request.tool == "pay" else None

    policy = compile_policy(
        [PolicyLayer("org", POLICY), PolicyLayer("team", {"version": 1}, (closed,))]
    )
    cases = [
        {"name": "1", "call": call("pay", amount=1), "expect": {"verdict": "deny"}},
        {"name": "2", "call": call("search"), "expect": {"verdict": "transform"}},
    ]
    cases[0]["expect"]["rule"] = "team:closed"
    cases[1]["expect"]["rule"] = "org:cap"

    assert run_policy_tests(policy, read_policy_tests({"adjudge_tests": 1, "cases": cases})).passed


@settings(max_examples=examples(40))
@given(policies(most=4) | layered(), requests())
def test_a_case_that_expects_what_is_decided_passes(policy, request):
    """Whatever a policy decides about a call, the case that says so passes, and no other does."""
    compiled = policy.compiled()
    decided = evaluate(compiled, request)
    case = PolicyCase("it", request, Expectation(decided.verdict, reason=decided.reason))
    other = PolicyCase("it", request, Expectation(decided.verdict, reason=decided.reason + "!"))

    assert run_policy_tests(compiled, PolicyTests((case,))).passed
    assert not run_policy_tests(compiled, PolicyTests((other,))).passed


# Where the cases are


@pytest.fixture
def folder(tmp_path):
    """A folder in which files can be written as JSON."""

    def write(name, value):
        path = tmp_path / name
        path.write_text(json.dumps(value))
        return path

    return write


CASES = {
    "adjudge_tests": 1,
    "cases": [{"name": "a", "call": call("pay", amount=1), "expect": "allow"}],
}


def test_cases_stand_beside_their_policy(folder):
    """policy.json has them in policy.test.json, and they find it."""
    policy = folder("policy.json", POLICY)
    assert () == find_policy_tests(policy)
    beside = folder("policy.test.json", CASES)
    tests = load_policy_tests(beside)

    assert (beside,) == find_policy_tests(policy)
    assert (policy,) == policy_files_of(tests)
    assert run_policy_tests(load_tested_policy(tests), tests).passed


def test_cases_can_name_their_policy(folder):
    """The path is relative to the file of cases, and counts before what stands beside it."""
    folder("policy.json", POLICY)
    folder("strict.json", {"version": 1})
    tests = load_policy_tests(folder("policy.test.json", {**CASES, "policy": "strict.json"}))

    assert not run_policy_tests(load_tested_policy(tests), tests).passed


def test_cases_can_be_about_layers(folder):
    """The layers are combined as the file says; the strictest wins by default."""
    folder("org.json", {"version": 1, "rules": [{"id": "no", "match": "always"}]})
    folder("team.json", POLICY)
    layers = {"org": "org.json", "team": "team.json"}
    strict = load_policy_tests(folder("a.test.json", {**CASES, "layers": layers}))
    loose = {**CASES, "layers": layers, "merge": "last_layer_wins"}
    last = load_policy_tests(folder("b.test.json", loose))

    assert not run_policy_tests(load_tested_policy(strict), strict).passed
    assert run_policy_tests(load_tested_policy(last), last).passed


def test_two_policies_beside_the_cases_are_one_too_many(folder):
    """Which is meant must be said, unless one has the suffix of the cases."""
    folder("p.toml", {})
    folder("p.yml", {})
    tests = load_policy_tests(folder("p.test.json", CASES))
    with pytest.raises(PolicyCompileError, match=r"both p\.yml and p\.toml"):
        policy_files_of(tests)

    assert (folder("p.json", POLICY),) == policy_files_of(tests)


def test_cases_without_a_policy_say_so(folder):
    """Neither beside them nor named."""
    with pytest.raises(PolicyCompileError, match=r"There is no p\.json beside it"):
        policy_files_of(load_policy_tests(folder("p.test.json", CASES)))
    with pytest.raises(PolicyCompileError, match="names no policy"):
        policy_files_of(load_policy_tests(folder("cases.json", CASES)))


def warned(*calls, policy=POLICY, **sections):
    """Give the warnings about cases of these calls."""
    cases = [
        {"name": str(place), "call": call, "expect": "deny"} for place, call in enumerate(calls)
    ]
    tests = read_policy_tests({"adjudge_tests": 1, "cases": cases, **sections})
    return run_policy_tests(compile_policy(policy), tests).warnings


def test_a_tool_and_an_argument_that_nothing_names_are_warned_of_once():
    """What is perhaps misspelt is said with its place and the nearest name."""
    tool, argument = warned(
        {"tool": "pey"}, {"tool": "pey"}, {"tool": "pay", "args": {"amout": 1, "amount": 2}}
    )

    assert tool.startswith(
        'cases[0]: no rule and no tools: names the tool "pey". Did you mean "pay"'
    )
    assert argument.startswith('cases[2]: no rule reads and no tools: names the argument "amout"')


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "pay", "args": {"amount": 1}},
        {"tool": "search", "args": {"limit": 1}},
        {"tool": "unheard_of", "declared": None},
    ],
)
def test_a_name_that_a_rule_reads_or_writes_is_not_warned_of(call):
    """Nor is a tool of which the case says itself that nothing is known."""
    assert () == warned(call)


def test_a_tool_that_meets_the_pattern_of_a_rule_is_not_warned_of():
    """The rule is about it without naming it."""
    rule = {"id": "r", "match": {"not": {"tool.starts_with": "read_"}}, "decision": "deny"}

    assert () == warned({"tool": "read_file"}, policy={"rules": [rule]})
    assert 1 == len(warned({"tool": "write_file"}, policy={"rules": [rule]}))


def test_tools_that_the_file_lists_are_not_warned_of():
    """What is not in the list is an error there, so the list is all that is asked."""
    tools = {"lookup": {"args": ["query"]}}

    assert () == warned({"tool": "lookup", "args": {"query": "x"}}, tools=tools)
