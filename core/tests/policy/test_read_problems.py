"""Every kind of mistake in a policy: its place, its rule, its field and what to write instead."""

import re
from pathlib import Path

import pytest

from adjudge._types import Verdict
from adjudge.errors import PolicyCompileError
from adjudge.policy._reading.source import read_policy

ALWAYS = {"match": "always"}


def problems_of(source):
    """Give what is wrong with a policy."""
    with pytest.raises(PolicyCompileError) as caught:
        read_policy(source)
    return caught.value.problems


def only_problem(source):
    """Give the one thing that is wrong with a policy."""
    (problem,) = problems_of(source)
    return problem


def rule(**fields):
    """Give a policy of one rule with the id r."""
    return {"rules": [{"id": "r", **fields}]}


def test_an_operator_directly_after_the_element_is_a_problem_of_its_rule():
    """Clause 5: it is no key of the element, and the place says which rule and which field."""
    problem = only_problem(
        rule(match={"args.x": {"each": {".starts_with": "a"}}}, decision="allow")
    )

    assert problem.startswith('rules[0].match.args.x.each..starts_with: rule "r": ".starts_with"')


def test_all_problems_are_found_at_once():
    """One error lists every problem of the policy."""
    problems = problems_of(
        {
            "version": 2,
            "default": {},
            "rules": [
                {"id": "a", "match": {}, "priorty": 1, "decision": "allw"},
                {"id": "b", "match": {"arg.x": 1, "args.y.GT": 2, "args.z.gt": True}},
            ],
        }
    )

    assert 8 == len(problems)
    assert "\n".join(problems) == str(PolicyCompileError(problems))


def test_without_lines_a_problem_begins_with_its_path():
    """Clause 33: in a dict the place is the path within the policy."""
    problem = only_problem({"rules": [ALWAYS, {"id": "x", "match": {"args.amount.gt": True}}]})

    assert problem.startswith('rules[1].match.args.amount.gt: rule "x": ')


def test_a_file_without_lines_is_named():
    """Clause 33: in TOML the place is the file and the path."""
    with pytest.raises(PolicyCompileError) as caught:
        read_policy('[[rules]]\nmatch = "x"\n', file="a/policy.toml")

    assert caught.value.problems[0].startswith('a/policy.toml: rules[0].match: rule "rule_0": ')


@pytest.mark.needs_yaml
def test_with_lines_a_problem_begins_with_file_line_and_column():
    """Clause 33: in YAML the place is file, line and column, then rule and field."""
    with pytest.raises(PolicyCompileError) as caught:
        read_policy("rules:\n- id: x\n  match: {args.amount.gt: [1]}\n", file="policy.yaml")

    assert caught.value.problems[0].startswith('policy.yaml:3:27: rule "x", match.args.amount.gt: ')


@pytest.mark.needs_yaml
def test_problems_are_in_the_order_of_the_text():
    """What is read late and stands early is reported early."""
    with pytest.raises(PolicyCompileError) as caught:
        read_policy(
            "tools: {t: {cost: huge}}\nrules: [{match: nothing}]\npredicates: {p: {}}\nversion: 3\n"
        )

    assert ["1", "2", "3", "4"] == [problem.split(":")[1] for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("source", "place", "suggestion"),
    [
        ({"default": {}}, "default: ", '"defaults"'),
        ({"rule": []}, "rule: ", '"rules"'),
        ({"version": 2}, "version: ", "version: 1"),
        ({"version": 0}, "version: ", "version: 1"),
        ({"version": "1"}, "version: ", "whole number"),
        ({"version": True}, "version: ", "whole number"),
        ({"version": 1.0}, "version: ", "whole number"),
        ({"rules": {}}, "rules: ", "list of rules"),
        ({"rules": ["x"]}, "rules[0]: ", "mapping"),
        ({"tools": []}, "tools: ", "mapping"),
        ({"predicates": []}, "predicates: ", "mapping"),
        ({"defaults": []}, "defaults: ", "mapping"),
        ({"defaults": {"on_nomatch": "deny"}}, "defaults.on_nomatch: ", '"on_no_match"'),
        ({"defaults": {"on_no_match": "denied"}}, "defaults.on_no_match: ", '"deny"'),
        ({"defaults": {"on_no_match": "transform"}}, "defaults.on_no_match: ", "rewrites nothing"),
        (
            {"defaults": {"on_missing_shadow": True}},
            "defaults.on_missing_shadow: ",
            "one of allow, deny",
        ),
        ({"tools": {"t": {"reversable": True}}}, "tools.t.reversable: ", '"reversible"'),
        ({"tools": {"t": {"has_shadow": True}}}, "tools.t.has_shadow: ", "Known are"),
        ({"tools": {"t": {"reversible": "yes"}}}, "tools.t.reversible: ", "true or false"),
        ({"tools": {"t": {"cost": "hgih"}}}, "tools.t.cost: ", '"high"'),
        ({"tools": {"t": {"cost": 1}}}, "tools.t.cost: ", "low, medium, high"),
        ({"tools": {"t": {"scope": "fs"}}}, "tools.t.scope: ", '["fs"]'),
        ({"tools": {"t": {"labels": [1]}}}, "tools.t.labels[0]: ", '"1"'),
        ({"tools": {"t": {"blast_radius_hint": 1.5}}}, "tools.t.blast_radius_hint: ", "whole"),
        ({"tools": {"t": {"isolation": ""}}}, "tools.t.isolation: ", "empty"),
        ({"tools": {"t": {"namespace": None}}}, "tools.t.namespace: ", "string, not null"),
        ({"tools": {"t": None}}, "tools.t: ", "mapping"),
        ({"tools": {"": {}}}, "", "empty"),
        ({"tools": {1: {}}}, "tools.1: ", "key is text"),
        ({"predicates": {"always": {"tool": "x"}}}, "predicates.always: ", "rule for everything"),
        ({"predicates": {"matches": {"tool": "x"}}}, "predicates.matches: ", "otherwise"),
        ({"predicates": {"any_of": {"tool": "x"}}}, "predicates.any_of: ", "otherwise"),
        ({"predicates": {"p": {}}}, "predicates.p: ", "empty"),
        ({"predicates": {"p": "p"}}, "predicates.p: ", "p -> p"),
        ({"predicates": {"p": {"not": "q"}, "q": "p"}}, "predicates.q: ", "p -> q -> p"),
        ({"predicates": {"p": {"arg.x": 1}}}, "predicates.p.arg.x: ", '"args.x"'),
    ],
)
def test_a_mistake_outside_rules_is_named(source, place, suggestion):
    """Clause 4: unknown keys and wrong kinds name their place and the nearest word."""
    problem = only_problem(source)

    assert problem.startswith(place)
    assert suggestion in problem


@pytest.mark.parametrize(
    ("fields", "field", "suggestion"),
    [
        ({**ALWAYS, "priorty": 1}, "priorty", '"priority"'),
        ({**ALWAYS, "priority": True}, "priority", "whole number, not the bool true"),
        ({**ALWAYS, "priority": "5"}, "priority", "whole number"),
        ({**ALWAYS, "priority": 1.5}, "priority", "whole number"),
        ({**ALWAYS, "reason": 5}, "reason", 'Write "5"'),
        ({**ALWAYS, "reason": True}, "reason", 'Write "true"'),
        ({**ALWAYS, "reason": None}, "reason", "string, not null"),
        ({**ALWAYS, "reason": ["x"]}, "reason", "string, not a list"),
        ({**ALWAYS, "description": {}}, "description", "string, not a mapping"),
        ({**ALWAYS, "decision": "allow", "verdict": "allow"}, "verdict", "one of the two"),
        ({**ALWAYS, "decision": "allw"}, "decision", '"allow"'),
        ({**ALWAYS, "verdict": None}, "verdict", "one of allow, deny"),
        ({**ALWAYS, "decision": "deny", "approvers": ["a"]}, "approvers", "approve_required"),
        (
            {**ALWAYS, "decision": "allow", "timeout_seconds": 1},
            "timeout_seconds",
            "verdict is allow",
        ),
        (
            {**ALWAYS, "decision": "deny", "transform": {"path": "args.x", "set": 1}},
            "transform",
            "verdict: transform",
        ),
        ({**ALWAYS, "decision": "transform"}, "", "transform: {path: args.limit, set: 10}"),
        ({**ALWAYS, "decision": "approve_required", "approvers": "ann"}, "approvers", '["ann"]'),
        ({**ALWAYS, "decision": "approve_required", "approvers": [""]}, "approvers[0]", "empty"),
        ({"decision": "allow"}, "", "match: always"),
        ({"match": {}}, "match", "match: always"),
        ({"match": None}, "match", "mapping of tests"),
        ({"match": ["a"]}, "match", "all_of: [...]"),
        ({"match": True}, "match", "mapping of tests"),
        ({"match": "in_prd"}, "match", "always"),
        ({"match": {"always": True}}, "match.always", "match: always"),
        ({"match": {"all_of": []}}, "match.all_of", "at least one"),
        ({"match": {"any_of": []}}, "match.any_of", "at least one"),
        ({"match": {"any_of": {}}}, "match.any_of", "a list"),
        ({"match": {"any_of": "p"}}, "match.any_of", "a list"),
        ({"match": {"not": {}}}, "match.not", "empty"),
        ({"match": {"not": []}}, "match.not", "mapping of tests"),
        ({"match": {"allof": ["always"]}}, "match.allof", '"all_of"'),
        ({"match": {"any": ["always"]}}, "match.any", '"any_of"'),
        (
            {"match": {"all_of": [{"any_of": [{"argz.x": 1}]}]}},
            "match.all_of[0].any_of[0].argz.x",
            '"args.x"',
        ),
        ({"match": {"args": {"x": 5}}}, "match.args", '"args.x"'),
        ({"match": {"context": {"environment": "x"}}}, "match.context", '"context.environment"'),
        ({"match": {"args": 5}}, "match.args", '"args.NAME"'),
        ({"match": {"tool": {"namespace": "x"}}}, "match.tool.namespace", '"tool.namespace"'),
        ({"match": {"args.x": {}}}, "match.args.x", "{literal: {}}"),
        ({"match": {"args.x": {"gte": 5}}}, "match.args.x.gte", '"ge"'),
        ({"match": {"args.x": {"y": 5}}}, "match.args.x.y", '"args.x.y"'),
        ({**ALWAYS, "obligations": "notify"}, "obligations", "list of ids"),
        ({**ALWAYS, "obligations": [5]}, "obligations[0]", "string"),
        ({**ALWAYS, "obligations": [""]}, "obligations[0]", "empty"),
        ({**ALWAYS, "obligations": [{}]}, "obligations[0]", "has an id"),
        ({**ALWAYS, "obligations": [{"id": "a", "when": 1}]}, "obligations[0].when", "Known are"),
        (
            {**ALWAYS, "obligations": [{"id": "a", "phase": "before"}]},
            "obligations[0].phase",
            "pre, post",
        ),
        (
            {**ALWAYS, "obligations": [{"id": "a", "on": True}]},
            "obligations[0].on",
            "execute, always",
        ),
        (
            {**ALWAYS, "obligations": [{"id": "a", "params": []}]},
            "obligations[0].params",
            "mapping",
        ),
    ],
)
def test_a_mistake_in_a_rule_is_named(fields, field, suggestion):
    """Clause 4: the problem names the rule, the field and what to write instead."""
    problem = only_problem(rule(**fields))

    assert problem.startswith(f'rules[0]{"." + field if field else ""}: rule "r": ')
    assert suggestion in problem


@pytest.mark.parametrize("rule_id", ["", 5, None, True, ["a"]])
def test_an_id_is_a_string(rule_id):
    """An id that is no text is refused."""
    assert only_problem({"rules": [{"id": rule_id, **ALWAYS}]}).startswith("rules[0].id: ")


@pytest.mark.parametrize("rule_id", ["<default:on_no_match>", "<x", "a\nb", "a\u202eb", "\x1b[2J"])
def test_an_id_cannot_pass_for_something_else(rule_id):
    """An id must not look like a marker of Adjudge's own, nor break or reverse a line."""
    assert "An id does not begin" in only_problem({"rules": [{"id": rule_id, **ALWAYS}]})


@pytest.mark.parametrize("second", [{"id": "rule_1"}, {"id": "rule_1", "priority": 3}])
def test_an_id_given_twice_is_a_problem_with_both_places(second):
    """Clause 4: duplicate ids are refused, those that a rule has by its position included."""
    problem = only_problem({"rules": [{**second, **ALWAYS}, ALWAYS]})

    assert problem.startswith('rules[1]: rule "rule_1": ')
    assert "the rule at rules[0]" in problem


@pytest.mark.needs_yaml
def test_an_id_given_twice_names_both_lines():
    """Clause 4: with lines, both places are lines."""
    with pytest.raises(PolicyCompileError) as caught:
        read_policy("rules:\n- {id: x, match: always}\n- {id: x, match: always}\n")

    assert 'policy:3:3: rule "x": The id "x" is taken by the rule at line 2, column 3' in str(
        caught.value
    )


@pytest.mark.parametrize(
    "seconds", [0, -1, -0.0, True, "60", None, [60], float("nan"), float("inf")]
)
def test_a_timeout_is_a_positive_number(seconds):
    """Clause 22: timeout_seconds must be a positive number at compile time."""
    problem = only_problem(rule(**ALWAYS, decision="approve_required", timeout_seconds=seconds))

    assert problem.startswith('rules[0].timeout_seconds: rule "r": ')


@pytest.mark.parametrize(
    ("test", "suggestion"),
    [
        ({"args.x.gt": True}, "finite number or a string, not the bool true"),
        ({"args.x.gt": None}, "finite number or a string, not null"),
        ({"args.x.ge": [1]}, "finite number or a string"),
        ({"args.x.lt": float("nan")}, "finite"),
        ({"args.x.le": float("-inf")}, "finite"),
        ({"args.x": float("inf")}, "finite"),
        ({"args.x.in": []}, "at least one value"),
        ({"args.x.in": "a"}, "list of at least one value, or a ref, not the string 'a'"),
        ({"args.x.not_in": []}, "operand of not_in"),
        ({"args.x.in": [1, None]}, "exists: false"),
        ({"args.x.in": [{"ref": "args.y"}]}, "never inside a list"),
        ({"args.x.in": [[{"ref": "args.y"}]]}, "never inside a list"),
        ({"args.x.in": [{"literal": 1}]}, "{literal: ...}"),
        ({"args.x.contains_any": []}, "at least one value"),
        ({"args.x.contains_all": 5}, "list"),
        ({"args.x.between": [1]}, "[low, high]"),
        ({"args.x.between": [1, 2, 3]}, "[low, high]"),
        ({"args.x.between": 5}, "[low, high]"),
        ({"args.x.between": [5, 1]}, "[1, 5]"),
        ({"args.x.not_between": [5, 1]}, "not_between"),
        ({"args.x.between": [1, "b"]}, "one kind"),
        ({"args.x.between": [None, 1]}, "finite number"),
        ({"args.x.between": [1, True]}, "finite number"),
        ({"args.x.matches": 5}, "string"),
        ({"args.x.matches": "("}, "no regular expression"),
        ({"args.x.matches": "(a+)+b"}, "exponential"),
        ({"args.x.matches": "a(?=$)"}, "\\Z"),
        ({"args.x.starts_with": 5}, "string"),
        ({"args.x.starts_with": []}, "at least one"),
        ({"args.x.ends_with": ["a", 5]}, "string"),
        ({"args.x.exists": "yes"}, "true or false"),
        ({"args.x.exists": 1}, "true or false"),
        ({"args.x.size": "3"}, "a number is tested"),
        ({"args.x.size": {"gt": "3"}}, "a number is tested"),
        ({"args.x.size": {}}, "at least one of gt"),
        ({"args.x.size": {"matches": "3"}}, "cannot stand in size"),
        ({"args.x.size": True}, "a number is tested"),
        ({"args.x.size": {"in": [1, "a"]}}, "a number is tested"),
        ({"args.x.size": {"gte": 3}}, '"ge"'),
        ({"args.x.size": {"gt": {"ref": "args.y"}}}, "takes no ref"),
        ({"args.x.size": {"ref": "args.y"}}, "takes no ref"),
        ({"args.x.each": "p"}, "tests of the element"),
        ({"args.x.each": {}}, "empty"),
        ({"args.x.each": {"gt": 0}}, '{".": {gt: ...}}'),
        ({"args.x.each": {"args.y": 0}}, 'begins with "."'),
        ({"args.x.some": {"all_of": ["p"]}}, "the predicate"),
        ({"args.x.some": {".": {"in": {"ref": "args.y"}}}}, "takes no ref"),
        ({"args.x.glob": 5}, "string"),
        ({"args.x.glob": {"ref": "args.y"}}, "takes no ref"),
        ({"args.x.matches": {"ref": "args.y"}}, "takes no ref"),
        ({"args.x.exists": {"ref": "args.y"}}, "takes no ref"),
        ({"args.x.under": ""}, "empty"),
        ({"args.x.under": ["/a"]}, "string"),
        ({"args.x.under": "/a\0"}, "NUL"),
        ({"args.x.host_in": "a.com"}, '["example.com", "*.example.com"]'),
        ({"args.x.host_in": []}, "list of hosts"),
        ({"args.x.host_in": ["https://a.com"]}, "without scheme"),
        ({"args.x.host_in": [5]}, "string"),
        ({"args.x.normalized": "a"}, "{eq: ...}"),
        ({"args.x.normalized": {"ne": "a"}}, "cannot stand in normalized"),
        ({"args.x.normalized": {"eq": 5}}, "a string is tested"),
        ({"args.x.normalized": {"in": ["a", 5]}}, "a string is tested"),
        ({"args.x.eq": {"a": 1}}, "{literal: {...}}"),
        ({"args.x.eq": {"reff": "args.y"}}, '"ref"'),
        ({"args.x.contains": {"a": 1}}, "{literal: {...}}"),
        ({"args.x": {"ref": "arg.y"}}, '"args.y"'),
        ({"args.x": {"ref": "args.y.gt"}}, "takes no operator"),
        ({"args.x": {"ref": "."}}, "element of a quantifier"),
        ({"args.x": {"ref": 5}}, "string"),
        ({"args.x": object()}, "no JSON value"),
        ({"args.x": {"literal": {1: 2}}}, "key is text"),
        ({"args.x": 10**4001}, "digits"),
        ({"args.x": "\ud800"}, "surrogate"),
        ({"tool": ["a", "b"]}, "tool.in"),
        ({"tool": 5}, "tool is a string"),
        ({"tool.in": ["a", 5]}, "tool is a string"),
        ({"declared.reversible": "false"}, "true or false"),
        ({"declared.cost.in": [1]}, "is a string"),
        ({"context.step_seq": "1"}, "is a number"),
        ({"given.x": "yes"}, "true or false"),
    ],
)
def test_an_operand_that_could_never_be_met_is_a_problem(test, suggestion):
    """Clauses 7 and 9: operands are checked when the policy is read, each with what to write."""
    problem = only_problem({**rule(match=test), "predicates": {"p": {"tool": "x"}}})

    assert problem.startswith("rules[0].match.")
    assert 'rule "r": ' in problem
    assert suggestion in problem


@pytest.mark.parametrize(
    ("transform", "suggestion"),
    [
        ({}, "exactly one of set, append, delete"),
        ([], "at least one edit"),
        ("x", "mapping"),
        ([{"path": "args.x", "set": 1}, 5], "mapping"),
        ({"path": "args.x", "set": 1, "delete": True}, "set, delete"),
        ({"path": "args.x", "sett": 1}, '"set"'),
        ({"path": "args.x", "jsonpath": "$.args.x", "set": 1}, "the same thing"),
        ({"path": "context.x", "set": 1}, "must begin with args"),
        ({"path": "arg.x", "set": 1}, '"args.x"'),
        ({"path": 5, "set": 1}, "string"),
        ({"path": "args.x", "delete": False}, "delete: true"),
        ({"path": "args.x", "delete": "x"}, "true or false"),
        ({"delete": True}, "needs a path"),
        ({"append": "x"}, "needs a path"),
        ({"set": 5}, "path: args.NAME"),
        ({"path": "args.x", "set": {"ref": "args.y"}}, "takes no ref"),
        ({"path": "args.x", "set": float("nan")}, "finite"),
    ],
)
def test_a_transform_that_could_not_be_applied_is_a_problem(transform, suggestion):
    """Clause 19: what a transform may say is checked when the policy is read."""
    problems = problems_of(rule(**ALWAYS, verdict=Verdict.TRANSFORM, transform=transform))

    assert all(re.match(r'rules\[0\]\.transform.*: rule "r": ', problem) for problem in problems)
    assert any(suggestion in problem for problem in problems)


def test_predicates_that_blow_up_are_a_problem():
    """A policy whose predicates stand for thousands of tests is refused before it is built."""
    predicates = {f"p{n}": {"all_of": [f"p{n + 1}", f"p{n + 1}"]} for n in range(20)}
    problems = problems_of({"predicates": {**predicates, "p20": {"tool": "x"}}})

    assert all("more than 10000 tests" in problem for problem in problems)


def test_predicates_that_chain_too_deeply_are_a_problem():
    """A chain of predicates has an end long before the interpreter's stack has."""
    predicates = {f"p{n}": {"not": f"p{n + 1}"} for n in range(3000)}
    problems = problems_of({"predicates": {**predicates, "p3000": {"tool": "x"}}})

    assert all("levels deep" in problem for problem in problems)


def test_nesting_has_a_limit():
    """A match, a value and a whole policy are bounded in depth."""
    match = value = ALWAYS["match"]
    for _ in range(200):
        match, value = {"not": match}, [value]
    circle = {}
    circle["rules"] = [circle]

    assert "levels deep" in only_problem(rule(match=match))
    assert "levels deep" in only_problem(rule(match={"args.x": value}))
    assert "levels deep" in only_problem(circle)


@pytest.mark.needs_yaml
@pytest.mark.parametrize("name", ["policy.yaml", "conf/policy.json", "POLICY.TOML"])
def test_a_files_name_in_place_of_its_text_says_what_to_call(name):
    """`compile_policy("policy.yaml")` is a usual slip: a text that is no policy."""
    with pytest.raises(PolicyCompileError, match="read it with load_policy_file"):
        read_policy(name)


def test_a_path_in_place_of_its_text_says_what_to_call():
    """A path is no text, and is never opened here."""
    with pytest.raises(PolicyCompileError, match="Read a file with load_policy_file"):
        read_policy(Path("policy.yaml"))


@pytest.mark.parametrize(
    "match",
    [{"tool": "get_*"}, {"tool.in": ["pay", "get_*"]}, {"not": {"tool": "get_*"}}],
    ids=["eq", "in", "negated"],
)
def test_a_pattern_where_a_name_is_meant_is_refused(match):
    """A rule that would match no tool says so, and what to write."""
    policy = {"version": 1, "rules": [{"id": "x", "match": match, "decision": "deny"}]}

    with pytest.raises(PolicyCompileError) as caught:
        read_policy(policy)

    assert "write tool.glob: 'get_*'" in str(caught.value)


def test_a_name_with_a_star_can_be_written_as_a_literal():
    """What is meant to the letter is written so."""
    match = {"tool": {"literal": "get_*"}}

    read_policy({"version": 1, "rules": [{"id": "x", "match": match, "decision": "deny"}]})
