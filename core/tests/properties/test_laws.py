"""What must hold of every decision, whatever the policy and the call."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from properties.calls import requests
from properties.matches import leaves
from properties.policies import Layers, Policy, layered, policies, policy_dicts
from properties.trying import LAWS, strictness
from properties.vocabulary import ARGUMENTS

from adjudge._types import ActionRequest, ExecutionContext, Principal, ToolMetadata, Verdict
from adjudge._values import OpaqueValue, canonical_json, freeze, thaw
from adjudge.policy import compile_policy, evaluate

ALWAYS_AN_ERROR = {"args.nowhere.eq": {"ref": "context.extra.nowhere"}}
ERRING = st.sampled_from(
    [
        {"decision": "deny"},
        {"decision": "dry_run"},
        {"decision": "approve_required", "approvers": ["eve"]},
        {"decision": "transform", "transform": {"path": "args.amount", "set": 1}},
        {"decision": "allow"},
        {"decision": "allow", "obligations": ["log"]},
    ]
)
STRANGE: list[Any] = [
    float("nan"),
    float("inf"),
    object(),
    {1, 2},
    b"bytes",
    datetime(2024, 1, 1, tzinfo=UTC),
    OpaqueValue(),
    [float("nan")],
    {"k": object()},
    {1: 2},
    10**5000,
    "x" * 5000,
]
CONTEXT = ExecutionContext(Principal("user", "u1"))
shuffles = st.randoms(use_true_random=False)


@settings(max_examples=LAWS)
@given(
    policies(),
    requests(),
    st.dictionaries(st.sampled_from(sorted(ARGUMENTS)), st.sampled_from(STRANGE)),
)
def test_evaluate_raises_nothing(policy: Policy, call: ActionRequest, odd: dict[str, Any]) -> None:
    """Law 8: whatever stands in the arguments, frozen or not, there is a decision."""
    call = replace(call, args={**thaw(call.args), **odd})

    assert evaluate(policy.compiled(), call).verdict in Verdict


@settings(max_examples=LAWS)
@given(policies() | layered(), requests())
def test_evaluate_changes_nothing(policy: Policy | Layers, call: ActionRequest) -> None:
    """Law 8: neither the arguments, here plain dicts, nor the policy are changed by a decision."""
    plain = thaw(call.args)
    compiled = policy.compiled()
    before = compiled.id

    evaluate(compiled, replace(call, args=plain))

    assert canonical_json(call.args) == canonical_json(plain)
    assert before == compiled.id == policy.compiled().id


@settings(max_examples=LAWS)
@given(policies() | layered(), requests())
def test_a_decision_depends_on_what_is_given_alone(
    policy: Policy | Layers, call: ActionRequest
) -> None:
    """Law 8: asked again, or of a bundle that went through pickle, the answer is the same."""
    compiled = policy.compiled()
    again = pickle.loads(pickle.dumps(compiled))
    expected = evaluate(compiled, call)

    assert expected == evaluate(compiled, call)
    assert expected == evaluate(again, pickle.loads(pickle.dumps(call)))
    assert compiled.id == again.id


@settings(max_examples=LAWS)
@given(layered("strict_overrides_loose"), policies(most=3), st.integers(0, 3), requests())
def test_a_further_layer_never_loosens(
    layers: Layers, further: Policy, place: int, call: ActionRequest
) -> None:
    """Clause 20: what some layer decided, a further layer never makes less strict."""
    reference = layers.compiled()
    before = evaluate(reference, call)
    assume(
        not any(
            "<default:" in rule and ":" not in rule.split("<")[0] for rule in before.matched_rules
        )
    )
    longer = Layers((*layers.layers[:place], further, *layers.layers[place:]))

    assert strictness(evaluate(longer.compiled(), call)) >= strictness(before)


@settings(max_examples=LAWS)
@given(policies(), ERRING, st.integers(0, 5), st.sampled_from([0, 10, 100]), requests())
def test_a_rule_that_errs_never_loosens(
    policy: Policy, erring: dict[str, Any], place: int, priority: int, call: ActionRequest
) -> None:
    """Law 4, clause 15: a rule that errs never makes a decision looser than its absence would."""
    rules = list(policy.source["rules"])
    rules.insert(place, {"id": "erring", "match": ALWAYS_AN_ERROR, "priority": priority, **erring})
    longer = Policy({**policy.source, "rules": rules}, policy.coded)

    assert strictness(evaluate(longer.compiled(), call)) >= strictness(
        evaluate(policy.compiled(), call)
    )


@settings(max_examples=LAWS)
@given(policy_dicts(), st.sampled_from(sorted(ARGUMENTS)), requests())
def test_a_value_that_no_operator_accepts_never_loosens(
    source: dict[str, Any], name: str, call: ActionRequest
) -> None:
    """Clause 7: in place of another value, one that every test refuses never makes a call run."""
    assume(name in call.args)
    assume(not any(_accepts_anything(key, value, name) for key, value in _pairs(source)))
    compiled = compile_policy(source)
    foreign = replace(call, args=freeze({**call.args, name: OpaqueValue()}))

    assert strictness(evaluate(compiled, foreign)) >= strictness(evaluate(compiled, call))


@settings(max_examples=2 * LAWS)
@given(
    leaves().filter(
        lambda leaf: next(iter(leaf)).startswith(tuple(f"args.{a}" for a in ARGUMENTS))
    ),
    st.sampled_from([("deny", "allow"), ("allow", "deny")]),
    st.integers(0, 2),
)
def test_a_lone_test_of_a_value_that_it_does_not_accept_never_permits(
    leaf: dict[str, Any], verdicts: tuple[str, str], negations: int
) -> None:
    """Clause 7: each operator errs there, so that neither the rule nor the default permits."""
    assume(not any(_accepts_anything(*pair, name) for pair in _pairs(leaf) for name in ARGUMENTS))
    match: dict[str, Any] = leaf
    for _ in range(negations):
        match = {"not": match}
    decision, otherwise = verdicts
    compiled = compile_policy(
        {
            "version": 1,
            "defaults": {"on_no_match": otherwise},
            "rules": [{"id": "r", "match": match, "decision": decision}],
        }
    )
    call = ActionRequest(
        "read", {name: OpaqueValue() for name in ARGUMENTS}, ToolMetadata(), CONTEXT
    )

    assert Verdict.DENY is evaluate(compiled, call).verdict


def _accepts_anything(key: str, value: Any, name: str) -> bool:
    """Tell a test of the argument that errs for no value: `exists`, and equality with null."""
    if not key.startswith((f"args.{name}", f'args["{name}"]')):
        return False
    if key.endswith(".exists") or value is None:
        return True
    return isinstance(value, dict) and ("exists" in value or None in value.values())


def _pairs(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, list):
        for item in node:
            yield from _pairs(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield key, value
            yield from _pairs(value)


@settings(max_examples=LAWS)
@given(policies(), requests(), shuffles)
def test_the_order_of_operands_changes_nothing(
    policy: Policy, call: ActionRequest, shuffle: Any
) -> None:
    """Clause 6: turning round what stands in all_of, any_of and a mapping changes no decision."""
    turned = Policy(_turned(policy.source, shuffle), policy.coded)

    assert evaluate(policy.compiled(), call) == evaluate(turned.compiled(), call)


CERTAIN = st.sampled_from(
    [{"args.n": 1}, {"args.n": 2}, {"args.text": 1}, {"args.text.gt": 3}, {"args.n.size": 1}]
)
TREES = st.recursive(
    CERTAIN,
    lambda part: (
        st.fixed_dictionaries({"not": part})
        | st.fixed_dictionaries({"all_of": st.lists(part, min_size=2, max_size=3)})
        | st.fixed_dictionaries({"any_of": st.lists(part, min_size=2, max_size=3)})
    ),
    max_leaves=6,
)


@settings(max_examples=LAWS)
@given(TREES, st.sampled_from(["allow", "deny"]), shuffles)
def test_the_order_of_true_false_and_erring_operands_changes_nothing(
    match: dict[str, Any], decision: str, shuffle: Any
) -> None:
    """Clause 6: also where all three answers stand side by side, down to the error reported."""
    call = ActionRequest("read", {"n": 1, "text": "t"}, None, CONTEXT)
    first, second = (
        evaluate(
            compile_policy(
                {"version": 1, "rules": [{"id": "r", "match": m, "decision": decision}]}
            ),
            call,
        )
        for m in (match, _turned(match, shuffle, match=True))
    )

    assert first == second


def _turned(node: Any, shuffle: Any, *, below: str = "", match: bool = False) -> Any:
    if isinstance(node, list):
        items = [_turned(item, shuffle, match=match) for item in node]
        if below in ("all_of", "any_of"):
            shuffle.shuffle(items)
        return items
    if not isinstance(node, dict):
        return node
    keys = list(node)
    if match:
        shuffle.shuffle(keys)
    return {
        key: _turned(node[key], shuffle, below=key, match=match or key in ("match", "predicates"))
        for key in keys
    }


@settings(max_examples=LAWS)
@given(policies(), requests())
def test_a_denial_on_top_always_denies(policy: Policy, call: ActionRequest) -> None:
    """Clause 14: above everything else, a rule for everything that denies is the end of it."""
    top = {"id": "top", "priority": 1000, "match": "always", "decision": "deny", "reason": "no"}
    rules = [*policy.source["rules"], top]
    decision = evaluate(Policy({**policy.source, "rules": rules}, policy.coded).compiled(), call)

    assert (Verdict.DENY, "no", ("top",)) == (
        decision.verdict,
        decision.reason,
        decision.matched_rules,
    )


@settings(max_examples=LAWS)
@given(policy_dicts(), shuffles)
def test_the_same_content_has_the_same_bundle_id(source: dict[str, Any], shuffle: Any) -> None:
    """Clause 30: the id does not depend on the order of the keys in a mapping."""

    def mixed(node: Any) -> Any:
        if isinstance(node, list):
            return [mixed(item) for item in node]
        if not isinstance(node, dict):
            return node
        keys = list(node)
        shuffle.shuffle(keys)
        return {key: mixed(node[key]) for key in keys}

    keeps_rules = {**mixed(source), "rules": source["rules"]}

    assert compile_policy(source).id == compile_policy(keeps_rules).id


CHANGES: list[tuple[str, Any]] = [
    ("decision", "deny"),
    ("priority", 7),
    ("reason", "another"),
    ("match", {"args.amount": 1}),
    ("match", {"args.amount": 1.0}),
    ("match", {"args.amount": True}),
    ("match", {"args.amount": "1"}),
    ("id", "renamed"),
    ("obligations", ["log"]),
    ("obligations", [{"id": "log", "on": "always"}]),
    ("obligations", [{"id": "log", "params": {"n": 1}}]),
]


def test_another_content_has_another_bundle_id() -> None:
    """Clause 30: each change of a rule, down to 1 for 1.0 for true, gives an id of its own."""
    rule = {"id": "r", "decision": "allow", "match": {"args.mode": "a"}}
    sources: list[dict[str, Any]] = [
        {"version": 1, "rules": [rule]},
        *({"version": 1, "rules": [{**rule, key: value}]} for key, value in CHANGES),
        {"version": 1, "rules": [rule], "defaults": {"on_no_match": "allow"}},
        {"version": 1, "rules": [rule], "defaults": {"on_missing_shadow": "allow"}},
        {"version": 1, "rules": [rule], "tools": {"read": {"reversible": False}}},
        {"version": 1, "rules": [rule, {**rule, "id": "s"}]},
        {"version": 1, "rules": [{**rule, "id": "s"}, rule]},
    ]
    ids = [compile_policy(source).id for source in sources]

    assert len(sources) == len(set(ids))
