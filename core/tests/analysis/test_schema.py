"""The JSON Schema of policy files: what compiles fits it, and most mistakes do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from properties.policies import Policy, policies

from adjudge import PolicyCompileError, compile_policy
from adjudge.analysis import policy_schema
from adjudge.cli import main
from adjudge.policy._reading.words import OPERATORS

SCHEMA = Draft202012Validator(policy_schema())


def fits(policy: object) -> bool:
    """Whether a policy fits the schema."""
    return SCHEMA.is_valid(policy)


def with_match(match: object, **fields: object) -> dict[str, object]:
    """Give a policy of one rule."""
    return {"rules": [{"match": match, "decision": "deny", **fields}]}


def test_the_schema_is_one() -> None:
    """It is valid itself, by the meta-schema of its draft."""
    Draft202012Validator.check_schema(policy_schema())


@settings(max_examples=40)
@given(policies())
def test_every_policy_that_compiles_fits(policy: Policy) -> None:
    """No policy is marked as wrong that is right."""
    policy.compiled()

    source = json.loads(json.dumps(policy.source, default=float))
    assert [] == [error.message for error in SCHEMA.iter_errors(source)]


@pytest.mark.parametrize(
    "match",
    [
        "always",
        {"tool": "x"},
        {"tool.in": ["x", "y"], "tool.namespace": "crm"},
        {"args.x.gt": 5},
        {"args.x": {"gt": 5, "lt": 9}},
        {"args.size": 3},
        {"args.items.size": {"gt": 3}},
        {"args.items.size": 3},
        {'args["a.b"][0].sku.in': ["a"]},
        {"args['a.b']": None},
        {"args.x": {"ref": "context.extra.tenant"}},
        {"args.x": {"literal": {"a": 1}}},
        {"args.x.contains": {"literal": {"a": 1}}},
        {"args.x.in": {"ref": "context.extra.list"}},
        {"context.extra.size": 3},
        {"context.extra.size.exists": True},
        {"context.principal.kind": "user"},
        {"declared.labels.contains": "pii"},
        {"args.items.each": {".": {"gt": 0}, ".sku.starts_with": ["a", "b"]}},
        {"args.items.some": {"not": {".": {"gt": 3}}}},
        {"args.x.normalized": {"matches": "^a"}},
        {"args.u.host_in": ["*.example.com"]},
        {"not": {"any_of": [{"args.x": 1}, "always"]}},
        {"args.x.size": {"between": [1, 3], "ne": 2}},
        {"args.x.between": {"ref": "args.bounds"}},
    ],
)
def test_what_the_reference_shows_fits(match: object) -> None:
    """Each way of writing a condition compiles, and fits."""
    policy = with_match(match)
    compile_policy(policy)

    assert fits(policy)


@pytest.mark.parametrize(
    "policy",
    [
        [],
        {"rule": []},
        {"version": 2},
        {"defaults": {"on_no_match": "transform"}},
        {"tools": {"x": {"reversable": True}}},
        {"rules": [{"decision": "deny"}]},
        with_match({}),
        with_match({"all_of": []}),
        with_match({"arg.x": 1}),
        with_match({"args": {"x": 1}}),
        with_match({"args.x": {"greater": 1}}),
        with_match({"args.x.in": []}),
        with_match({"args.x.between": [1, 2, 3]}),
        with_match({"args.x.exists": "perhaps"}),
        with_match({"args.x": {}}),
        with_match({"args.x.matches": {"ref": "args.y"}}),
        with_match({"args.items.each": {"sku": 1}}),
        with_match({"declared.price": 1}),
        with_match({"context.tenant": "acme"}),
        with_match("always", verdict="deny"),
        with_match("always", approvers=["ann"]),
        with_match("always", transform={"path": "args.x", "set": 1}),
        {"rules": [{"match": "always", "decision": "transform"}]},
        {"rules": [{"match": "always", "decision": "perhaps"}]},
        {"rules": [{"match": "always", "decision": "approve_required", "timeout_seconds": 0}]},
        with_match("always", obligations=[{"phase": "pre"}]),
    ],
)
def test_a_mistake_does_not_fit(policy: object) -> None:
    """Whatever an editor should mark is no policy, and does not fit."""
    with pytest.raises(PolicyCompileError):
        compile_policy(policy)

    assert not fits(policy)


def test_every_operator_can_be_written_both_ways() -> None:
    """An operator that is added to the language is added to the schema."""
    tests = policy_schema()["$defs"]["tests"]["properties"]

    assert list(OPERATORS) == list(tests)


@pytest.mark.needs_yaml
def test_the_shipped_policies_fit(tmp_path: Path) -> None:
    """The example's policy, and what `adjudge init` writes."""
    import yaml

    assert main(["init", str(tmp_path)]) == 0
    root = Path(__file__).resolve().parents[3]
    shipped = [tmp_path / "policy.yaml", *sorted(root.glob("examples/**/policy.yaml"))]

    assert len(shipped) > 1
    assert [] == [path for path in shipped if not fits(yaml.safe_load(path.read_bytes()))]
