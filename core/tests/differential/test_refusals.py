"""What lynx compiles and Adjudge refuses, or reads otherwise, by the clause that says so."""

from __future__ import annotations

from typing import Any

import lynx.policy as lynx_policy
import pytest
from differential.outcomes import our_outcome, their_outcome

from adjudge._types import ActionRequest, ExecutionContext, Principal, ToolMetadata
from adjudge._values import freeze
from adjudge.errors import PolicyCompileError
from adjudge.policy import compile_policy


def rule(**more: Any) -> dict[str, Any]:
    """Give a policy of one rule."""
    return {"rules": [{"id": "r", "match": {"tool": "pay"}, "decision": "deny", **more}]}


REFUSED: list[tuple[str, Any]] = [
    ("4: an unknown key of a rule", rule(priorty=5)),
    ("4: an unknown key of a policy", {**rule(), "default": {"on_no_match": "allow"}}),
    ("4: an unknown root", rule(match={"arg.amount.gt": 5})),
    ("4: an unknown field", rule(match={"declared.reversable": True})),
    ("4: an empty match", rule(match={})),
    ("4: no match", {"rules": [{"id": "r", "decision": "deny"}]}),
    ("4: nothing under all_of", rule(match={"all_of": []})),
    ("4: nothing under any_of", rule(match={"any_of": []})),
    ("4: an id twice", {"rules": [rule()["rules"][0], rule()["rules"][0]]}),
    ("4: a key twice", "rules:\n  - {id: a, id: b, match: {tool: pay}, decision: deny}\n"),
    ("4: a predicate called always", {"predicates": {"always": {"tool": "pay"}}, **rule()}),
    ("4: a key that the verdict does not use", rule(approvers=["boss"])),
    ("5: an operator before an operator", rule(match={"args.items.size.gt": 3})),
    ("5: a near miss of an operator", rule(match={"args.to.start_with": "a"})),
    ("5: a mapping under a bare root", rule(match={"args": {"to": "a"}})),
    ("5: a key below the tool", rule(match={"tool.name": "pay"})),
    ("7: an operand that nothing there can equal", rule(match={"declared.reversible": "false"})),
    ("7: no members", rule(match={"args.to.in": []})),
    ("7: null for a member", rule(match={"args.to.in": [None, "a"]})),
    ("9: a bare mapping as an operand", rule(match={"args.user": {"id": 1}})),
    ("11: a pattern that may hang", rule(match={"args.cmd.matches": r"(\w+\s?)+x"})),
    ("17: a default that rewrites", {"defaults": {"on_no_match": "transform"}, **rule()}),
    (
        "19: all arguments replaced by a text",
        rule(decision="transform", transform={"jsonpath": "$.args", "set": "x"}),
    ),
    ("22: no time to answer", rule(decision="approve_required", timeout_seconds=0)),
    (
        "policy text is read as written: a bare no where text is meant",
        "rules:\n  - {id: a, match: {args.country: no}, decision: deny}\n",
    ),
    (
        "policy text is read as written: a number that YAML 1.1 reads in another base",
        "rules:\n  - {id: a, match: {args.code: 0123}, decision: deny}\n",
    ),
    (
        "policy text is read as written: a number that YAML 1.1 reads as text",
        "rules:\n  - {id: a, match: {args.amount.eq: 1e3}, decision: deny}\n",
    ),
]


@pytest.mark.parametrize(("why", "source"), REFUSED, ids=[why for why, _ in REFUSED])
def test_adjudge_refuses_what_the_seed_compiled(why: str, source: Any) -> None:
    """Lynx compiles it; Adjudge refuses it, with the clause in the test's name."""
    lynx_policy.compile_policy(source)

    with pytest.raises(PolicyCompileError):
        compile_policy(source)


READ_OTHERWISE: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    ("5: size is an operator", {"args.items.size": 2}, {"items": [1, 2]}, "allow", "deny"),
    ("5: exists is an operator", {"args.to.exists": True}, {"to": "a"}, "allow", "deny"),
    ("5: operators in a mapping", {"args.n": {"gt": 5}}, {"n": 9}, "allow", "deny"),
    ("9: a ref", {"args.to": {"ref": "args.owner"}}, {"to": "a", "owner": "a"}, "allow", "deny"),
]


@pytest.mark.parametrize(
    ("why", "match", "args", "theirs", "ours"),
    READ_OTHERWISE,
    ids=[example[0] for example in READ_OTHERWISE],
)
def test_adjudge_reads_an_operator_where_the_seed_read_a_value(
    why: str, match: dict[str, Any], args: dict[str, Any], theirs: str, ours: str
) -> None:
    """The same text compiles in both and means more in Adjudge."""
    allow = {"id": "allow", "priority": -1, "match": {"tool": "pay"}, "decision": "allow"}
    source = {"rules": [{"id": "deny", "match": match, "decision": "deny"}, allow]}
    request = ActionRequest(
        "pay", freeze(args), ToolMetadata(), ExecutionContext(Principal("user", "u1"), "prod")
    )

    assert theirs == their_outcome(lynx_policy.compile_policy(source), request).verdict
    assert ours == our_outcome(compile_policy(source), request).verdict
