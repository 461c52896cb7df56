"""From a policy as read to rules that can be asked.

Each rule has one test and, unless it is a transform, one Decision built here (clause 21). Rules are
indexed by the tools that they name, so that the cost of a decision depends on the rules that can
apply to its tool; leaving out the others changes nothing, for a conjunction with a false leaf is
false whatever else errs (clause 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge._types import ActionRequest, Decision, ExecutionContext, ToolMetadata, Verdict
from adjudge.errors import PolicyCompileError
from adjudge.policy._faults import DOUBT, Doubt, Fault, raised
from adjudge.policy._match import Matcher, Reading, compile_match, literal_tools
from adjudge.policy._model import (
    AllOf,
    AnyOf,
    Defaults,
    Edit,
    Leaf,
    Match,
    Not,
    PolicySource,
    Rule,
    ToolDeclaration,
)
from adjudge.policy._python_rules import PythonRule, asked
from adjudge.policy._verdicts import tagged

__all__ = ["CompiledPolicy", "CompiledRule", "Met", "compile_source"]

Met = bool | Doubt | Fault | Decision
"""How a rule stands to a request: met or not, doubtful, in error, or a Python rule's Decision."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    """One rule that can be asked.

    `decision` is what a match gives (of a transform without its arguments; None for a Python rule),
    `floor` what an error counts as (clause 15), `final` whether a match needs nothing but
    `decision`. `position` is its place in the order.
    """

    id: str
    layer: str
    position: int
    test: Callable[[ActionRequest, Any], Met]
    decision: Decision | None
    floor: Verdict
    final: bool
    edits: tuple[Edit, ...] = ()

    def ask(self, request: ActionRequest) -> Met:
        """Say how this rule stands to a request; what its test raises is an error of the rule."""
        try:
            return self.test(request, None)
        except Exception as error:
            return raised(error)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict as written; None for a Python rule, which brings its own."""
        return None if self.decision is None else self.decision.verdict


@dataclass(frozen=True, slots=True, eq=False)
class CompiledPolicy:
    """The rules of one policy, or of one layer (`layer` then marks what is reported)."""

    layer: str
    defaults: Defaults
    declarations: Mapping[str, ToolDeclaration]
    by_tool: Mapping[str, tuple[CompiledRule, ...]]
    general: tuple[CompiledRule, ...]
    reads_paths: bool

    def rules_for(self, tool: str) -> Iterable[CompiledRule]:
        """Give the rules that can apply to a tool, in order."""
        own = self.by_tool.get(tool)
        if own is None:
            return self.general
        return _merged(own, self.general) if self.general else own

    def metadata_for(
        self, tool: str, namespace: str | None, declared: ToolMetadata | None
    ) -> ToolMetadata | None:
        """Give what holds of a tool: what `tools:` states, else what it declares of itself.

        An entry speaks of the tool that has no namespace, or the entry's own.
        """
        entry = self.declarations.get(tool)
        if entry is None or not entry.fields or namespace not in (None, entry.namespace):
            return declared
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in entry.fields.items()
        }
        return replace(declared or ToolMetadata(), **fields)

    def prepared(self, request: ActionRequest, context: ExecutionContext | None) -> ActionRequest:
        """Give the request as it is judged: under the given context, with the policy's metadata."""
        if context is not None and context is not request.context:
            request = replace(request, context=context)
        if request.tool in self.declarations:
            declared = self.metadata_for(request.tool, request.namespace, request.declared)
            if declared is not request.declared:
                request = replace(request, declared=declared)
        return request


def _merged(
    own: tuple[CompiledRule, ...], general: tuple[CompiledRule, ...]
) -> Iterator[CompiledRule]:
    rest = iter(general)
    waiting = next(rest, None)
    for rule in own:
        while waiting is not None and waiting.position < rule.position:
            yield waiting
            waiting = next(rest, None)
        yield rule
    if waiting is not None:
        yield waiting
        yield from rest


def compile_source(
    source: PolicySource,
    python_rules: Mapping[str, PythonRule],
    priorities: Mapping[str, int],
    *,
    layer: str = "",
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
    by_tool: dict[str, list[CompiledRule]] = {}
    general: list[CompiledRule] = []
    for position, step in enumerate(_in_order(source.rules, python_rules, priorities)):
        if isinstance(step, str):
            general.append(_python_rule(step, python_rules[step], position, layer))
            continue
        tools = literal_tools(step.match)
        rule = _rule(step, position, layer, namespaces, tools)
        if tools is None:
            general.append(rule)
        for tool in tools or ():
            by_tool.setdefault(tool, []).append(rule)
    return CompiledPolicy(
        layer=layer,
        defaults=source.defaults,
        declarations=dict(source.tools),
        by_tool={tool: tuple(rules) for tool, rules in by_tool.items()},
        general=tuple(general),
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
    namespaces: Mapping[str, str],
    tools: frozenset[str] | None,
) -> CompiledRule:
    def read_as(*, permitting: bool) -> Matcher:
        return compile_match(rule.match, Reading(permitting, namespaces), known=tools)

    test: Callable[[ActionRequest, Any], Met]
    if rule.verdict is Verdict.TRANSFORM:
        test = _both(read_as(permitting=True), read_as(permitting=False))
    else:
        test = read_as(permitting=rule.verdict is Verdict.ALLOW)
    return CompiledRule(
        id=rule.id,
        layer=layer,
        position=position,
        test=test,
        decision=_decision(rule, tagged(layer, rule.id)),
        floor=_floor(rule),
        final=rule.verdict is not Verdict.TRANSFORM,
        edits=rule.edits,
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


def _both(permitting: Matcher, restricting: Matcher) -> Callable[[ActionRequest, Any], Met]:
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
