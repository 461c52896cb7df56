"""Short ways to put one question to one policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from adjudge._types import ActionRequest, Decision, ExecutionContext, Principal, ToolMetadata
from adjudge.policy import PolicyBundle, compile_policy, evaluate

HERE = ExecutionContext(Principal("user", "u1"), environment="prod")
Answer = Literal["true", "false", "error"]


def call(args: Mapping[str, Any] | None = None, **fields: Any) -> ActionRequest:
    """Give a call of the tool `work`; its arguments are handed over as they are, unchecked."""
    plain = ActionRequest("work", {} if args is None else args, ToolMetadata(), HERE)
    return replace(plain, **fields)


def rule(decision: str = "deny", match: Any = "always", **fields: Any) -> dict[str, Any]:
    """Give one rule, called after its decision unless `id` says otherwise."""
    return {"id": decision, "match": match, "decision": decision, **fields}


def policy(*rules: Mapping[str, Any], python_rules: Iterable[Any] = (), **top: Any) -> PolicyBundle:
    """Compile rules, with what else is to stand at the top of the policy."""
    source = {"version": 1, "rules": [dict(each) for each in rules], **top}
    return compile_policy(source, python_rules=tuple(python_rules))


def decide(
    *rules: Mapping[str, Any], args: Mapping[str, Any] | None = None, **fields: Any
) -> Decision:
    """Decide about one call of `work` by these rules."""
    return evaluate(policy(*rules), call(args, **fields))


def answer(
    match: Mapping[str, Any],
    args: Mapping[str, Any] | None = None,
    *,
    decision: str = "deny",
    **fields: Any,
) -> Answer:
    """Say how one match, in a rule of this decision, stands to one call."""
    found = decide(rule(decision, match), args=args, **fields)
    if found.matched_rules[0].startswith("<rule_error:"):
        return "error"
    return "true" if found.matched_rules == (decision,) else "false"


def names(decision: Decision) -> tuple[str, ...]:
    """Give the matched rules without the marks of errors."""
    return tuple(name for name in decision.matched_rules if "<rule_error:" not in name)
