"""Transforms: how they rewrite, and how their result is judged (clauses 8 and 19)."""

from __future__ import annotations

from typing import Any

import pytest
from asking import call, decide, names, policy, rule

from adjudge._types import ActionRequest, Decision, ExecutionContext
from adjudge.policy import deny, evaluate, transform


def rewrite(match: Any = "always", **edit: Any) -> dict[str, Any]:
    """Give a transform rule with one edit."""
    return rule("transform", match, id=edit.pop("id", "rewrite"), transform=edit)


@pytest.mark.parametrize(
    ("edit", "args", "expected"),
    [
        ({"path": "args.x", "set": 1}, {}, {"x": 1}),
        ({"path": "args.a.b", "set": 1}, {"a": {}}, {"a": {"b": 1}}),
        ({"path": "args.a[0]", "set": 1}, {"a": [0]}, {"a": [1]}),
        ({"path": "args", "set": {"y": 1}}, {"x": 1}, {"y": 1}),
        ({"path": "args.x", "append": "!"}, {"x": "hi"}, {"x": "hi!"}),
        ({"path": "args.x", "append": [1]}, {"x": [0]}, {"x": [0, [1]]}),
        ({"path": "args.x", "delete": True}, {"x": 1, "y": 2}, {"y": 2}),
        ({"path": "args.x", "delete": True}, {"y": 2}, {"y": 2}),
        ({"path": "args.a.b", "delete": True}, {}, {}),
        ({"path": "args.a.b", "delete": True}, {"a": None}, {"a": None}),
        ({"path": "args.a[0]", "delete": True}, {"a": [1, 2]}, {"a": [2]}),
        ({"path": "args.a[5]", "delete": True}, {"a": [1, 2]}, {"a": [1, 2]}),
    ],
)
def test_edit(edit: dict[str, Any], args: dict[str, Any], expected: dict[str, Any]) -> None:
    """Clause 19: `set`, `append` and `delete`, at any depth."""
    decision = decide(rewrite(**edit), args=args)

    assert ("transform", expected) == (decision.verdict, decision.effective_args)


@pytest.mark.parametrize(
    ("edit", "args"),
    [
        ({"path": "args.a.b", "set": 1}, {}),
        ({"path": "args.a.b", "set": 1}, {"a": None}),
        ({"path": "args.a.b", "set": 1}, {"a": "text"}),
        ({"path": "args.a[0]", "set": 1}, {"a": []}),
        ({"path": "args.a[0]", "set": 1}, {"a": {"0": 1}}),
        ({"path": "args.x", "append": "!"}, {}),
        ({"path": "args.x", "append": "!"}, {"x": None}),
        ({"path": "args.x", "append": "!"}, {"x": 1}),
        ({"path": "args.x", "append": 1}, {"x": "hi"}),
        ({"path": "args.a.b", "delete": True}, {"a": "text"}),
    ],
)
def test_what_cannot_be_applied_denies(edit: dict[str, Any], args: dict[str, Any]) -> None:
    """Clause 19: an edit that these arguments do not take is a denial that names the place."""
    decision = decide(rewrite(**edit), args=args)

    assert ("deny", None) == (decision.verdict, decision.effective_args)
    assert "args." in decision.reason


def test_a_rewrite_that_nests_too_deeply_denies() -> None:
    """Clause 2: the result is held to what arguments are held to."""
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    nested = {"a": {"b": {"c": {"d": {}}}}}
    decision = decide(rewrite(path="args.a.b.c.d.e", set=deep), args=nested)

    assert "deny" == decision.verdict


def test_several_edits_apply_in_order() -> None:
    """Clause 19: each edit sees what the one before it wrote."""
    edits = [{"path": "args.x", "set": "a"}, {"path": "args.x", "append": "b"}]

    assert {"x": "ab"} == decide(rule("transform", transform=edits)).effective_args


@pytest.mark.parametrize("verdict", ["deny", "dry_run", "approve_required"])
def test_a_newly_met_restriction_wins(verdict: str) -> None:
    """Clause 19: what only the final arguments meet counts, whatever its priority."""
    decision = decide(
        rule("transform", transform={"path": "args.x", "set": 9}, obligations=["a"]),
        rule(verdict, {"args.x.gt": 5}, obligations=["b"], priority=-9),
        args={"x": 1},
    )

    assert verdict == decision.verdict
    assert (None if verdict == "deny" else {"x": 9}) == decision.effective_args
    expected = ["b"] if verdict == "deny" else ["a", "b"]
    assert expected == [each.id for each in decision.obligations]


def test_a_restriction_that_errs_on_the_final_arguments_is_a_floor() -> None:
    """Clause 19: a restriction that errs on the final arguments counts as its floor."""
    decision = decide(
        rewrite(path="args.x", set="text"), rule("dry_run", {"args.x.gt": 5}), args={"x": 1}
    )

    assert ("dry_run", {"x": "text"}) == (decision.verdict, decision.effective_args)
    assert ("<rule_error:dry_run:WrongKind>", "rewrite") == decision.matched_rules


def test_what_the_original_met_stays_shadowed() -> None:
    """Clause 19: what was true before is not newly met while the transform still matches."""
    decision = decide(rewrite(path="args.x", set=1), rule("deny", {"args.y": 1}), args={"y": 1})

    assert "transform" == decision.verdict


def test_a_rule_comes_out_of_the_shadow() -> None:
    """Clause 19: once the transform no longer matches, what it shadowed is newly met."""
    decision = decide(
        rewrite({"args.tenant.ne": "mine"}, path="args.tenant", set="mine"),
        rule("approve_required", {"args.amount.gt": 5}),
        args={"tenant": "other", "amount": 9},
    )

    assert ("approve_required", {"tenant": "mine", "amount": 9}) == (
        decision.verdict,
        decision.effective_args,
    )


def test_a_rule_stays_in_another_rule_s_shadow() -> None:
    """Clause 19: a catch-all below an allow is not newly met while the allow matches the result."""
    decision = decide(
        rewrite({"args.tenant.ne": "mine"}, path="args.tenant", set="mine"),
        rule("allow", {"tool": "work"}),
        rule("deny"),
        args={"tenant": "other"},
    )

    assert "transform" == decision.verdict


def test_a_rule_that_decides_the_result_keeps_the_catch_all_in_the_shadow() -> None:
    """Clause 19: arguments capped to what a rule allows do not meet the denial below that rule."""
    rules = (
        rewrite({"args.amount.gt": 100}, path="args.amount", set=100),
        rule("allow", {"args.amount.le": 100}),
        rule("deny"),
    )

    capped = decide(*rules, args={"amount": 500})

    assert ("transform", {"amount": 100}) == (capped.verdict, capped.effective_args)
    assert "deny" == decide(rules[0], rules[2], args={"amount": 500}).verdict


def test_a_newly_met_transform_denies() -> None:
    """Clause 19: arguments are rewritten once; what would rewrite the result denies."""
    decision = decide(
        rewrite(path="args.x", set=9),
        rewrite({"args.x.gt": 5}, path="args.x", set=5, id="cap"),
        args={"x": 1},
    )

    assert "deny" == decision.verdict
    assert "'cap'" in decision.reason


def test_what_the_model_sent_stays_what_it_was() -> None:
    """Clause 19: an argument that a transform adds was not sent by the model."""
    decision = decide(rewrite(path="args.x", set=1), rule("deny", {"given.x": True}), args={})

    assert "transform" == decision.verdict


DOUBTFUL = {"args.tenant.ne": "mine"}
"""Matches an absent tenant as a restricting rule alone."""


@pytest.mark.parametrize("below", ["deny", "dry_run", "approve_required"])
def test_a_doubtful_transform_yields_to_a_restriction(below: str) -> None:
    """Clause 8: an ask, a preview or a denial stands, on the arguments as proposed."""
    decision = decide(rewrite(DOUBTFUL, path="args.tenant", set="mine"), rule(below), args={})

    assert (below, None, (below,)) == (
        decision.verdict,
        decision.effective_args,
        decision.matched_rules,
    )


def test_a_doubtful_transform_yields_to_a_restricting_default() -> None:
    """Clause 8: the defaults count as well."""
    decision = decide(rewrite(DOUBTFUL, path="args.tenant", set="mine"), args={})

    assert ("deny", ("<default:on_no_match>",)) == (decision.verdict, decision.matched_rules)


def test_a_doubtful_transform_applies_instead_of_an_allow() -> None:
    """Clause 8: where the call would be let through, it goes through rewritten."""
    decision = decide(rewrite(DOUBTFUL, path="args.tenant", set="mine"), rule("allow"), args={})

    assert ("transform", {"tenant": "mine"}, ("rewrite",)) == (
        decision.verdict,
        decision.effective_args,
        decision.matched_rules,
    )


def test_a_doubtful_transform_applies_instead_of_another() -> None:
    """Clause 8: it also goes before a transform below it."""
    decision = decide(
        rewrite({"tool": "work"}, path="args.x", set=1, id="first"),
        rewrite(path="args.x", set=2, id="second"),
        namespace="mcp",
    )

    assert ({"x": 1}, ("first",)) == (decision.effective_args, decision.matched_rules)


def test_an_error_in_either_reading_is_an_error() -> None:
    """Clause 8: a transform that errs denies, also where its other reading is settled."""
    only_restricting_errs = {**DOUBTFUL, "args.x.gt": 1}
    decision = decide(
        rewrite(only_restricting_errs, path="args.x", set=1), rule("allow"), args={"x": "text"}
    )

    assert ("deny", "<rule_error:rewrite:WrongKind>") == (
        decision.verdict,
        decision.matched_rules[0],
    )


def test_a_doubtful_transform_is_judged_on_its_result() -> None:
    """Clauses 8 and 19: a doubtful transform that applies meets what its result meets."""
    decision = decide(
        rewrite(DOUBTFUL, path="args.tenant", set="mine"),
        rule("allow"),
        rule("dry_run", {"args.tenant": "mine"}, priority=-1),
        args={},
    )

    assert ("dry_run", {"tenant": "mine"}) == (decision.verdict, decision.effective_args)


def test_a_python_rewrite_is_judged_too() -> None:
    """Clause 19: a rewrite by a Python rule is judged on its result."""

    def raise_amount(_request: ActionRequest, _context: ExecutionContext) -> Decision:
        return transform({"amount": 900})

    bundle = policy(rule("deny", {"args.amount.gt": 500}, priority=-1), python_rules=[raise_amount])

    assert "deny" == evaluate(bundle, call({"amount": 1})).verdict


def test_a_python_rule_that_answers_otherwise_is_newly_met() -> None:
    """Clause 19: a Python rule that denies the result has not said so before, whatever it said."""

    def judge(request: ActionRequest, _context: ExecutionContext) -> Decision | None:
        return deny("no") if request.args.get("x") == 1 else None

    bundle = policy(rewrite(path="args.x", set=1), python_rules=[judge])

    assert ("deny", "no") == (
        (decision := evaluate(bundle, call())).verdict,
        decision.reason,
    )


def test_the_strictest_newly_met_rule_alone_wins() -> None:
    """Clause 19: under a newly met preview a newly met ask adds nothing."""
    decision = decide(
        rewrite(path="args.x", set=9),
        rule("approve_required", {"args.x": 9}, obligations=["ask"]),
        rule("dry_run", {"args.x": 9}, obligations=["preview"]),
    )

    assert ["preview"] == [each.id for each in decision.obligations]
    assert ("rewrite", "dry_run") == names(decision)
