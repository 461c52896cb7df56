"""Strategies for whole policies: as dicts, with Python rules, alone or in layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from properties import rules as python_rules
from properties.matches import matches
from properties.vocabulary import NAMESPACES, NUMBERS, TEXTS, TOOLS, chance
from reference import LayeredReference, ReferencePolicy

from adjudge._types import Decision, Verdict
from adjudge.policy import (
    LayeredPolicyBundle,
    PolicyBundle,
    PolicyLayer,
    compile_policy,
    first_layer_wins,
    last_layer_wins,
    strict_overrides_loose,
)
from adjudge.policy._reading.source import read_policy

VERDICTS = [
    "allow",
    "allow",
    "allow",
    "deny",
    "deny",
    "dry_run",
    "approve_required",
    "transform",
    "transform",
]
DEFAULTS = ["allow", "deny", "dry_run", "approve_required"]
OBLIGATIONS: list[Any] = [
    "log",
    {"id": "check", "phase": "pre"},
    {"id": "tell", "on": "always", "params": {"to": "ops"}},
]
APPROVERS = [[], ["alice"], ["bob", "carol"]]
EDITS: list[dict[str, Any]] = [
    *({"path": "args.amount", "set": number} for number in NUMBERS[:6]),
    *({"path": "args.mode", "set": text} for text in TEXTS[:3]),
    {"path": "args.limit", "set": 1},
    {"path": "args.force", "set": False},
    {"path": "args.meta.k", "set": 1},
    {"path": "args.meta.deep.k", "set": 1},
    {"path": "args.mode", "append": "b"},
    {"path": "args.tags", "append": 1},
    {"path": "args.tags", "append": "a"},
    {"path": "args.orders[0].sku", "set": "a"},
    {"path": "args.force", "delete": True},
    {"path": "args.mode", "delete": True},
    {"path": "args.meta.k", "delete": True},
    {"path": "args.tags[0]", "delete": True},
    {"set": {"amount": 1, "mode": "a"}},
]


@st.composite
def rule_dicts(draw: st.DrawFn, number: int, predicates: tuple[str, ...]) -> dict[str, Any]:
    """Draw one rule as it is written."""
    verdict = draw(st.sampled_from(VERDICTS))
    rule: dict[str, Any] = {"id": f"r{number}", "decision": verdict}
    rule["match"] = "always" if draw(chance(5)) else draw(matches(predicates=predicates))
    if draw(chance(30)):
        rule["priority"] = draw(st.sampled_from([10, -5]))
    if draw(chance(25)):
        rule["obligations"] = draw(
            st.lists(st.sampled_from(OBLIGATIONS), min_size=1, max_size=2, unique_by=str)
        )
    if verdict == "approve_required":
        rule["approvers"] = draw(st.sampled_from(APPROVERS))
        if draw(chance(50)):
            rule["timeout_seconds"] = draw(st.sampled_from([5, 60.5]))
    if verdict == "transform":
        edits = draw(st.lists(st.sampled_from(EDITS), min_size=1, max_size=2))
        rule["transform"] = edits[0] if len(edits) == 1 else edits
    return rule


@st.composite
def tools_sections(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a `tools:` section for one tool."""
    entry: dict[str, Any] = {}
    if draw(st.booleans()):
        entry["reversible"] = draw(st.booleans())
    if draw(st.booleans()):
        entry["scope"] = draw(st.lists(st.sampled_from(["a", "b"]), max_size=2))
    if draw(st.booleans()):
        entry["namespace"] = draw(st.sampled_from(NAMESPACES))
    return {draw(st.sampled_from(TOOLS)): entry}


@st.composite
def policy_dicts(draw: st.DrawFn, most: int = 5, some: int = 1) -> dict[str, Any]:
    """Draw one policy as a dict."""
    policy: dict[str, Any] = {"version": 1}
    if draw(chance(60)):
        policy["defaults"] = {"on_no_match": draw(st.sampled_from(DEFAULTS))}
        if draw(st.booleans()):
            policy["defaults"]["on_missing_shadow"] = draw(st.sampled_from(DEFAULTS))
    predicates: dict[str, Any] = {}
    if draw(chance(20)):
        predicates = {"named": draw(matches(depth=1))}
        policy["predicates"] = predicates
    if draw(chance(20)):
        policy["tools"] = draw(tools_sections())
    count = draw(st.integers(some, most))
    rules = [draw(rule_dicts(number, tuple(predicates))) for number in range(count)]
    if draw(chance(60)):
        rules += draw(met_by_rewriting(rules))
    policy["rules"] = rules
    return policy


@st.composite
def met_by_rewriting(draw: st.DrawFn, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draw a rule about what a transform of the policy sets, so that its result is often met."""
    edits = [rule["transform"] for rule in rules if isinstance(rule.get("transform"), dict)]
    written = [edit for edit in edits if "path" in edit and "set" in edit]
    if not written:
        return []
    edit = draw(st.sampled_from(written))
    verdict = draw(st.sampled_from(["deny", "dry_run", "approve_required", "allow"]))
    priority = draw(st.sampled_from([0, 10]))
    match = {edit["path"]: draw(st.sampled_from([{"eq": edit["set"]}, {"in": [edit["set"]]}]))}
    return [{"id": "met", "priority": priority, "decision": verdict, "match": match}]


Coded = tuple[tuple[Any, int], ...]


@dataclass(frozen=True)
class Policy:
    """One policy to try: its dict, its Python rules with their priorities."""

    source: dict[str, Any]
    coded: Coded = ()

    def compiled(self) -> PolicyBundle | LayeredPolicyBundle:
        """Compile it for the fast evaluator."""
        return compile_policy(self.source, **self._python_rules())

    def layer(self, name: str) -> PolicyLayer:
        """Give it as a layer."""
        return PolicyLayer(name, self.source, **self._python_rules())

    def reference(self) -> ReferencePolicy:
        """Give it for the reference evaluator."""
        return ReferencePolicy(read_policy(self.source), self.coded)

    def _python_rules(self) -> dict[str, Any]:
        return {
            "python_rules": tuple(rule for rule, _ in self.coded),
            "python_rule_priorities": tuple((rule.__name__, number) for rule, number in self.coded),
        }


@st.composite
def policies(draw: st.DrawFn, most: int = 5, some: int = 1) -> Policy:
    """Draw a policy, now and then with Python rules."""
    source = draw(policy_dicts(most=most, some=some))
    if not draw(chance(20)):
        return Policy(source)
    chosen = draw(
        st.lists(
            st.sampled_from(python_rules.RULES),
            min_size=1,
            max_size=2,
            unique_by=lambda rule: rule.__name__,
        )
    )
    return Policy(source, tuple((rule, draw(st.sampled_from([0, 10, -5]))) for rule in chosen))


def loosest(layers: Any) -> Decision:
    """Combine by taking what restricts least, as no shipped combiner would."""
    decided = [decision for _, decision in layers if decision is not None]
    order = [Verdict.ALLOW, Verdict.TRANSFORM, Verdict.APPROVE_REQUIRED, Verdict.DRY_RUN]
    for verdict in order:
        for decision in decided:
            if decision.verdict is verdict:
                return decision
    return decided[0]


def failing(layers: Any) -> Decision:
    """Fail, as a combiner may."""
    raise RuntimeError("no combination")


def answering_nothing(layers: Any) -> Any:
    """Answer something that is no Decision."""
    return Verdict.ALLOW


COMBINERS: dict[str, Any] = {
    "strict_overrides_loose": strict_overrides_loose,
    "first_layer_wins": first_layer_wins,
    "last_layer_wins": last_layer_wins,
    "loosest": loosest,
    "failing": failing,
    "answering_nothing": answering_nothing,
}
SHIPPED = ("strict_overrides_loose", "first_layer_wins", "last_layer_wins")


@dataclass(frozen=True)
class Layers:
    """Layered policies to try, and the name of their combiner."""

    layers: tuple[Policy, ...]
    merge: str = "strict_overrides_loose"

    def compiled(self) -> PolicyBundle | LayeredPolicyBundle:
        """Compile them for the fast evaluator."""
        return compile_policy(
            [layer.layer(f"l{number}") for number, layer in enumerate(self.layers)],
            merge=COMBINERS[self.merge],
        )

    def reference(self) -> LayeredReference:
        """Give them for the reference evaluator."""
        return LayeredReference(
            tuple((f"l{number}", layer.reference()) for number, layer in enumerate(self.layers)),
            self.merge if self.merge in SHIPPED else COMBINERS[self.merge],
        )


@st.composite
def layered(draw: st.DrawFn, merge: str | None = None) -> Layers:
    """Draw one to three small layers."""
    weighted = [*["strict_overrides_loose"] * 6, *COMBINERS]
    chosen = draw(st.sampled_from(weighted)) if merge is None else merge
    layers = draw(st.lists(policies(most=3, some=0), min_size=1, max_size=3))
    return Layers(tuple(layers), chosen)
