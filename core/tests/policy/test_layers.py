"""Layers: judged alone, combined, and only ever tightened by one another (clause 20)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from asking import call, rule

from adjudge._types import Decision, ToolMetadata, Verdict
from adjudge.policy import (
    PolicyLayer,
    allow,
    compile_policy,
    deny,
    evaluate,
    first_layer_wins,
    last_layer_wins,
    strict_overrides_loose,
    transform,
)

STRICTNESS = ["allow", "transform", "approve_required", "dry_run", "deny"]
ERRS = {"args.text.gt": 1}
SET_X = {"path": "args.x", "set": 1}


def layer(name: str, *rules: Any, **top: Any) -> PolicyLayer:
    """Give one layer with these rules."""
    return PolicyLayer(name, {"version": 1, "rules": list(rules), **top})


def decide(*layers: PolicyLayer, merge: Any = None, args: Any = None, **fields: Any) -> Decision:
    """Decide about one call of `work` by these layers."""
    return evaluate(compile_policy(list(layers), merge=merge), call(args, **fields))


@pytest.mark.parametrize("one", ["allow", "approve_required", "dry_run", "deny"])
@pytest.mark.parametrize("other", ["allow", "approve_required", "dry_run", "deny"])
def test_the_strictest_layer_wins(one: str, other: str) -> None:
    """Clause 20: under `strict_overrides_loose` the strictest verdict is the decision."""
    decision = decide(layer("a", rule(one)), layer("b", rule(other)))

    assert max(one, other, key=STRICTNESS.index) == decision.verdict


def test_rules_are_named_with_their_layers() -> None:
    """Clause 20: `matched_rules` says which layer spoke; where several agree all are named."""
    assert ("a:deny",) == decide(layer("a", rule("deny")), layer("b", rule("allow"))).matched_rules
    assert ("a:deny", "b:deny") == decide(
        layer("a", rule("deny")), layer("b", rule("deny"))
    ).matched_rules


def test_a_lone_decision_is_the_prebuilt_one() -> None:
    """Clause 21: where one layer decides without error or transform nothing is built."""
    bundle = compile_policy([layer("a", rule("allow")), layer("b")])

    assert evaluate(bundle, call({"x": 1})) is evaluate(bundle, call({"x": 2}))


def test_defaults_count_where_all_abstain() -> None:
    """Clause 20: the strictest default of all layers, and only if no layer decides."""
    loose = {"on_no_match": "allow", "on_missing_shadow": "allow"}
    layers = [layer("a", defaults=loose), layer("b", defaults={"on_no_match": "dry_run"})]

    assert ("dry_run", ("<default:on_no_match>",)) == (
        (decision := decide(*layers)).verdict,
        decision.matched_rules,
    )
    assert "allow" == decide(*layers, layer("c", rule("allow"))).verdict


def test_an_abstaining_layer_that_erred_brings_its_default() -> None:
    """Clause 20: where a restriction of an abstaining layer errs, its default is a floor too."""
    erring = layer("a", rule("approve_required", ERRS), defaults={"on_no_match": "deny"})
    decision = decide(erring, layer("b", rule("allow")), args={"text": "t"})

    assert ("deny", "a:<rule_error:approve_required:WrongKind>") == (
        decision.verdict,
        decision.matched_rules[0],
    )


def test_an_errored_plain_allow_brings_no_default() -> None:
    """Clause 20: a permission that could not be judged does not restrict other layers."""
    decision = decide(
        layer("a", rule("allow", ERRS)), layer("b", rule("allow")), args={"text": "t"}
    )

    assert "allow" == decision.verdict
    assert ("a:<rule_error:allow:WrongKind>", "b:allow") == decision.matched_rules


def veto_nothing(layers: Any) -> Decision:
    """Allow whatever the layers say."""
    return allow("fine")


@pytest.mark.parametrize("merge", [first_layer_wins, last_layer_wins, veto_nothing])
def test_floors_hold_under_every_combiner(merge: Any) -> None:
    """Clause 20: the floor of an errored rule binds the other layers' decisions too."""
    erring = layer("e", rule("dry_run", ERRS), rule("deny", {"args.text": "other"}))
    decision = decide(
        layer("a", rule("allow")), erring, layer("z", rule("allow")),
        merge=merge, args={"text": "t"},
    )  # fmt: skip

    assert "deny" == decision.verdict  # the floor, and the default of a layer that abstains


def test_first_and_last_layer() -> None:
    """Clause 20: one layer has its way; the transforms and obligations of others are dropped."""
    layers = [
        layer("none"),
        layer("a", rule("allow", obligations=["a"])),
        layer("b", rule("transform", transform=SET_X, obligations=["b"])),
    ]
    first = decide(*layers, merge=first_layer_wins)
    last = decide(*layers, merge=last_layer_wins)

    assert ("allow", None, ["a"]) == (
        first.verdict, first.effective_args, [each.id for each in first.obligations]
    )  # fmt: skip
    assert ("transform", {"x": 1}, ["b"]) == (
        last.verdict, last.effective_args, [each.id for each in last.obligations]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("merge", "kept"), [(first_layer_wins, []), (strict_overrides_loose, ["e"])]
)
def test_a_floor_of_a_layer_that_lost_brings_no_obligations(merge: Any, kept: list[str]) -> None:
    """Clause 20: under `first_layer_wins` a loser's obligations are dropped, its floor is not."""
    erring = layer(
        "e", rule("approve_required", ERRS, obligations=["e"]), rule("allow", {"args.text": "t"})
    )
    decision = decide(layer("a", rule("allow")), erring, merge=merge, args={"text": "t"})

    assert "approve_required" == decision.verdict
    assert kept == [each.id for each in decision.obligations]


def fails(_layers: Any) -> Decision:
    """Fail."""
    raise LookupError("no layer")


def answers_true(_layers: Any) -> Any:
    """Answer with a bool."""
    return True


async def waits(_layers: Any) -> Decision:
    """Answer later."""
    return allow()


def invents(_layers: Any) -> Decision:
    """Answer with arguments that no layer has seen."""
    return transform({"x": "anything"})


@pytest.mark.parametrize("merge", [fails, answers_true, waits, invents])
def test_a_combiner_that_errs_denies(merge: Any) -> None:
    """Clause 20: whatever a combiner does but answer with a Decision is a denial with its cause."""
    decision = decide(layer("a", rule("allow")), merge=merge)

    assert "deny" == decision.verdict
    assert decision.matched_rules[0].startswith(f"<rule_error:{merge.__name__}:")
    assert merge.__name__ in decision.reason


def test_an_ask_by_a_combiner_is_one_set() -> None:
    """An ask that a combiner makes up has an approver set, of whoever the handler asks."""

    def asks(_layers: Any) -> Decision:
        return Decision(Verdict.APPROVE_REQUIRED)

    assert ((),) == decide(layer("a", rule("allow")), merge=asks).approver_sets


def test_transforms_compose_in_layer_order() -> None:
    """Clause 20: rewrites of different places are joined, also under an ask or a preview."""
    layers = [
        layer("a", rule("transform", transform=SET_X)),
        layer("b", rule("transform", transform={"path": "args.y", "set": 2})),
    ]
    asked = decide(*layers, layer("c", rule("approve_required")))

    assert {"x": 1, "y": 2} == decide(*layers).effective_args
    assert ("approve_required", {"x": 1, "y": 2}) == (asked.verdict, asked.effective_args)


def test_equal_transforms_count_once() -> None:
    """Clause 20: two layers that write the same do not write twice."""
    appending = rule("transform", transform={"path": "args.x", "append": "!"})

    assert {"x": "hi!"} == decide(
        layer("a", appending), layer("b", appending), args={"x": "hi"}
    ).effective_args


def test_true_is_not_one_in_a_transform() -> None:
    """Clause 1: writing true and writing 1 are two different rewrites."""
    decision = decide(
        layer("a", rule("transform", transform={"path": "args.x", "set": True})),
        layer("b", rule("transform", transform={"path": "args.x", "set": 1})),
    )

    assert "deny" == decision.verdict


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"path": "args.x", "set": 1}, {"path": "args.x", "set": 2}),
        ({"path": "args.a", "set": {}}, {"path": "args.a.b", "set": 2}),
        ({"path": "args.l[0]", "delete": True}, {"path": "args.l[1]", "set": 2}),
        ({"path": "args.l[0]", "delete": True}, {"path": "args.l[1].k", "set": 2}),
        ({"path": "args.l[0]", "delete": True}, {"path": "args.l[1]", "delete": True}),
        ({"path": "args.l[0]", "delete": True}, {"path": "args.l", "append": 2}),
    ],
)
def test_rewrites_that_touch_deny(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Clause 20: on one path, a path and its prefix, or a list that loses elements, layers deny."""
    for first, second in ((one, other), (other, one)):
        decision = decide(
            layer("a", rule("transform", transform=first)),
            layer("b", rule("transform", transform=second)),
            args={"l": [1, {"k": 1}], "a": {}},
        )

        assert ("deny", ("a:transform", "b:transform")) == (
            decision.verdict,
            decision.matched_rules,
        )


@pytest.mark.parametrize("verdict", ["deny", "dry_run", "approve_required"])
def test_the_result_is_judged_by_every_layer(verdict: str) -> None:
    """Clause 20: a layer without a transform judges the final arguments afresh."""
    decision = decide(
        layer("a", rule("transform", transform=SET_X)),
        layer("b", rule(verdict, {"args.x": 1}), rule("allow")),
    )

    assert verdict == decision.verdict


def test_the_stricter_judgement_of_a_layer_counts() -> None:
    """Clause 20: rewriting away what a layer restricts does not get past that layer."""
    decision = decide(
        layer("a", rule("transform", transform=SET_X)),
        layer("b", rule("approve_required", {"args.x": 0}), rule("allow")),
        args={"x": 0},
    )

    assert ("approve_required", {"x": 1}) == (decision.verdict, decision.effective_args)


def test_an_allow_that_no_longer_holds_brings_the_default() -> None:
    """Clause 20: a layer that allowed the original and no longer matches judges by its default."""
    decision = decide(
        layer("a", rule("transform", transform=SET_X)),
        layer("b", rule("allow", {"args.x": 0})),
        args={"x": 0},
    )

    assert "deny" == decision.verdict
    assert "b:<default:on_no_match>" in decision.matched_rules


def test_a_transform_that_only_the_result_meets_denies() -> None:
    """Clauses 19 and 20: another layer's transform does not rewrite what was rewritten."""
    decision = decide(
        layer("a", rule("transform", transform=SET_X)),
        layer("b", rule("transform", {"args.x": 1}, transform={"path": "args.y", "set": 2})),
    )

    assert "deny" == decision.verdict


def test_a_layer_judges_the_joint_result_of_its_own_transform() -> None:
    """Clause 20: where its own transform matched a layer judges the result as in clause 19."""
    decision = decide(
        layer(
            "a",
            rule("transform", transform=SET_X),
            rule("dry_run", {"args.x": 1, "args.y": 2}, priority=-1),
        ),
        layer("b", rule("transform", transform={"path": "args.y", "set": 2})),
    )

    assert "dry_run" == decision.verdict


def test_every_layer_s_approvers_must_agree() -> None:
    """Clause 20: each layer's approver set must be met, and the shortest time-out counts."""
    decision = decide(
        layer("a", rule("approve_required", approvers=["ann"], timeout_seconds=60)),
        layer("b", rule("approve_required", approvers=["bob"], timeout_seconds=30)),
        layer("c", rule("approve_required", approvers=["ann"])),
    )

    assert (("ann",), ("bob",)) == decision.approver_sets
    assert 30 == decision.timeout_seconds


def test_whose_obligations_ride_along() -> None:
    """Clause 20: of every layer that lets the body run, or of those that deny or preview."""

    def of(*verdicts: str) -> list[str]:
        layers = [
            layer(f"l{index}", rule(verdict, obligations=[f"{verdict}{index}"]))
            for index, verdict in enumerate(verdicts)
        ]
        return [each.id for each in decide(*layers).obligations]

    assert ["allow0", "approve_required1"] == of("allow", "approve_required")
    assert ["deny1", "deny2"] == of("allow", "deny", "deny")
    assert ["dry_run1"] == of("allow", "dry_run")


def test_a_doubtful_transform_alone_falls_to_its_layer_s_default() -> None:
    """Clause 8: a layer that has only a doubtful transform and a default of deny denies."""
    doubtful = rule("transform", {"args.tenant.ne": "mine"}, transform=SET_X)

    decision = decide(layer("a", doubtful), layer("b", rule("allow")))

    assert ("deny", ("a:<default:on_no_match>",)) == (decision.verdict, decision.matched_rules)


def test_a_layer_judges_by_its_own_tools() -> None:
    """Clause 20: what another layer says of a tool does not change how a layer judges."""
    strict = layer("a", rule("deny", {"declared.reversible": False}), rule("allow"))
    loosening = layer("b", tools={"work": {"reversible": True}})
    irreversible = ToolMetadata(reversible=False)

    assert "deny" == decide(strict, loosening, declared=irreversible).verdict


def test_outside_the_layers_the_first_word_on_a_tool_holds() -> None:
    """Where two layers state a field or a namespace, the earlier layer's word holds."""
    bundle = compile_policy(
        [
            layer("a", tools={"work": {"cost": "high"}}),
            layer("b", tools={"work": {"cost": "low", "reversible": False}}),
        ]
    )

    assert ToolMetadata(cost="high", reversible=False) == bundle.metadata_for("work", None, None)


POLICIES = [
    [rule("allow", {"args.x": 0})],
    [rule("approve_required", {"args.x": 1}), rule("allow")],
    [rule("dry_run", {"args.x": 0})],
    [rule("deny", {"args.x": 1})],
    [rule("transform", {"args.x": 0}, transform=SET_X)],
    [rule("transform", {"args.x": 0}, transform={"path": "args.y", "set": 1}), rule("allow")],
    [rule("dry_run", ERRS)],
]


@pytest.mark.parametrize("further", range(len(POLICIES)))
def test_a_further_layer_never_loosens(further: int) -> None:
    """Clause 20: under the default combiner what some layer decided only becomes stricter."""
    for one, other in itertools.combinations_with_replacement(POLICIES, 2):
        layers = [layer("a", *one), layer("b", *other)]
        two = compile_policy(layers)
        three = compile_policy([*layers, layer("c", *POLICIES[further])])
        for x in (0, 1):
            request = call({"x": x, "text": "t"})
            before, after = evaluate(two, request), evaluate(three, request)
            if any(name.startswith("<default") for name in before.matched_rules):
                continue

            assert STRICTNESS.index(after.verdict) >= STRICTNESS.index(before.verdict)


def test_a_combiner_of_ours_can_be_called() -> None:
    """The combiners are functions of decisions, so that one of yours can build on them."""
    layers = (("a", allow()), ("b", None), ("c", deny("no")))

    assert "deny" == strict_overrides_loose(layers).verdict
    assert "allow" == first_layer_wins(layers).verdict
    assert "deny" == last_layer_wins(layers).verdict
    two_rewrites = (("a", transform({"x": 1})), ("b", transform({"x": 2})))
    assert "deny" == strict_overrides_loose(two_rewrites).verdict
    with pytest.raises(ValueError):
        strict_overrides_loose((("a", None),))
