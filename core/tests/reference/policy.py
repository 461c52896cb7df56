"""What the reference evaluates: a policy as read, with its Python rules, alone or in layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from adjudge._types import ActionRequest, Decision, Obligation, ToolMetadata, Verdict
from adjudge.policy._model import Edit, PolicySource, Rule
from reference.logic import Truth
from reference.matching import Reading, holds
from reference.reading import World

RESTRICTING = (Verdict.DENY, Verdict.DRY_RUN, Verdict.APPROVE_REQUIRED)
PythonRule = Callable[[ActionRequest, Any], Any]


@dataclass(frozen=True)
class Answer:
    """What one rule says of one request: whether it matches, and what it then decides.

    `doubtful` is a transform that matches only in its restricting reading (clause 8).
    """

    matches: Truth
    doubtful: bool = False
    verdict: Verdict | None = None
    approvers: tuple[tuple[str, ...], ...] = ()
    timeout: float | None = None
    obligations: tuple[Obligation, ...] = ()
    edits: tuple[Edit, ...] = ()

    @property
    def plain(self) -> bool:
        """True, without error and without doubt."""
        return self.matches is Truth.TRUE and not self.doubtful

    @property
    def met(self) -> bool:
        """True or error, a transform in its restricting reading (clause 19)."""
        return self.matches is not Truth.FALSE


@dataclass(frozen=True)
class WrittenRule:
    """A rule of the file."""

    rule: Rule
    source: PolicySource

    @property
    def id(self) -> str:
        """The rule's id."""
        return self.rule.id

    @property
    def floor(self) -> Verdict | None:
        """Clause 15: what its error comes to."""
        if self.rule.verdict in RESTRICTING:
            return self.rule.verdict
        if self.rule.verdict is Verdict.TRANSFORM or self.rule.obligations:
            return Verdict.DENY
        return None

    @property
    def restricting(self) -> bool:
        """Whether it denies, previews or asks."""
        return self.rule.verdict in RESTRICTING

    def ask(self, world: World) -> Answer:
        """Answer for one request."""
        rule = self.rule
        answer = Answer(
            Truth.FALSE,
            verdict=rule.verdict,
            approvers=(rule.approvers,),
            timeout=rule.timeout_seconds,
            obligations=rule.obligations,
            edits=rule.edits,
        )
        as_permitting = holds(rule.match, world, Reading(self.source, permitting_rule=True))
        as_restricting = holds(rule.match, world, Reading(self.source, permitting_rule=False))
        if rule.verdict is Verdict.ALLOW:
            return replace(answer, matches=as_permitting)
        if rule.verdict in RESTRICTING:
            return replace(answer, matches=as_restricting)
        # Clause 8: a transform is read both ways, and an error in either is one.
        if Truth.ERROR in (as_permitting, as_restricting):
            return replace(answer, matches=Truth.ERROR)
        if as_permitting is Truth.TRUE:
            return replace(answer, matches=Truth.TRUE)
        return replace(answer, matches=as_restricting, doubtful=as_restricting is Truth.TRUE)


@dataclass(frozen=True)
class CodedRule:
    """A Python rule (clause 18): None or a Decision; anything else, also an Exception, errs."""

    id: str
    function: PythonRule
    floor: Verdict | None = Verdict.DENY
    restricting: bool = False

    def ask(self, world: World) -> Answer:
        """Answer for one request."""
        try:
            said = self.function(world.request, world.request.context)
        except Exception:
            return Answer(Truth.ERROR)
        if said is None:
            return Answer(Truth.FALSE)
        if not isinstance(said, Decision):
            return Answer(Truth.ERROR)
        edits: tuple[Edit, ...] = ()
        if said.verdict is Verdict.TRANSFORM:
            if said.effective_args is None:
                return Answer(Truth.ERROR)
            edits = (Edit("set", (), said.effective_args, None),)  # type: ignore[arg-type]
        return Answer(
            Truth.TRUE,
            verdict=said.verdict,
            approvers=said.approver_sets,
            timeout=said.timeout_seconds,
            obligations=said.obligations,
            edits=edits,
        )


Candidate = WrittenRule | CodedRule


@dataclass(frozen=True)
class ReferencePolicy:
    """One policy; `python_rules` are (function, priority) in the order given."""

    source: PolicySource
    python_rules: tuple[tuple[PythonRule, int], ...] = ()

    def candidates(self) -> list[Candidate]:
        """Clause 14: priority descending, file order, then Python rules in the order given."""
        ordered: list[tuple[int, Candidate]] = [
            (rule.priority, WrittenRule(rule, self.source))
            for rule in sorted(self.source.rules, key=lambda rule: rule.order)
        ]
        ordered += [
            (priority, CodedRule(function.__name__, function))
            for function, priority in self.python_rules
        ]
        return [candidate for _, candidate in sorted(ordered, key=lambda pair: -pair[0])]

    def metadata(self, request: ActionRequest) -> ToolMetadata | None:
        """What the tool declares, with the fields that `tools:` states for it instead.

        As in clause 13 an entry means the tool without a namespace, or in the one that the
        entry declares.
        """
        entry = self.source.tools.get(request.tool)
        if entry is None or request.namespace not in (None, entry.namespace) or not entry.fields:
            return request.declared
        return replace(request.declared or ToolMetadata(), **entry.fields)


@dataclass(frozen=True)
class LayeredReference:
    """Named policies and how they are combined: the name of a shipped combiner, or a callable."""

    layers: tuple[tuple[str, ReferencePolicy], ...]
    merge: str | Callable[..., Any] = "strict_overrides_loose"
