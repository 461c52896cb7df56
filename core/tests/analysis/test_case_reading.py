"""Reading test cases of a policy: what they may say, and what is refused with its place."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.trying import examples

from adjudge import PolicyCompileError, Principal, ToolMetadata, Verdict
from adjudge.analysis import load_policy_tests, read_policy_tests

CASE = {"name": "a", "call": {"tool": "pay"}, "expect": "deny"}


def file_of(*cases, **sections):
    """Give the text of a file of cases as a mapping."""
    return {"adjudge_tests": 1, "cases": list(cases), **sections}


def case(**changes):
    """Give the usual case with other keys; None takes one out."""
    changed = {**CASE, **changes}
    return {key: value for key, value in changed.items() if value is not None}


def problems(source, **options):
    """Give what is wrong with a file of cases."""
    with pytest.raises(PolicyCompileError) as refused:
        read_policy_tests(source, **options)
    return refused.value.problems


def only(*cases, **sections):
    """Read the one case of a file."""
    (found,) = read_policy_tests(file_of(*cases, **sections)).cases
    return found


def test_a_short_case_has_the_usual_surroundings():
    """A tool alone is a plain tool, called by somebody, with no arguments."""
    found = only(CASE)

    assert ("a", Verdict.DENY) == (found.name, found.expect.verdict)
    assert ("pay", {}, ToolMetadata()) == (
        found.request.tool,
        found.request.args,
        found.request.declared,
    )
    assert Principal("user", "tester") == found.request.context.principal


def test_a_case_can_say_all_of_a_call():
    """Every field of a request and of its context can be given."""
    found = only(
        case(
            call={
                "tool": "pay",
                "namespace": "bank",
                "args": {"amount": 5, "to": "x"},
                "given": ["amount"],
                "injected": {"tenant": "acme"},
                "declared": {"reversible": False, "scope": ["money"], "has_shadow": True},
                "resolved": {"a": "/b", "c": None},
            },
            context={
                "principal": {"kind": "agent", "id": "bot", "name": "Bot"},
                "environment": "prod",
                "workspace": "/srv",
                "extra": {"k": [1]},
                "session": {"labels": ["a"]},
                "correlation_id": "c1",
                "step_seq": 3,
                "timestamp": "2026-01-31T12:00:00+00:00",
            },
        )
    )
    request, context = found.request, found.request.context

    assert ("bank", {"amount": 5, "to": "x"}) == (request.namespace, request.args)
    assert (frozenset({"amount"}), {"tenant": "acme"}) == (request.given, request.injected)
    assert ToolMetadata(reversible=False, scope=("money",), has_shadow=True) == request.declared
    assert ({"a": "/b"}, frozenset({"c"})) == (request.resolved, found.unresolvable)
    assert Principal("agent", "bot", "Bot") == context.principal
    assert ("prod", "/srv", {"k": [1]}) == (context.environment, context.workspace, context.extra)
    assert ({"labels": ["a"]}, "c1", 3) == (
        context.session,
        context.correlation_id,
        context.step_seq,
    )
    assert datetime(2026, 1, 31, 12, tzinfo=UTC) == context.timestamp


def test_a_case_can_expect_all_of_a_decision():
    """Verdict, rule, arguments, reason, approvers and obligations."""
    expect = only(
        case(
            expect={
                "verdict": "approve_required",
                "rule": "r",
                "args": {"a": 1},
                "reason": "because",
                "approvers": ["ana"],
                "obligations": ["log"],
            }
        )
    ).expect

    assert (Verdict.APPROVE_REQUIRED, "r", {"a": 1}) == (expect.verdict, expect.rule, expect.args)
    assert ("because", ("ana",), ("log",)) == (expect.reason, expect.approvers, expect.obligations)


def test_what_a_file_says_of_context_and_tools_holds_for_each_case():
    """A key of the case stands in place of the file's."""
    sections = {
        "context": {"environment": "prod", "extra": {"tenant": "acme"}},
        "tools": {"pay": {"cost": "high", "namespace": "bank"}},
    }
    found = only(case(context={"extra": {}}), **sections).request

    assert ("prod", {}) == (found.context.environment, found.context.extra)
    assert ("bank", ToolMetadata(cost="high")) == (found.namespace, found.declared)


def test_a_tool_of_which_nothing_is_known_is_declared_null():
    """It then needs no place in the file's list of tools."""
    call = {"tool": "other", "declared": None}

    assert only(case(call=call), tools={"pay": {}}).request.declared is None


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"tool": "pya", "declared": {"reversible": False}}, 'no "pya". Did you mean "pay"?'),
        ({"tool": "pay", "args": {"amout": 1}}, 'no argument "amout". Did you mean "amount"?'),
    ],
)
def test_a_name_that_the_files_tools_do_not_have_is_refused(call, says):
    """A case of a misspelt tool or argument could pass for the wrong reason."""
    source = file_of(case(call=call), tools={"pay": {"args": ["amount"]}})

    assert says in "\n".join(problems(source))


def test_the_arguments_of_a_tool_are_known_only_where_the_file_says_them():
    """`tools:` without `args` says nothing of them."""
    call = {"tool": "pay", "args": {"amout": 1}}

    assert {"amout": 1} == only(case(call=call), tools={"pay": {}}).request.args


def test_json_and_toml_say_the_same_as_a_mapping(tmp_path):
    """The suffix says the format; the cases are equal but for their places."""
    written = file_of(case(call={"tool": "pay", "args": {"amount": 5}}))
    toml = (
        "adjudge_tests = 1\n[[cases]]\nname = 'a'\nexpect = 'deny'\n"
        "call = {tool = 'pay', args = {amount = 5}}\n"
    )
    assert written == tomllib.loads(toml)
    (tmp_path / "p.test.json").write_text(json.dumps(written))
    (tmp_path / "p.test.toml").write_text(toml)
    (plain,) = read_policy_tests(written).cases
    for name in ("p.test.json", "p.test.toml"):
        (found,) = load_policy_tests(tmp_path / name).cases
        assert plain.request == found.request
        assert plain.expect.verdict is found.expect.verdict


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({}, "It does not say that it holds policy tests"),
        ({"adjudge_tests": 1}, "It has no cases"),
        (file_of(), "there is nothing to check"),
        (file_of(CASE, adjudge_tests=2), "There is no version 2"),
        (file_of(CASE, adjudge_tests=True), "adjudge_tests is a whole number"),
        (file_of(CASE, case=[]), 'no key "case". Did you mean "cases"?'),
        (file_of(CASE, policy="a", layers={"x": "y"}), "of one policy or of layers"),
        (file_of(CASE, layers={}), "layers is a mapping"),
        (file_of(CASE, merge="first_layer_wins"), "there are none"),
        (file_of(CASE, layers={"x": "y"}, merge="last_layer_win"), '"last_layer_wins"?'),
        (file_of(CASE, tools={}), "tools is a mapping"),
        (file_of(CASE, tools={"pay": {"reversibel": True}}), 'Did you mean "reversible"?'),
        (file_of(CASE, tools={"pya": {}}), 'no "pay". Did you mean "pya"?'),
        (file_of(CASE, context={"principle": {}}), 'Did you mean "principal"?'),
        (file_of(CASE, CASE), 'The name "a" is taken by the case at cases[0]'),
        (file_of("deny"), "A case is a mapping"),
        (file_of(case(name=None)), "The case has no name"),
        (file_of(case(name="")), "name must not be empty"),
        (file_of(case(name="a\nb")), "A name is one line"),
        (file_of(case(call=None)), "The case has no call"),
        (file_of(case(call={})), "The call has no tool"),
        (file_of(case(call={"tol": "pay"})), 'Did you mean "tool"?'),
        (file_of(case(call={"tool": "pay", "args": []})), "args is a mapping"),
        (file_of(case(call={"tool": "pay", "given": ["x"]})), 'the model sent "x"'),
        (file_of(case(call={"tool": "pay", "resolved": {"a": 1}})), "resolved is a mapping"),
        (file_of(case(context={"principal": {"kind": "user"}})), "id is missing"),
        (file_of(case(context={"timestamp": "2026-01-31"})), "with its offset"),
        (file_of(case(expect=None)), "The case expects nothing"),
        (file_of(case(expect={})), "expect does not say which verdict"),
        (file_of(case(expect={"rule": "r"})), "expect does not say which verdict"),
        (file_of(case(expect="alow")), 'Did you mean "allow"?'),
        (file_of(case(expect={"verdict": "deny", "rul": "r"})), 'Did you mean "rule"?'),
        (file_of(case(expect={"verdict": "deny", "args": {}})), "runs with no arguments"),
        (file_of(case(expect={"verdict": "deny", "approvers": []})), "Nobody is asked"),
        (
            file_of(case(expect={"verdict": "deny", "rule": "r", "default": "on_no_match"})),
            "keep one of the two",
        ),
        (file_of(case(expect={"verdict": "deny", "default": "on_match"})), '"on_no_match"?'),
    ],
)
def test_what_says_too_little_or_too_much_is_refused(source, says):
    """Clause 4, of test cases: each problem is a sentence with the nearest known word."""
    found = problems(source)

    assert any(says in problem for problem in found), found


def test_every_problem_is_reported_at_once():
    """A writer sees all that is wrong, not the first of it."""
    assert 4 == len(problems(file_of(case(name=None), case(call={}), case(expect=None), cas=1)))


@pytest.mark.parametrize("text", ["", " \n", "{", "[]", "1", '"adjudge_tests"'])
def test_text_that_holds_no_cases_is_refused(text):
    """An empty file, half a file and one of something else are errors with a reason."""
    assert problems(text, format="json", file="p.test.json")[0].startswith("p.test.json:")


@pytest.mark.needs_yaml
def test_a_problem_in_yaml_has_line_and_column():
    """file:line:column leads, as editors read it."""
    text = "adjudge_tests: 1\ncases:\n  - name: a\n    call: {tool: x}\n    expct: deny\n"

    assert problems(text, file="p.test.yaml")[0].startswith("p.test.yaml:3:5: cases[0]: ")
    assert problems(text, file="p.test.yaml")[1].startswith("p.test.yaml:5:5: cases[0].expct: ")


@pytest.mark.needs_yaml
def test_yaml_that_reads_otherwise_than_it_looks_is_refused():
    """Surprises of YAML 1.1 and keys that are given twice are problems in cases as in policies."""
    text = (
        "adjudge_tests: 1\ncases:\n  - name: a\n    expect: deny\n"
        "    call: {tool: x, args: {a: yes, b: 1, b: 2}}\n"
    )
    found = "\n".join(problems(text, file="p.test.yaml"))

    assert "Unquoted yes is read as true" in found
    assert '"b" is given twice' in found


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    """A missing file and a folder are errors of ours."""
    for path in (tmp_path / "none.test.json", tmp_path):
        with pytest.raises(PolicyCompileError, match="cannot be read"):
            load_policy_tests(path)


FULL = file_of(
    case(
        call={
            "tool": "pay",
            "namespace": "bank",
            "args": {"a": [1]},
            "given": ["a"],
            "injected": {"b": 1},
            "declared": {"cost": "low", "scope": ["x"], "reversible": True, "isolation": "i"},
            "resolved": {"a": "/b"},
        },
        context={
            "principal": {"kind": "user", "id": "u", "name": "n"},
            "extra": {},
            "step_seq": 1,
            "timestamp": "2026-01-31T12:00:00+00:00",
        },
        expect={"verdict": "allow", "rules": ["r"], "args": {}, "obligations": ["o"]},
    ),
    tools={"pay": {"labels": ["l"], "blast_radius_hint": 1, "has_shadow": False}},
    context={"environment": "e"},
    layers={"org": "a.yaml"},
    merge="last_layer_wins",
)
STRANGE = st.sampled_from(
    [None, True, 0, -1.5, 10**30, "", "x", "\x00", [], ["x"], [[]], {}, {"x": 1}, {"": None}]
)


def changed(value, path, new):
    """Give a JSON value with another one at a path, or with another key there."""
    if not path:
        return new
    if isinstance(value, dict):
        key = path[0]
        return {**value, key: changed(value[key], path[1:], new)}
    return [
        changed(each, path[1:], new) if at == path[0] else each for at, each in enumerate(value)
    ]


def paths(value, path=()):
    """Give the paths of everything within a JSON value."""
    yield path
    within = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else within:
        yield from paths(inner, (*path, key))


@settings(max_examples=examples(200))
@given(st.sampled_from([path for path in paths(FULL) if path]), STRANGE, st.booleans())
def test_nonsense_is_refused_or_read_and_never_breaks_the_reader(path, value, as_text):
    """Whatever stands anywhere in a file of cases, the answer is cases or a list of problems."""
    source = changed(FULL, path, value)
    found: tuple[str, ...] = ()
    cases = 0
    try:
        cases = len(read_policy_tests(json.dumps(source) if as_text else source).cases)
    except PolicyCompileError as error:
        found = error.problems

    assert (cases == 1) is not bool(found)
    assert all(problem[-1] in ".?)" for problem in found)
