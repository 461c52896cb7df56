"""Strategies for policies in lynx's language, over the vocabulary of generated requests."""

from __future__ import annotations

from typing import Any

from differential.outcomes import COMBINERS, SeedPolicy
from hypothesis import strategies as st
from properties.matches import ORDERING, PATTERNS
from properties.policies import DEFAULTS, VERDICTS
from properties.vocabulary import TOOLS, VALUES, chance, value_of

PATHS = {
    "args.amount": "number",
    "args.limit": "number",
    "args.mode": "text",
    "args.file": "path",
    "args.force": "bool",
    "args.tags": "list",
    "args.meta": "object",
    "args.meta.k": "number",
    "args.meta.k.n": "number",
    "args.absent": "text",
    "declared.cost": "cost",
    "declared.reversible": "bool",
    "declared.scope": "list",
    "context.environment": "environment",
    "context.step_seq": "number",
    "context.extra.limit": "number",
    "context.principal.kind": "principal",
}
# There an operand of another kind is refused when the policy is compiled (clause 7).
FIXED = ("declared.", "context.environment", "context.step_seq", "context.principal")
OPERATORS = {
    "number": ["", "eq", "in", *ORDERING, "between", "not_between"],
    "text": ["", "eq", "in", "matches", "matches", "contains", "contains_any", "gt"],
    "path": ["", "in", "matches", "contains"],
    "bool": ["", "eq"],
    "list": ["eq", "contains", "contains_any", "contains_all", "contains"],
    "object": ["contains", "contains_all"],
}
OBLIGATIONS: list[Any] = [
    "log",
    {"id": "check", "phase": "pre"},
    {"id": "tell", "params": {"n": 1}},
]
EDITS: list[dict[str, Any]] = [
    {"jsonpath": "$.args.amount", "set": 1},
    {"jsonpath": "$.args.amount", "set": 100},
    {"jsonpath": "$.args.mode", "set": "a"},
    {"jsonpath": "$.args.mode", "append": "b"},
    {"jsonpath": "$.args.mode", "append": 1},
    {"jsonpath": "$.args.tags", "append": "a"},
    {"jsonpath": "$.args.meta.k", "set": 1},
    {"jsonpath": "$.args.force", "delete": True},
]


@st.composite
def leaves(draw: st.DrawFn) -> dict[str, Any]:
    """Draw one test as lynx writes it."""
    path = draw(st.sampled_from(sorted(PATHS)))
    kind = PATHS[path]
    operator = draw(st.sampled_from(OPERATORS.get(kind, ["", "eq", "in"])))
    return {f"{path}.{operator}" if operator else path: draw(_operand(operator, kind, path))}


def _operand(operator: str, kind: str, path: str) -> st.SearchStrategy[Any]:
    own = VALUES[kind] if path.startswith(FIXED) else value_of(kind, foreign=10)
    own = own.filter(lambda value: value is not None and not isinstance(value, dict))
    if operator == "matches":
        return st.sampled_from(PATTERNS)
    if operator in ORDERING:
        return VALUES["number" if kind == "number" else "text"]
    if operator.endswith("between"):
        ends = st.lists(VALUES["number"], min_size=2, max_size=2)
        return ends.map(lambda both: sorted(both, key=float))
    if operator == "contains":
        return VALUES["text"] | VALUES["number"]
    if operator in ("contains_any", "contains_all"):
        return st.lists(VALUES["text"] | VALUES["number"], min_size=1, max_size=2)
    if operator == "in":
        return st.lists(own, min_size=1, max_size=3)
    return own


@st.composite
def matches(draw: st.DrawFn, depth: int = 2, predicates: tuple[str, ...] = ()) -> Any:
    """Draw a match of lynx's language."""
    shape = draw(st.integers(0, 8 if depth else 4))
    if predicates and draw(chance(15)):
        return draw(st.sampled_from(predicates))
    if shape <= 2:
        return draw(leaves())
    if shape == 3:
        return {"tool": draw(st.sampled_from(TOOLS))}
    if shape == 4:
        return {"tool": draw(st.sampled_from(TOOLS)), **draw(leaves())}
    inner = matches(depth=depth - 1, predicates=predicates)
    if shape <= 6:
        return {"not": draw(inner)}
    word = "all_of" if shape == 7 else "any_of"
    return {word: draw(st.lists(inner, min_size=1, max_size=3))}


@st.composite
def policy_dicts(draw: st.DrawFn, most: int = 4, some: int = 1) -> dict[str, Any]:
    """Draw one policy of lynx's language."""
    policy: dict[str, Any] = {"version": 1}
    if draw(chance(50)):
        policy["defaults"] = {"on_no_match": draw(st.sampled_from(DEFAULTS))}
    predicates = {"named": draw(matches(depth=1))} if draw(chance(20)) else {}
    if predicates:
        policy["predicates"] = predicates
    policy["rules"] = [
        draw(_rules(number, tuple(predicates))) for number in range(draw(st.integers(some, most)))
    ]
    return policy


@st.composite
def _rules(draw: st.DrawFn, number: int, predicates: tuple[str, ...]) -> dict[str, Any]:
    verdict = draw(st.sampled_from(VERDICTS))
    rule: dict[str, Any] = {
        "id": f"r{number}",
        "decision": verdict,
        "match": draw(matches(predicates=predicates)),
    }
    if draw(chance(25)):
        rule["priority"] = 10
    if draw(chance(20)):
        rule["obligations"] = [draw(st.sampled_from(OBLIGATIONS))]
    if verdict == "approve_required":
        rule["approvers"] = draw(st.sampled_from([[], ["alice"], ["bob", "carol"]]))
        if draw(st.booleans()):
            rule["timeout_seconds"] = draw(st.sampled_from([5, 60]))
    if verdict == "transform":
        rule["transform"] = draw(st.sampled_from(EDITS))
    return rule


@st.composite
def lynx_policies(draw: st.DrawFn) -> SeedPolicy:
    """Draw a policy, in every fourth case of two or three layers."""
    if not draw(chance(25)):
        return SeedPolicy((draw(policy_dicts()),))
    layers = draw(st.lists(policy_dicts(most=2, some=0), min_size=2, max_size=3))
    merge = draw(st.sampled_from(["strict_overrides_loose"] * 3 + sorted(COMBINERS)))
    return SeedPolicy(tuple(layers), merge)
