"""The rules of a policy as they can be asked, found by the tool that a request is about.

What a rule says of the tool's name and namespace is settled once for each tool, and kept: rules
that cannot apply to it are left out, and of those that can only the rest is asked. Neither changes
a decision, for a conjunction with a false part is false whatever else errs, and with a true part it
is what the other parts say (clause 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from adjudge._types import ActionRequest, Decision, ExecutionContext, Principal, Verdict
from adjudge._values import EMPTY
from adjudge.policy._faults import Doubt, Fault, raised
from adjudge.policy._model import Edit

__all__ = ["CompiledRule", "Met", "RuleIndex", "RuleTest", "Step", "ask"]

Met = bool | Doubt | Fault | Decision
"""How a rule stands to a request: met or not, doubtful, in error, or a Python rule's Decision."""

RuleTest = Callable[[ActionRequest, Any], Met]

_MOST_RULES_KEPT = 100_000
_MOST_TOOLS_KEPT = 4_096
_MAX_NAME = 200
_NOBODY = ExecutionContext(Principal("agent", ""))


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    """One rule that can be asked.

    `test` is the whole of it, `of_tool` what it says of the tool alone, `rest` all else (None where
    it is not to be asked by itself). `decision` is what a match gives (of a transform without its
    arguments; None for a Python rule), `floor` what an error counts as (clause 15), `final` whether
    a match needs nothing but `decision`. `position` is its place in the order.
    """

    id: str
    layer: str
    position: int
    test: RuleTest
    decision: Decision | None
    floor: Verdict
    final: bool
    edits: tuple[Edit, ...] = ()
    of_tool: RuleTest | None = None
    rest: RuleTest | None = None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict as written; None for a Python rule, which brings its own."""
        return None if self.decision is None else self.decision.verdict


Step = tuple[RuleTest, Decision | None, CompiledRule]
"""A rule to ask about one tool: its test, the decision if that being true is the end, the rule."""


def ask(test: RuleTest, request: ActionRequest) -> Met:
    """Say how a rule stands to a request; what its test raises is an error of the rule."""
    try:
        return test(request, None)
    except Exception as error:
        return raised(error)


class RuleIndex:
    """The rules of one policy, by the tools that they can apply to.

    `by_tool` are those that name their tools, `general` all others, each in order.
    """

    __slots__ = ("_by_tool", "_general", "_kept", "ready")

    def __init__(
        self, by_tool: Mapping[str, Sequence[CompiledRule]], general: Sequence[CompiledRule]
    ) -> None:
        self._by_tool = by_tool
        self._general = general
        # However many tools and namespaces are asked about, what is kept stays of one size.
        most = 1 + len(general) + max(map(len, by_tool.values()), default=0)
        tools = min(max(_MOST_RULES_KEPT // most, 16), _MOST_TOOLS_KEPT)
        self._kept = lru_cache(tools)(self._find)
        # What `steps` gives of a tool without a namespace, as far as it needs no rule for all.
        self.ready: Mapping[str, tuple[Step, ...]] = (
            {} if general else {tool: self._find(tool, None) for tool in by_tool}
        )

    def steps(self, request: ActionRequest) -> tuple[Step, ...]:
        """Give the rules that can apply to the tool of a request, in order."""
        tool, namespace = request.tool, request.namespace
        if not self._general and tool not in self._by_tool:
            return ()
        if _is_short(tool) and (namespace is None or _is_short(namespace)):
            return self._kept(tool, namespace)
        return self._find(tool, namespace)

    def _find(self, tool: str, namespace: str | None) -> tuple[Step, ...]:
        own: Iterable[CompiledRule] = self._by_tool.get(tool, ())
        if self._general:
            own = sorted((*own, *self._general), key=_position)
        asked = ActionRequest(tool, EMPTY, None, _NOBODY, namespace)
        steps = (_step(rule, asked) for rule in own)
        return tuple(step for step in steps if step is not None)


def _is_short(name: object) -> bool:
    return type(name) is str and len(name) <= _MAX_NAME


def _position(rule: CompiledRule) -> int:
    return rule.position


def _step(rule: CompiledRule, asked: ActionRequest) -> Step | None:
    """Give what is left to ask of a rule about this tool; None if it cannot apply to it."""
    decision = rule.decision if rule.final else None
    if rule.of_tool is None:
        return rule.test, decision, rule
    met = ask(rule.of_tool, asked)
    if met is False:
        return None
    test = rule.rest if met is True and rule.rest is not None else rule.test
    return test, decision, rule
