"""Which rules are asked about a tool changes what a decision costs, and never what it is."""

from __future__ import annotations

from itertools import permutations

import pytest
from asking import answer, call, decide, policy, rule

from adjudge._types import ToolMetadata
from adjudge.policy import _defaults, compile_policy, evaluate


def asked(bundle, request):
    """Give the ids of the rules that are asked about a request, in order."""
    return [step[2].id for step in bundle._compiled.rules.steps(request)]


def test_rules_of_other_tools_are_not_asked():
    """Of 100,000 rules for as many tools one call asks those of its own tool."""
    bundle = policy(*(rule(id=f"r{n}", match={"tool": f"t{n}"}) for n in range(1000)))

    assert ["r999"] == asked(bundle, call(tool="t999"))
    assert [] == asked(bundle, call(tool="other"))


@pytest.mark.parametrize(
    "match",
    [
        {"tool.glob": "files_*"},
        {"tool.starts_with": "files_"},
        {"tool.matches": "^files_"},
        {"not": {"tool.in": ["work", "pay"]}},
        {"any_of": [{"tool": "files_read"}, {"tool": "files_write"}]},
        {"tool.glob": "files_*", "args.x.gt": 5},
    ],
)
def test_a_rule_that_says_no_to_the_name_is_not_asked(match):
    """What a rule says of the tool's name alone is settled once for each tool."""
    bundle = policy(rule(match=match))

    assert ["deny"] == asked(bundle, call(tool="files_read"))
    assert [] == asked(bundle, call(tool="work"))


def test_a_name_that_is_an_error_keeps_the_rule():
    """Clause 15: a test of the tool's name that errs leaves its floor."""
    bundle = policy(rule(match={"tool.host_in": ["a.example"], "args.x": 1}))
    decision = evaluate(bundle, call({"x": 1}))

    assert ("<rule_error:deny:BadUrl>", "<default:on_no_match>") == decision.matched_rules


@pytest.mark.parametrize(
    ("decision", "namespace", "expected"),
    [
        ("allow", None, ("allow",)),
        ("allow", "mcp", ("<default:on_no_match>",)),
        ("deny", None, ("deny",)),
        ("deny", "mcp", ("deny",)),
    ],
)
def test_the_namespace_is_settled_with_the_name(decision, namespace, expected):
    """Clause 13: x in permitting position is x without a namespace, asked in either order."""
    bundle = policy(rule(decision, {"tool": "work", "args.x.gt": 1}))
    other = None if namespace else "mcp"
    evaluate(bundle, call({"x": 2}, namespace=other))

    assert expected == evaluate(bundle, call({"x": 2}, namespace=namespace)).matched_rules


def test_rules_for_a_tool_and_rules_for_all_stay_in_order():
    """Clause 14: a rule that names no tool stands where its priority and the file put it."""
    bundle = policy(
        rule(id="low", match={"tool": "work", "args.x": 1}, priority=-1),
        rule(id="all", match={"args.x": 2}),
        rule(id="high", match={"tool": "work", "args.x": 3}, priority=1),
        rule(id="last", match={"args.x": 4}, priority=-2),
    )

    assert ["high", "all", "low", "last"] == asked(bundle, call())


def test_a_transform_is_left_out_where_neither_reading_can_meet():
    """Clause 8: a transform is read both ways, and stays where one of them may be met."""
    edit = {"path": "args.x", "set": 1}
    bundle = policy(rule("transform", {"tool": "work"}, transform=edit))

    assert ["transform"] == asked(bundle, call(namespace="mcp"))
    assert [] == asked(bundle, call(tool="other"))


def test_invented_names_fill_no_memory():
    """What is kept of rules and defaults is bounded, however many tools are asked about."""
    bundle = policy(rule(match={"tool.glob": "files_*"}), *(rule(id=f"r{n}") for n in range(999)))
    steps = bundle._compiled.rules._kept

    for n in range(500):
        evaluate(bundle, call(tool=f"invented{n}"))
        evaluate(bundle, call(tool="long" * 1000 + str(n)))

    assert 500 > steps.cache_info().currsize


def test_invented_namespaces_fill_no_memory():
    """The rules of one tool are kept for so many namespaces only as its rules allow."""
    bundle = policy(*(rule(id=f"r{n}", match={"tool": "work", "args.x": n}) for n in range(1000)))

    for n in range(500):
        evaluate(bundle, call({"x": 999}, namespace=f"invented{n}"))

    assert 500 > bundle._compiled.rules._kept.cache_info().currsize


def test_a_default_is_made_once_for_each_tool():
    """The decision of a default names its tool, and is the same one the next time."""
    bundle = policy()

    assert evaluate(bundle, call()) is evaluate(bundle, call({"x": 1}))
    assert "'other'" in evaluate(bundle, call(tool="other")).reason


def test_a_default_goes_by_what_the_tool_says_of_itself_now():
    """Clause 17: the same name with other metadata gets its own default."""
    bundle = compile_policy({"defaults": {"on_no_match": "allow"}})

    def by_default(declared):
        return evaluate(bundle, call(declared=declared)).matched_rules

    assert ("<default:on_no_match>",) == by_default(ToolMetadata())
    assert ("<default:on_missing_shadow>",) == by_default(ToolMetadata(reversible=False))
    assert ("<default:on_missing_shadow>",) == by_default(None)
    assert ("<default:on_no_match>",) == by_default(ToolMetadata())


def test_what_is_kept_of_defaults_makes_room(monkeypatch):
    """Past the greatest number of names the oldest ones are forgotten, and made again."""
    monkeypatch.setattr(_defaults, "_MOST_KEPT", 2)
    bundle = policy()
    first = evaluate(bundle, call(tool="a"))

    for tool in ("b", "c"):
        evaluate(bundle, call(tool=tool))

    assert first == evaluate(bundle, call(tool="a"))
    assert first is not evaluate(bundle, call(tool="a"))


@pytest.mark.parametrize("keys", list(permutations(("x", "y", "z"))))
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"x": "no number", "y": 1, "z": 9}, "false"),
        ({"x": "no number", "y": 9, "z": 9}, "error"),
        ({"x": "no number", "y": "none", "z": 9}, "error"),
        ({"x": 9, "y": 9, "z": 9}, "true"),
        ({"x": 9, "y": 9}, "false"),
    ],
)
def test_tests_of_arguments_follow_kleene_in_every_order(keys, args, expected):
    """Clause 6: whether two or three stand together, one that is false settles it."""
    by_key = {f"args.{key}.gt": 5 for key in keys}

    assert expected == answer(by_key, args)
    if "z" in args:
        assert expected == answer({path: 5 for path in by_key if path != "args.z.gt"}, args)


def test_the_same_of_two_errors_is_reported_in_every_order():
    """Clause 6: which of two errors is reported does not hang on the order of the tests."""
    args = {"x": "no number", "y": [1]}
    one = decide(rule(match={"args.x.gt": 5, "args.y.gt": 5}), args=args)
    other = decide(rule(match={"args.y.gt": 5, "args.x.gt": 5}), args=args)

    assert one == other


def test_a_subject_that_no_engine_searches_is_an_error():
    """Clause 11: a text beyond the bound of a pattern that RE2 does not have is an error."""
    match = {"args.x.matches": "foo.*bar(?!x)"}

    assert "true" == answer(match, {"x": "foobar"})
    assert "error" == answer(match, {"x": "foobar" + "y" * 5000})
