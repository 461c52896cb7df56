"""From a policy as read to rules that can be asked.

Each rule has one test and, unless it is a transform, one Decision built here (clause 21). Rules are
indexed by the tools that they name, so that the cost of a decision depends on the rules that can
apply to its tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge._types import ActionRequest, Decision, ExecutionContext, ToolMetadata, Verdict
from adjudge.errors import PolicyCompileError
from adjudge.policy._defaults import default_of
from adjudge.policy._faults import DOUBT, Fault
from adjudge.policy._match import Halves, Matcher, Reading, compile_halves, literal_tools
from adjudge.policy._model import (
    AllOf,
    AnyOf,
    Defaults,
    Leaf,
    Match,
    Not,
    PolicySource,
    Rule,
    ToolDeclaration,
)
from adjudge.policy._python_rules import PythonRule, asked
from adjudge.policy._rules import CompiledRule, Met, RuleIndex, RuleTest, Step
from adjudge.policy._verdicts import tagged
from adjudge.policy._work import Work

__all__ = ["CompiledPolicy", "compile_source"]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPolicy:
    """The rules of one policy, or of one layer (`layer` then marks what is reported)."""

    layer: str
    defaults: Defaults
    declarations: Mapping[str, ToolDeclaration]
    rules: RuleIndex
    ready: Mapping[str, tuple[Step, ...]]
    default: Callable[[str, ToolMetadata | None], Decision]
    reads_paths: bool
    merged: dict[str, tuple[ToolMetadata | None, ToolMetadata]] = field(default_factory=dict)
    """Of each declared tool what it last said of itself, and what `metadata_for` made of that."""

    def metadata_for(
        self, tool: str, namespace: str | None, declared: ToolMetadata | None
    ) -> ToolMetadata | None:
        """Give what holds of a tool: what `tools:` states, else what it declares of itself.

        An entry speaks of the tool that has no namespace, or the entry's own.
        """
        entry = self.declarations.get(tool)
        if entry is None or not entry.fields or namespace not in (None, entry.namespace):
            return declared
        known = self.merged.get(tool)
        if known is not None and (known[0] is declared or known[1] is declared):
            return known[1]
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in entry.fields.items()
        }
        merged = replace(declared or ToolMetadata(), **fields)
        self.merged[tool] = declared, merged
        return merged

    def prepared(self, request: ActionRequest, context: ExecutionContext | None) -> ActionRequest:
        """Give the request as it is judged: under the given context, with the policy's metadata."""
        if context is not None and context is not request.context:
            request = replace(request, context=context)
        if request.tool in self.declarations:
            declared = self.metadata_for(request.tool, request.namespace, request.declared)
            if declared is not request.declared:
                request = _declaring(request, declared)
        return request


def _declaring(request: ActionRequest, declared: ToolMetadata | None) -> ActionRequest:
    # `replace` takes twice as long, and where `tools:` speaks of a tool this is for every call.
    return ActionRequest(
        request.tool,
        request.args,
        declared,
        request.context,
        request.namespace,
        request.given,
        request.injected,
        request.resolved,
    )


def compile_source(
    source: PolicySource,
    python_rules: Mapping[str, PythonRule],
    priorities: Mapping[str, int],
    *,
    layer: str = "",
    work: Work | None = None,
) -> CompiledPolicy:
    """Compile one policy; with `layer` every rule is reported as `layer:rule`."""
    for verdict in (source.defaults.on_no_match, source.defaults.on_missing_shadow):
        if verdict is Verdict.TRANSFORM:
            raise PolicyCompileError(
                "A default cannot be transform, for it has nothing to write; it is allow, deny, "
                "dry_run or approve_required."
            )
    namespaces = {
        name: declaration.namespace
        for name, declaration in source.tools.items()
        if declaration.namespace is not None
    }
    work = work or Work()
    reading = Reading(permitting=True, namespaces=namespaces, patterns=work.patterns)
    by_tool: dict[str, list[CompiledRule]] = {}
    general: list[CompiledRule] = []
    in_order = _in_order(source.rules, python_rules, priorities)
    for position, step in enumerate(work.over(in_order, Work.COMPILING)):
        if isinstance(step, str):
            general.append(_python_rule(step, python_rules[step], position, layer))
            continue
        tools = literal_tools(step.match)
        rule = _rule(step, position, layer, reading, tools)
        if tools is None:
            general.append(rule)
        for tool in tools or ():
            by_tool.setdefault(tool, []).append(rule)
    rules = RuleIndex(by_tool, general)
    return CompiledPolicy(
        layer=layer,
        defaults=source.defaults,
        declarations=dict(source.tools),
        rules=rules,
        ready=rules.ready,
        default=default_of(source.defaults),
        reads_paths=any(_reads_paths(rule.match) for rule in source.rules),
    )


def _in_order(
    rules: Iterable[Rule], python_rules: Iterable[str], priorities: Mapping[str, int]
) -> list[Rule | str]:
    """Interleave by priority; of one priority the written rules come first (clause 14)."""
    keyed: list[tuple[tuple[int, int, int], Rule | str]] = [
        ((-rule.priority, 0, rule.order), rule) for rule in rules
    ]
    keyed += [
        ((-priorities.get(name, 0), 1, order), name) for order, name in enumerate(python_rules)
    ]
    return [step for _, step in sorted(keyed, key=lambda pair: pair[0])]


def _rule(
    rule: Rule,
    position: int,
    layer: str,
    reading: Reading,
    tools: frozenset[str] | None,
) -> CompiledRule:
    def read_as(*, permitting: bool) -> Halves:
        return compile_halves(rule.match, replace(reading, permitting=permitting), known=tools)

    whole: RuleTest
    of_tool: RuleTest
    rest: RuleTest | None
    rewrites = rule.verdict is Verdict.TRANSFORM
    if rewrites:
        permits, restricts = read_as(permitting=True), read_as(permitting=False)
        whole = _both(permits.whole, restricts.whole)
        of_tool, rest = _both(permits.of_tool, restricts.of_tool), None
    else:
        whole, of_tool, rest = read_as(permitting=rule.verdict is Verdict.ALLOW)
    return CompiledRule(
        id=rule.id,
        layer=layer,
        position=position,
        test=whole,
        decision=_decision(rule, tagged(layer, rule.id)),
        floor=_floor(rule),
        final=not rewrites,
        edits=rule.edits,
        of_tool=of_tool,
        rest=rest,
    )


def _decision(rule: Rule, name: str) -> Decision:
    asks = rule.verdict is Verdict.APPROVE_REQUIRED
    return Decision(
        verdict=rule.verdict,
        reason=rule.reason,
        matched_rules=(name,),
        approver_sets=(rule.approvers,) if asks else (),
        timeout_seconds=rule.timeout_seconds if asks else None,
        obligations=rule.obligations,
    )


def _floor(rule: Rule) -> Verdict:
    """Say what an error of a rule counts as; a plain allow has no floor, so allow stands for it."""
    if rule.verdict is Verdict.TRANSFORM or (rule.verdict is Verdict.ALLOW and rule.obligations):
        return Verdict.DENY
    return rule.verdict


def _both(permitting: Matcher, restricting: Matcher) -> RuleTest:
    """Read a transform both ways: an error in either is an error (clause 8)."""

    def test(request: ActionRequest, item: Any) -> Met:
        permits = permitting(request, item)
        restricts = restricting(request, item)
        if isinstance(permits, Fault):
            return permits
        if isinstance(restricts, Fault):
            return restricts
        if permits:
            return True
        return DOUBT if restricts else False

    return test


def _python_rule(name: str, rule: PythonRule, position: int, layer: str) -> CompiledRule:
    test = asked(rule, name, layer)
    return CompiledRule(name, layer, position, test, None, Verdict.DENY, final=False)


def _reads_paths(match: Match) -> bool:
    if isinstance(match, Leaf):
        inner = isinstance(match.operand, Leaf | Not | AllOf | AnyOf)
        return match.operator == "under" or (inner and _reads_paths(match.operand))
    if isinstance(match, Not):
        return _reads_paths(match.part)
    return isinstance(match, AllOf | AnyOf) and any(_reads_paths(part) for part in match.parts)
