"""What a policy says once it is read: the same values from every format."""

import json
import textwrap
from enum import StrEnum

import pytest

from adjudge._types import Obligation, Verdict
from adjudge._values import FrozenDict, FrozenList
from adjudge.errors import PolicyCompileError
from adjudge.policy._model import AllOf, Always, AnyOf, Defaults, Leaf, Not, Path, Ref
from adjudge.policy._reading.nodes import MAX_SLOW_TEXT
from adjudge.policy._reading.source import MAX_TEXT, read_policy


def match_of(match, **sections):
    """Read a policy of one rule; give its match."""
    return read_policy({"rules": [{"match": match}], **sections}).rules[0].match


def rule_of(**fields):
    """Read a policy of one rule for everything; give the rule."""
    return read_policy({"rules": [{"match": "always", **fields}]}).rules[0]


def edits_of(transform):
    """Read a transform; give its edits without places."""
    edits = rule_of(verdict="transform", transform=transform).edits
    return [(edit.kind, edit.path, edit.value) for edit in edits]


def plain(match):
    """Give a match without places, as nested tuples."""
    if isinstance(match, Leaf):
        operand = match.operand
        if isinstance(operand, Leaf | AllOf | AnyOf | Not | Always):
            operand = plain(operand)
        return (match.path.root, match.path.steps, match.operator, operand)
    if isinstance(match, Not):
        return ("not", plain(match.part))
    if isinstance(match, AllOf | AnyOf):
        word = "all" if isinstance(match, AllOf) else "any"
        return (word, *(plain(part) for part in match.parts))
    return "always"


YAML = """
    version: 1
    defaults: {on_no_match: allow, on_missing_shadow: dry_run}
    predicates:
      in_prod: {context.environment: prod}
    tools:
      pay: {reversible: false, cost: high, scope: [money], namespace: bank}
    rules:
      - id: pay
        priority: 10
        match: {all_of: [in_prod, {tool: pay, "args.amount.gt": 100.5}]}
        decision: approve_required
        approvers: [ann]
        timeout_seconds: 60
"""
TOML = """
    version = 1
    defaults = {on_no_match = "allow", on_missing_shadow = "dry_run"}
    predicates.in_prod = {"context.environment" = "prod"}
    tools.pay = {reversible = false, cost = "high", scope = ["money"], namespace = "bank"}
    [[rules]]
    id = "pay"
    priority = 10
    match.all_of = ["in_prod", {tool = "pay", "args.amount.gt" = 100.5}]
    decision = "approve_required"
    approvers = ["ann"]
    timeout_seconds = 60
"""
DICT = {
    "version": 1,
    "defaults": {"on_no_match": "allow", "on_missing_shadow": "dry_run"},
    "predicates": {"in_prod": {"context.environment": "prod"}},
    "tools": {
        "pay": {"reversible": False, "cost": "high", "scope": ["money"], "namespace": "bank"}
    },
    "rules": [
        {
            "id": "pay",
            "priority": 10,
            "match": {"all_of": ["in_prod", {"tool": "pay", "args.amount.gt": 100.5}]},
            "decision": "approve_required",
            "approvers": ["ann"],
            "timeout_seconds": 60,
        }
    ],
}


def summary(policy):
    """Give what a policy of one rule says, without places."""
    (rule,) = policy.rules
    tools = {name: (tool.namespace, tool.fields) for name, tool in policy.tools.items()}
    return (
        (policy.version, policy.defaults, tools),
        (rule.id, rule.priority, rule.order, rule.verdict, rule.approvers, rule.timeout_seconds),
        plain(rule.match),
        {name: plain(match) for name, match in policy.predicates.items()},
    )


EXPECTED = (
    (
        1,
        Defaults(on_missing_shadow=Verdict.DRY_RUN, on_no_match=Verdict.ALLOW),
        {"pay": ("bank", {"reversible": False, "cost": "high", "scope": ("money",)})},
    ),
    ("pay", 10, 0, Verdict.APPROVE_REQUIRED, ("ann",), 60.0),
    (
        "all",
        ("context", ("environment",), "eq", "prod"),
        ("all", ("tool", (), "eq", "pay"), ("args", ("amount",), "gt", 100.5)),
    ),
    {"in_prod": ("context", ("environment",), "eq", "prod")},
)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        pytest.param(DICT, {}, id="dict"),
        pytest.param(json.dumps(DICT), {}, id="json"),
        pytest.param(json.dumps(DICT).encode(), {}, id="bytes"),
        pytest.param("\ufeff" + json.dumps(DICT, indent=2), {"format": "json"}, id="bom"),
        pytest.param(textwrap.dedent(TOML), {"format": "toml"}, id="toml"),
        pytest.param(textwrap.dedent(TOML), {"file": "policy.toml"}, id="toml-file"),
    ],
)
def test_every_format_says_the_same(source, options):
    """A dict, JSON and TOML are read into one and the same policy."""
    assert EXPECTED == summary(read_policy(source, **options))


@pytest.mark.needs_yaml
def test_yaml_says_the_same():
    """YAML is read into the same policy as every other format."""
    assert EXPECTED == summary(read_policy(textwrap.dedent(YAML)))
    assert EXPECTED == summary(read_policy(json.dumps(DICT), format="yaml"))


@pytest.mark.needs_yaml
def test_a_yaml_mapping_may_begin_with_a_brace():
    """Text that begins with a brace and is no JSON is read as YAML."""
    assert 1 == read_policy("{version: 1}").version


def test_a_policy_without_rules_is_one_of_defaults():
    """Sections are optional; what they leave out has its default."""
    policy = read_policy({"version": 1, "rules": None, "tools": None, "predicates": None})

    assert (Defaults(), (), {}, {}) == (
        policy.defaults,
        policy.rules,
        policy.tools,
        policy.predicates,
    )


def test_a_rule_has_defaults():
    """A rule without id is called by its position, has priority 0 and denies."""
    policy = read_policy({"rules": [{"match": "always"}, {"match": "always"}]})

    assert [("rule_0", 0, 0), ("rule_1", 0, 1)] == [
        (rule.id, rule.priority, rule.order) for rule in policy.rules
    ]
    assert Verdict.DENY is policy.rules[0].verdict


@pytest.mark.parametrize(
    "word", ["allow", "ALLOW", "Allow", pytest.param(Verdict.ALLOW, id="enum")]
)
def test_a_verdict_is_read_in_any_case(word):
    """`decision` and `verdict` are the same key, in any case, and an enum stands for its value."""
    assert Verdict.ALLOW is rule_of(decision=word).verdict
    assert Verdict.ALLOW is rule_of(verdict=word).verdict


def test_predicates_are_put_in_place():
    """A name stands for its predicate, several in one list, and through other predicates."""
    match = match_of(
        {"any_of": ["both", "b"]},
        predicates={
            "both": {"all_of": ["a", "b"]},
            "a": {"tool": "x"},
            "b": "c",
            "c": {"args.n": 1},
        },
    )

    assert (
        "any",
        ("all", ("tool", (), "eq", "x"), ("args", ("n",), "eq", 1)),
        ("args", ("n",), "eq", 1),
    ) == plain(match)


def test_several_keys_of_a_mapping_must_all_hold():
    """Tests, combinations and operators side by side are a conjunction."""
    match = match_of(
        {"tool": "x", "not": {"args.a": 1}, "any_of": ["always"], "args.b": {"gt": 1, "lt": 5}}
    )

    assert (
        "all",
        ("tool", (), "eq", "x"),
        ("not", ("args", ("a",), "eq", 1)),
        ("any", "always"),
        ("all", ("args", ("b",), "gt", 1), ("args", ("b",), "lt", 5)),
    ) == plain(match)


@pytest.mark.parametrize(
    ("operator", "operand", "positive"),
    [("ne", 5, "eq"), ("not_in", [5], "in"), ("not_between", [1, 2], "between")],
)
def test_a_negated_operator_is_not_over_what_it_negates(operator, operand, positive):
    """`ne`, `not_in` and `not_between` are `not` over `eq`, `in` and `between`."""
    expected = ("not", ("args", ("x",), positive, operand))

    assert expected == plain(match_of({f"args.x.{operator}": operand}))
    assert expected == plain(match_of({"args.x": {operator: operand}}))


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ({"args.x": None}, ("eq", None)),
        ({"args.x": [1, {"a": None}]}, ("eq", [1, {"a": None}])),
        ({"args.x.exists": False}, ("exists", False)),
        ({"args.x.in": (1, "a", [2])}, ("in", [1, "a", [2]])),
        ({"args.x.in": frozenset({2, 1})}, ("in", [1, 2])),
        ({"args.x.between": ["a", "b"]}, ("between", ["a", "b"])),
        ({"args.x.starts_with": "a"}, ("starts_with", "a")),
        ({"args.x.ends_with": ["a", ""]}, ("ends_with", ["a", ""])),
        ({"args.x.contains": 5}, ("contains", 5)),
        ({"args.x.contains": {"literal": {"ref": 1}}}, ("contains", {"ref": 1})),
        ({"args.x.contains_any": [None, 1]}, ("contains_any", [None, 1])),
        ({"args.x.contains_all": {"literal": [{"ref": 1}]}}, ("contains_all", [{"ref": 1}])),
        ({"args.x.glob": "a/*"}, ("glob", "a/*")),
        ({"args.x.under": "/srv"}, ("under", "/srv")),
        ({"args.x.host_in": ["A.com", "*.b.c"]}, ("host_in", ["A.com", "*.b.c"])),
        ({"args.x": {"literal": {"ref": "args.y"}}}, ("eq", {"ref": "args.y"})),
        ({"args.x.eq": {"literal": {"literal": 1}}}, ("eq", {"literal": 1})),
        ({"args.x": {"literal": {}}}, ("eq", {})),
        ({"args.x.gt": {"literal": 5}}, ("gt", 5)),
        ({"args.x.matches": ""}, ("matches", "")),
        ({"args.x.size": 3}, ("size", (".", (), "eq", 3))),
        (
            {"args.x.size": {"gt": 3, "not_in": [5]}},
            ("size", ("all", (".", (), "gt", 3), ("not", (".", (), "in", [5])))),
        ),
        (
            {"args.x.each": {".": {"gt": 0}, ".sku.in": ["a"]}},
            ("each", ("all", (".", (), "gt", 0), (".", ("sku",), "in", ["a"]))),
        ),
        ({"args.x.some": {"not": {".": "a"}}}, ("some", ("not", (".", (), "eq", "a")))),
        (
            {"args.x.each": {".tags.some": {".": "a"}}},
            ("each", (".", ("tags",), "some", (".", (), "eq", "a"))),
        ),
        (
            {"args.x.normalized": {"in": ["a", "b"], "matches": "c"}},
            ("normalized", ("all", (".", (), "in", ["a", "b"]), (".", (), "matches", "c"))),
        ),
    ],
)
def test_an_operand_is_read(test, expected):
    """Each operator takes the operands that the language gives it."""
    assert ("args", ("x",), *expected) == plain(match_of(test))


@pytest.mark.parametrize("key", ["args.x", "args.x.eq", "args.x.in", "args.x.gt", "args.x.under"])
def test_a_reference_stands_for_an_operand(key):
    """Clause 9: the operand may be read from the call."""
    leaf = match_of({key: {"ref": "context.extra.a"}})

    assert Ref(Path("context", ("extra", "a"), "context.extra.a")) == leaf.operand


def test_what_is_read_cannot_be_changed():
    """Operands, transform values, parameters and declarations are frozen."""
    policy = read_policy(
        {
            "tools": {"t": {"labels": ["a"]}},
            "rules": [
                {
                    "match": {"args.x": [{"a": 1}]},
                    "verdict": "transform",
                    "transform": {"path": "args.x", "set": {"a": [1]}},
                    "obligations": [{"id": "o", "params": {"a": [1]}}],
                }
            ],
        }
    )
    (rule,) = policy.rules

    assert FrozenList is type(rule.match.operand)
    assert FrozenDict is type(rule.match.operand[0])
    assert FrozenDict is type(rule.edits[0].value)
    assert FrozenDict is type(rule.obligations[0].params)
    assert (FrozenDict, ("a",)) == (
        type(policy.tools["t"].fields),
        policy.tools["t"].fields["labels"],
    )


@pytest.mark.parametrize(
    ("transform", "edits"),
    [
        ({"jsonpath": "$.args.sql", "append": " x"}, [("append", ("sql",), " x")]),
        ({"jsonpath": "$.args.sql", "delete": True}, [("delete", ("sql",), True)]),
        ({"path": "args.a[0].b", "set": None}, [("set", ("a", 0, "b"), None)]),
        ({"set": {"a": 1}}, [("set", (), {"a": 1})]),
        ({"path": "args.a", "set": {"literal": {"ref": "x"}}}, [("set", ("a",), {"ref": "x"})]),
        (
            [{"path": "args.a", "set": 1}, {"path": "args.b", "append": [2]}],
            [("set", ("a",), 1), ("append", ("b",), [2])],
        ),
    ],
)
def test_a_transform_is_one_edit_or_several(transform, edits):
    """Clause 19: set, append and delete at nested paths, in the order given."""
    assert edits == edits_of(transform)


def test_obligations_are_ids_or_mappings():
    """A bare id is a post obligation without parameters."""
    rule = rule_of(
        obligations=["a", {"id": "b", "phase": "pre", "on": "always", "params": {"x": 1}}]
    )

    assert (
        Obligation("a"),
        Obligation("b", phase="pre", on="always", params={"x": 1}),
    ) == rule.obligations


def test_an_enum_stands_for_its_value():
    """Keys and values of a dict may be enums."""

    class Word(StrEnum):
        MATCH = "match"
        ALL = "always"

    assert isinstance(read_policy({"rules": [{Word.MATCH: Word.ALL}]}).rules[0].match, Always)


def test_a_text_has_a_greatest_length():
    """A policy of more than 64 MiB is refused before it is parsed."""
    with pytest.raises(PolicyCompileError, match="longer than 64 MiB"):
        read_policy("#" * (MAX_TEXT + 1))


@pytest.mark.parametrize(
    "source",
    [
        5,
        None,
        ["rules"],
        b"\xff",
        "\ud800: 1",
        pytest.param(b"", id="no-bytes"),
        "",
        {},
        '""',
        "[]",
    ],
)
def test_what_is_no_policy_is_refused(source):
    """Anything but a non-empty text or mapping in UTF-8 is a compile error."""
    with pytest.raises(PolicyCompileError):
        read_policy(source, format="json")


def test_an_unknown_format_is_refused():
    """The formats are yaml, json and toml."""
    with pytest.raises(PolicyCompileError, match="not 'xml'"):
        read_policy("x", format="xml")


def test_broken_toml_is_refused():
    """A TOML error keeps the parser's line and column; a key given twice is one of them."""
    for text in ("version = ", "version = 1\nversion = 1", "x = " + "[" * 3000):
        with pytest.raises(PolicyCompileError, match="TOML"):
            read_policy(text, format="toml")


def test_toml_has_a_bound_of_its_own():
    """Its parser is written in Python, and 64 MiB would take minutes."""
    text = f'description = "{"x" * MAX_SLOW_TEXT}"\n'

    with pytest.raises(PolicyCompileError, match="in TOML has at most 4 MiB"):
        read_policy(text, format="toml")


@pytest.mark.parametrize("key", ["a" + ".a" * 100_000, "a" + ' . "b"' * 100_000])
def test_a_toml_key_without_end_is_refused(key):
    """What the parser does with it grows with the square of its segments."""
    with pytest.raises(PolicyCompileError) as caught:
        read_policy(f"version = 1\n[{key}]\n", format="toml")

    assert ("policy:2:1: A key has more than 200 segments; no policy needs that.",) == (
        caught.value.problems
    )
