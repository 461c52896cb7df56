"""Absence, polarity and the two readings of a rule (clauses 6, 8, 11 and 13)."""

from __future__ import annotations

import itertools

import pytest
from asking import answer, call, decide, names, policy, rule

from adjudge.policy import evaluate


@pytest.mark.parametrize(
    ("decision", "match", "expected"),
    [
        ("deny", {"args.x.gt": 5}, "false"),
        ("allow", {"args.x.lt": 5}, "false"),
        ("allow", {"not": {"args.x.in": ["a"]}}, "false"),
        ("deny", {"not": {"args.x.in": ["a"]}}, "true"),
        ("deny", {"not": {"args.x.ne": "a"}}, "false"),
        ("allow", {"args.x.ne": "a"}, "false"),
        ("deny", {"args.x.ne": "a"}, "true"),
        ("dry_run", {"args.x.not_between": [1, 2]}, "true"),
        ("approve_required", {"args.x.not_in": ["a"]}, "true"),
        ("allow", {"not": {"not": {"args.x": "a"}}}, "false"),
        ("deny", {"not": {"not": {"args.x": "a"}}}, "false"),
        ("allow", {"args.x.exists": False}, "true"),
        ("allow", {"args.x.eq": None}, "true"),
        ("allow", {"args.x.ne": None}, "false"),
        ("allow", {"not": {"args.x.exists": True}}, "true"),
        ("allow", {"args.x.each": {".": 1}}, "false"),
        ("deny", {"not": {"args.x.each": {".": 1}}}, "true"),
    ],
)
@pytest.mark.parametrize("args", [{}, {"x": None}])
def test_absence(decision: str, match: dict[str, object], expected: str, args: object) -> None:
    """Clause 8: a leaf on an absent value is false, and below a negation absence never permits."""
    assert expected == answer(match, args, decision=decision)  # type: ignore[arg-type]


@pytest.mark.parametrize(("decision", "expected"), [("allow", "false"), ("deny", "true")])
def test_polarity_reaches_into_quantifiers(decision: str, expected: str) -> None:
    """Clause 8: a null element below a negation inside `each` is absent at odd polarity."""
    match = {"args.x.each": {".": {"ne": "a"}}}

    assert expected == answer(match, {"x": ["b", None]}, decision=decision)


TRUE, FALSE, ERROR = {"args.one": 1}, {"args.one": 2}, {"args.text": 1}
ARGS = {"one": 1, "text": "t"}
WORTH = {"true": 2, "error": 1, "false": 0}
LEAVES = [("true", TRUE), ("false", FALSE), ("error", ERROR)]


@pytest.mark.parametrize(
    "leaves", [*itertools.product(LEAVES, repeat=2), *itertools.product(LEAVES, repeat=3)]
)
def test_kleene(leaves: tuple[tuple[str, object], ...]) -> None:
    """Clause 6: a conjunction is its worst part and a disjunction its best, whatever the order."""
    parts = [part for _, part in leaves]
    ranked = sorted((name for name, _ in leaves), key=WORTH.__getitem__)

    assert ranked[0] == answer({"all_of": parts}, ARGS)
    assert ranked[-1] == answer({"any_of": parts}, ARGS)


@pytest.mark.parametrize(("leaf", "expected"), [(TRUE, "false"), (FALSE, "true"), (ERROR, "error")])
def test_negation(leaf: object, expected: str) -> None:
    """Clause 6: the negation of an error is an error."""
    assert expected == answer({"not": leaf}, ARGS)


def test_of_several_errors_the_same_is_reported_in_any_order() -> None:
    """Clause 6: the order of operands changes nothing, not even the reason."""
    errors = [{"args.text.gt": 1}, {"args.one": "x"}, {"args.one.size": 1}]
    for connective, count in itertools.product(("all_of", "any_of"), (2, 3)):
        decisions = {
            decide(rule(match={connective: list(order)}), args=ARGS)
            for order in itertools.permutations(errors[:count])
        }

        assert 1 == len(decisions)


@pytest.mark.parametrize(
    ("decision", "match", "expected"),
    [
        ("allow", {"args.x.matches": "^a+$"}, "false"),
        ("deny", {"args.x.matches": "^a+$"}, "true"),
        ("allow", {"not": {"args.x.matches": "^a+$"}}, "false"),
        ("deny", {"not": {"args.x.matches": "^a+$"}}, "true"),
    ],
)
def test_dollar(decision: str, match: dict[str, object], expected: str) -> None:
    """Clause 11: a newline before the end neither helps a permission nor evades a restriction."""
    assert expected == answer(match, {"x": "aaa\n"}, decision=decision)


@pytest.mark.parametrize(
    ("decision", "match", "namespace", "expected"),
    [
        ("allow", {"tool": "work"}, None, "true"),
        ("allow", {"tool": "work"}, "mcp", "false"),
        ("allow", {"tool.in": ["work"]}, "mcp", "false"),
        ("allow", {"tool.matches": "w"}, "mcp", "false"),
        ("allow", {"tool": "work", "tool.namespace": "mcp"}, "mcp", "true"),
        (
            "allow",
            {"all_of": [{"tool": "work"}, {"all_of": [{"tool.namespace": "mcp"}]}]},
            "mcp",
            "true",
        ),
        ("allow", {"tool": "work", "any_of": [{"tool.namespace": "mcp"}]}, "mcp", "false"),
        ("allow", {"tool": "work", "not": {"tool.namespace": "x"}}, "mcp", "false"),
        ("allow", {"any_of": [{"tool": "work"}, {"tool": "other"}]}, "mcp", "false"),
        ("allow", {"any_of": [{"tool": "work", "tool.namespace": "mcp"}]}, "mcp", "true"),
        ("deny", {"tool": "work"}, "mcp", "true"),
        ("deny", {"tool.ne": "work"}, "mcp", "true"),
        ("deny", {"tool.ne": "work"}, None, "false"),
        ("allow", {"tool.ne": "work"}, "mcp", "false"),
        ("allow", {"tool.ne": "other"}, "mcp", "true"),
    ],
)
def test_namespace(
    decision: str, match: dict[str, object], namespace: str | None, expected: str
) -> None:
    """Clause 13: a bare tool name permits the tool without a namespace, and restricts it in any."""
    assert expected == answer(match, decision=decision, namespace=namespace)


@pytest.mark.parametrize(("namespace", "expected"), [("mcp", "allow"), ("evil", "deny")])
def test_declared_namespace(namespace: str, expected: str) -> None:
    """Clause 13: a bare tool name permits it in the namespace that `tools:` declares for it."""
    bundle = policy(rule("allow", {"tool": "work"}), tools={"work": {"namespace": "mcp"}})

    assert expected == evaluate(bundle, call(namespace=namespace)).verdict


def test_a_tool_name_is_not_split_at_dots() -> None:
    """Clause 13: a tool called `mcp.work` is no `work`."""
    assert "false" == answer({"tool": "work"}, tool="mcp.work")
    assert "true" == answer({"tool": "mcp.work"}, tool="mcp.work")


def test_a_rule_for_another_tool_cannot_err() -> None:
    """Clause 6: false and error is false, so a rule is no floor for tools that it does not name."""
    decision = decide(
        rule("deny", {"tool": "other", "args.x.gt": 1}), rule("allow"), args={"x": "text"}
    )

    assert ("allow", ("allow",)) == (decision.verdict, decision.matched_rules)


def test_rules_of_a_tool_and_rules_of_all_keep_their_order() -> None:
    """Clause 14: an index by tool does not change which rule is first."""
    rules = [
        rule("allow", {"args.x": 1}, id="general"),
        rule("allow", {"tool": "work", "args.x.le": 2}, id="own"),
        rule("allow", {"args.x.le": 3}, id="later"),
        rule("allow", {"tool.in": ["rest", "work"]}, id="last"),
    ]
    found = [names(decide(*rules, args={"x": x})) for x in (1, 2, 3, 4)]

    assert [("general",), ("own",), ("later",), ("last",)] == found
