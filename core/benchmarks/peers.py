"""The deciders that are compared: the same rules and calls for each, by its own documented way.

One rule for each tool: the amount is over a limit and the account fits a pattern. Where a peer has
no patterns, or only denies, its note says what stands for it. A peer is imported when it is built.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

__all__ = [
    "PEERS",
    "Ask",
    "Peer",
    "call_of",
    "call_of_none",
    "call_of_unnamed",
    "calls_that_miss",
]

Ask = Callable[[str, Mapping[str, Any]], Callable[[], object]]
"""Prepares one call to be decided again and again."""

_PATTERNS = 100


@dataclass(frozen=True, slots=True)
class Peer:
    """One decider. `build` makes rules for so many tools, `met` reads an answer."""

    name: str
    package: str
    how: str
    build: Callable[[int], Ask]
    met: Callable[[Any], bool]
    patterns: bool = True


def _limit(rule: int) -> int:
    return 100 + rule % 50


def _pattern(rule: int) -> str:
    return f"^acct{rule % _PATTERNS}-[0-9]+$"


def call_of(rule: int) -> tuple[str, dict[str, Any]]:
    """Give a call that meets one rule."""
    return f"t{rule}", {"amount": 500, "to": f"acct{rule % _PATTERNS}-42"}


def call_of_unnamed() -> tuple[str, dict[str, Any]]:
    """Give a call of a tool that no rule names."""
    return "none", call_of(0)[1]


def call_of_none(rule: int, *, patterns: bool) -> tuple[str, dict[str, Any]]:
    """Give a call that meets no rule: of the tool of one, and short of its last condition."""
    tool, args = call_of(rule)
    return tool, {**args, "to": f"{args['to']}x"} if patterns else {**args, "amount": _limit(rule)}


def calls_that_miss(rule: int, *, patterns: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give calls that meet no rule, each for another reason."""
    tool, args = call_of(rule)
    yield tool, {**args, "amount": _limit(rule)}
    yield call_of_unnamed()
    yield call_of_none(rule, patterns=patterns)


def _floor(size: int) -> Ask:
    def rule(limit: int, pattern: str) -> Callable[[Mapping[str, Any]], bool]:
        search = re.compile(pattern).search

        def holds(args: Mapping[str, Any]) -> bool:
            return args["amount"] > limit and search(args["to"]) is not None

        return holds

    rules = {f"t{each}": rule(_limit(each), _pattern(each)) for each in range(size)}

    def decide(tool: str, args: Mapping[str, Any]) -> str:
        holds = rules.get(tool)
        return "allow" if holds is not None and holds(args) else "deny"

    return lambda tool, args: partial(decide, tool, args)


def adjudge_policy(size: int) -> dict[str, Any]:
    """Give the rules as Adjudge's policy."""
    return {
        "version": 1,
        "rules": [
            {
                "id": f"r{each}",
                "match": {
                    "tool": f"t{each}",
                    "args.amount.gt": _limit(each),
                    "args.to.matches": _pattern(each),
                },
                "decision": "allow",
            }
            for each in range(size)
        ],
    }


def _adjudge(size: int) -> Ask:
    from adjudge import compile_policy, evaluate
    from adjudge.testing import make_request

    policy = compile_policy(adjudge_policy(size))
    return lambda tool, args: partial(evaluate, policy, make_request(tool, args))


def _lynx(size: int) -> Ask:
    from lynx import ActionRequest, ExecutionContext, Principal, ToolMetadata, compile_policy
    from lynx.core.policy import evaluate

    # It reads the keys of a match one by one, as Adjudge does.
    policy = compile_policy(json.dumps(adjudge_policy(size)))
    context = ExecutionContext(
        principal=Principal(kind="agent", id="a"),
        environment="production",
        workspace=".",
        correlation_id="c",
        step_seq=0,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
    )

    declared = ToolMetadata(cost="low", reversible=True, scope=())

    def ask(tool: str, args: Mapping[str, Any]) -> Callable[[], object]:
        request = ActionRequest(tool=tool, args=dict(args), declared=declared, context=context)
        return partial(evaluate, policy, request, context)

    return ask


def _aegis(size: int) -> Ask:
    from aegis.core.action import Action
    from aegis.core.policy import Policy

    policy = Policy.from_dict(
        {
            "version": "1",
            "defaults": {"risk_level": "high", "approval": "block"},
            "rules": [
                {
                    "name": f"r{each}",
                    "match": {"type": f"t{each}"},
                    "conditions": {
                        "param_gt": {"amount": _limit(each)},
                        "param_matches": {"to": _pattern(each)},
                    },
                    "risk_level": "low",
                    "approval": "auto",
                }
                for each in range(size)
            ],
        }
    )
    return lambda tool, args: partial(policy.evaluate, Action(tool, "bank", dict(args)))


def _from_file(data: Mapping[str, Any], load: Callable[[str], Any]) -> Any:
    """Load from a file what can only be loaded from one; JSON is YAML."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.yaml")
        path.write_text(json.dumps(data), encoding="utf-8")
        return load(str(path))


def _tollgate(size: int) -> Ask:
    from tollgate import AgentContext, Effect, Intent, ToolRequest, YamlPolicyEvaluator

    rules = [
        {
            "id": f"r{each}",
            "tool": f"t{each}",
            "when": {"amount": {">": _limit(each)}},
            "decision": "ALLOW",
        }
        for each in range(size)
    ]
    policy = _from_file({"version": "1", "rules": rules}, YamlPolicyEvaluator)
    agent = AgentContext(agent_id="a", version="1", owner="o")
    intent = Intent(action="pay", reason="asked")

    def ask(tool: str, args: Mapping[str, Any]) -> Callable[[], object]:
        request = ToolRequest(
            tool=tool,
            action="pay",
            resource_type="account",
            effect=Effect.WRITE,
            params=dict(args),
            metadata=dict(args),
            manifest_version="1",
        )
        return partial(policy.evaluate, agent, intent, request)

    return ask


def _edictum(size: int) -> Ask:
    from edictum import Edictum

    rules = [
        {
            "id": f"r{each}",
            "type": "pre",
            "tool": f"t{each}",
            "when": {
                "all": [
                    {"args.amount": {"gt": _limit(each)}},
                    {"args.to": {"matches": _pattern(each)}},
                ]
            },
            "then": {"action": "block", "message": "over the limit"},
        }
        for each in range(size)
    ]
    head = {"apiVersion": "edictum/v1", "kind": "Ruleset", "metadata": {"name": "bench"}}
    data = {**head, "defaults": {"mode": "enforce"}, "rules": rules}
    guard = _from_file(data, Edictum.from_yaml)
    return lambda tool, args: partial(guard.evaluate, tool, dict(args))


_ACS_MANIFEST = """agent_control_specification_version: 0.4.0-alpha.1
policies:
  limits: {type: rego, bundle: ./limits, query: data.limits.verdict}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy: {id: limits}
tools:
"""
_ACS_POLICY = """package limits
import rego.v1
default verdict := {"decision": "deny"}
rule := data.table[input.tool.name]
verdict := {"decision": "allow"} if {
  input.policy_target.value.amount > rule.limit
  regex.match(rule.pattern, input.policy_target.value.to)
}
"""


def _acs(size: int) -> Ask:
    from agent_control_spec import DEFAULT_LIMITS, ActivatedPolicy
    from agent_hooks import AgentContextBuilder

    tools = "".join(f"  t{each}: {{type: Tool, id: t{each}}}\n" for each in range(size))
    table = {f"t{each}": {"limit": _limit(each), "pattern": _pattern(each)} for each in range(size)}
    # It wants a list of the tools, and its bounds are for one written by hand.
    bounds = ("max_merged_manifest_bytes", "max_manifest_nodes", "max_manifest_events")
    limits = {**DEFAULT_LIMITS, **dict.fromkeys(bounds, 10**9)}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "limits").mkdir()
        Path(folder, "limits", "limits.rego").write_text(_ACS_POLICY, "utf-8")
        Path(folder, "limits", "data.json").write_text(json.dumps({"table": table}), "utf-8")
        manifest = Path(folder, "manifest.yaml")
        manifest.write_text(f"{_ACS_MANIFEST}{tools}  none: {{type: Tool, id: none}}\n", "utf-8")
        policy = ActivatedPolicy(str(manifest), limits=limits)
    builder = AgentContextBuilder(agent_id="a", framework="bench", session_id="s")

    def ask(tool: str, args: Mapping[str, Any]) -> Callable[[], object]:
        context = builder.pre_tool_call(call_id="c", name=tool, args=dict(args))
        return partial(policy.evaluate, "pre_tool_call", context)

    return ask


_CASBIN_MODEL = """[request_definition]
r = tool, kind, amount, to
[policy_definition]
p = tool, kind, limit, pattern
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.tool == p.tool && r.kind == p.kind && over(r.amount, p.limit) && regexMatch(r.to, p.pattern)
"""


def _casbin(size: int, *, fast: bool) -> Ask:
    import casbin
    from casbin.model import FastModel
    from casbin.persist.adapters.string_adapter import StringAdapter

    # The index of the FastEnforcer is over two fields.
    model = FastModel([0, 1]) if fast else casbin.Model()
    model.load_model_from_text(_CASBIN_MODEL)
    rules = StringAdapter(
        "\n".join(f"p, t{each}, call, {_limit(each)}, {_pattern(each)}" for each in range(size))
    )
    if fast:
        enforcer = casbin.FastEnforcer(model, rules, cache_key_order=[0, 1])
    else:
        enforcer = casbin.Enforcer(model, rules)
    # Its policies hold text alone.
    enforcer.add_function("over", lambda amount, limit: amount > int(limit))
    return lambda tool, args: partial(enforcer.enforce, tool, "call", args["amount"], args["to"])


def _cedar(size: int) -> Ask:
    import cedarpy

    rules = (
        f'permit(principal, action == Action::"t{each}", resource) when '
        f"{{ context.amount > {_limit(each)} && "
        f'context.to like "acct{each % _PATTERNS}-*" }};'
        for each in range(size)
    )
    policies = cedarpy.PolicySet.from_str("\n".join(rules))
    entities = cedarpy.Entities.from_json_str("[]")

    def ask(tool: str, args: Mapping[str, Any]) -> Callable[[], object]:
        request = {
            "principal": 'Agent::"a"',
            "action": f'Action::"{tool}"',
            "resource": 'Bank::"b"',
            "context": dict(args),
        }
        return partial(cedarpy.is_authorized, request, policies, entities)

    return ask


def _cel(size: int) -> Ask:
    import cel

    rules = {
        f"t{each}": cel.compile(f'amount > {_limit(each)} && to.matches("{_pattern(each)}")')
        for each in range(size)
    }

    def decide(tool: str, args: dict[str, Any]) -> object:
        rule = rules.get(tool)
        return rule is not None and rule.execute(args)

    return lambda tool, args: partial(decide, tool, dict(args))


def _verdict_is(word: str) -> Callable[[Any], bool]:
    return lambda answer: str(answer.verdict.value) == word


PEERS = (
    Peer("floor", "", "a dict of closures, written by hand", _floor, "allow".__eq__),
    Peer("Adjudge", "adjudge", "`evaluate`", _adjudge, _verdict_is("allow")),
    Peer("lynx-agent", "lynx-agent", "`evaluate`", _lynx, _verdict_is("allow")),
    Peer("agent-aegis", "agent-aegis", "`Policy.evaluate`", _aegis, lambda it: it.is_allowed),
    Peer(
        "tollgate",
        "tollgate",
        "`YamlPolicyEvaluator.evaluate`; it has no patterns, so the number alone",
        _tollgate,
        lambda answer: answer.decision.value == "ALLOW",
        patterns=False,
    ),
    Peer(
        "edictum",
        "edictum",
        "`Edictum.evaluate`; its rules deny, so what they meet is denied",
        _edictum,
        lambda answer: answer.decision == "block",
    ),
    Peer(
        "agent-control-spec",
        "agent-control-spec",
        "`ActivatedPolicy.evaluate`; one Rego rule, the limits as data",
        _acs,
        lambda answer: answer.to_wire()["decision"] == "allow",
    ),
    Peer("pycasbin Enforcer", "pycasbin", "`enforce`", partial(_casbin, fast=False), lambda it: it),
    Peer(
        "pycasbin FastEnforcer",
        "pycasbin",
        "`enforce`, indexed by tool",
        partial(_casbin, fast=True),
        lambda it: it,
    ),
    Peer(
        "cedarpy",
        "cedarpy",
        "`is_authorized` with a prepared `PolicySet`; `like` in place of the pattern",
        _cedar,
        lambda answer: answer.allowed,
        patterns=False,
    ),
    Peer(
        "CEL (Rust)",
        "common-expression-language",
        "`Program.execute`, one program for each tool, in a dict",
        _cel,
        lambda it: it is True,
    ),
)
