"""One example of each difference: what lynx decides, what Adjudge decides, the clause."""

from __future__ import annotations

from typing import Any

import pytest
from differential.explain import explain
from differential.outcomes import SeedPolicy, our_outcome, their_outcome

from adjudge._types import ActionRequest, ExecutionContext, Principal, ToolMetadata
from adjudge._values import freeze

ALLOW = {"id": "allow", "priority": -1, "match": {"tool": "pay"}, "decision": "allow"}


def deny(match: dict[str, Any]) -> SeedPolicy:
    """Deny on a match, allow the rest."""
    return SeedPolicy(({"rules": [{"id": "deny", "match": match, "decision": "deny"}, ALLOW]},))


def allow(match: dict[str, Any]) -> SeedPolicy:
    """Allow on a match, deny the rest."""
    return SeedPolicy(({"rules": [{"id": "allow", "match": match, "decision": "allow"}]},))


def rewrite(match: dict[str, Any], edit: dict[str, Any], *rules: dict[str, Any]) -> SeedPolicy:
    """Rewrite on a match; further rules stand below it."""
    first = {"id": "rewrite", "match": match, "decision": "transform", "transform": edit}
    return SeedPolicy(({"rules": [first, *rules]},))


def layers(*verdicts: str, merge: str = "strict_overrides_loose", **more: Any) -> SeedPolicy:
    """Give one layer for each verdict."""
    return SeedPolicy(
        tuple(
            {"rules": [{"id": "r", "match": {"tool": "pay"}, "decision": verdict, **more}]}
            for verdict in verdicts
        ),
        merge,
    )


MAIL = {"jsonpath": "$.args.to", "set": "ops@x.io"}
EXAMPLES = [
    (1, allow({"args.flag": 1}), {"flag": True}, "allow", "deny"),
    (1, allow({"declared.scope.eq": ["pay"]}), {}, "deny", "allow"),
    (3, deny({"args.user.id": "root"}), {"user": "root"}, "allow", "deny"),
    (6, allow({"any_of": [{"args.n.gt": 5}, {"tool": "pay"}]}), {"n": "9"}, "deny", "allow"),
    (7, deny({"args.cmd.matches": "rm"}), {"cmd": ["rm"]}, "allow", "deny"),
    (7, deny({"args.names.contains": "root"}), {"names": [1]}, "allow", "deny"),
    (8, allow({"not": {"args.to.in": ["evil"]}}), {}, "allow", "deny"),
    (8, deny({"args.n.not_between": [1, 5]}), {}, "allow", "deny"),
    (11, allow({"args.file.matches": "^[a-z]+$"}), {"file": "a\n"}, "allow", "deny"),
    (15, deny({"args.n.gt": 500}), {"n": "1000"}, "allow", "deny"),
    (15, deny({"args.n.gt": 500}), {"n": [1000]}, "allow", "deny"),
    (16, layers("dry_run", "approve_required"), {}, "approve_required", "dry_run"),
    (
        19,
        rewrite({"tool": "pay"}, {"jsonpath": "$.args.to", "append": "x"}),
        {},
        "transform",
        "deny",
    ),
    (
        19,
        rewrite(
            {"tool": "pay"},
            MAIL,
            {"id": "no", "match": {"args.to": "ops@x.io"}, "decision": "deny"},
        ),
        {"to": "a@x.io"},
        "transform",
        "deny",
    ),
    (
        20,
        SeedPolicy(
            (
                {
                    "rules": [
                        {
                            "id": "a",
                            "match": {"tool": "pay"},
                            "decision": "transform",
                            "transform": MAIL,
                        }
                    ]
                },
                {"rules": [{"id": "b", "match": {"args.to": "ops@x.io"}, "decision": "deny"}]},
            ),
            "strict_overrides_loose",
        ),
        {"to": "a@x.io"},
        "transform",
        "deny",
    ),
]


def call(args: dict[str, Any]) -> ActionRequest:
    """Propose a payment."""
    return ActionRequest(
        "pay",
        freeze(args),
        ToolMetadata(scope=("pay",)),
        ExecutionContext(Principal("user", "u1"), "prod"),
    )


@pytest.mark.parametrize(
    ("clause", "policy", "args", "theirs", "ours"),
    EXAMPLES,
    ids=[f"clause-{example[0]}-{number}" for number, example in enumerate(EXAMPLES)],
)
def test_a_difference_has_its_clause(
    clause: int, policy: SeedPolicy, args: dict[str, Any], theirs: str, ours: str
) -> None:
    """Lynx decides one thing, Adjudge another, and the clause is among those that explain."""
    request = call(args)

    assert theirs == their_outcome(policy.theirs(), request).verdict
    assert ours == our_outcome(policy.ours(), request).verdict
    assert clause in explain(policy, request)


def test_every_layer_that_asks_is_met() -> None:
    """Clause 20: lynx asks one layer's approvers, Adjudge those of every layer that asks."""
    rule = {"id": "r", "match": {"tool": "pay"}, "decision": "approve_required"}
    policy = SeedPolicy(
        ({"rules": [{**rule, "approvers": ["a"]}]}, {"rules": [{**rule, "approvers": ["b"]}]}),
        "strict_overrides_loose",
    )

    assert frozenset("a") == their_outcome(policy.theirs(), call({})).approvers
    assert frozenset("ab") == our_outcome(policy.ours(), call({})).approvers
    assert (20,) == explain(policy, call({}))
