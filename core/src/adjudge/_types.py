"""The values that flow through a decision: frozen, slotted, without behaviour of their own.

A framework's proposal becomes an `ActionRequest`; `evaluate` turns it into a `Decision`; the guard
enforces that and answers with a `GovernedCall`; every step is an `AuditEvent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

from adjudge._values import EMPTY, FrozenDict

__all__ = [
    "ActionRequest",
    "ActionResult",
    "ApprovalDecision",
    "ApprovalRequest",
    "AuditEvent",
    "CallContext",
    "Decision",
    "ExecutionContext",
    "GovernedCall",
    "Obligation",
    "ObligationOutcome",
    "Outcome",
    "PendingApproval",
    "Principal",
    "ToolMetadata",
    "Verdict",
]


def _empty() -> FrozenDict:
    return EMPTY


class Verdict(StrEnum):
    """What is to be done with one proposed tool call."""

    ALLOW = "allow"
    DENY = "deny"
    DRY_RUN = "dry_run"
    APPROVE_REQUIRED = "approve_required"
    TRANSFORM = "transform"


class Outcome(StrEnum):
    """How one governed call ended; all but PENDING and SUSPENDED are terminal events."""

    COMPLETED = "completed"
    FAILED = "failed"
    DENIED = "denied"
    PREVIEWED = "previewed"
    CANCELLED = "cancelled"
    PENDING = "pending"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf the agent acts."""

    kind: Literal["user", "service", "agent"]
    id: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolMetadata:
    """What a tool declares about itself; a policy reads it as `declared.*`.

    `blast_radius_hint` is opaque to Adjudge. `isolation` names the executor route that the tool
    wants. `labels` are what its result carries.
    """

    cost: Literal["low", "medium", "high"] = "low"
    reversible: bool = True
    scope: tuple[str, ...] = ()
    blast_radius_hint: int | None = None
    has_shadow: bool = False
    isolation: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """Where a call happens and who asks; a policy reads it as `context.*`.

    `environment` None and `session` None mean that nobody supplied them: reading them is an error
    in a rule (clause 9), never absence. `timestamp` is a value that the caller supplied.
    """

    principal: Principal
    environment: str | None = None
    workspace: str = "."
    correlation_id: str = ""
    step_seq: int = 0
    timestamp: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    extra: Mapping[str, Any] = field(default_factory=_empty)
    session: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a `context=` callable answers about one call (clause 26)."""

    principal: Principal
    environment: str | None = None
    workspace: str = "."
    extra: Mapping[str, Any] = field(default_factory=_empty)
    session: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """One proposed tool call, as judged.

    `args` are the arguments that the body would get. `given` holds the names of those that the
    model itself sent; None means all of them. `declared` None means that the tool has no metadata
    at all. `resolved` maps path texts to absolute, symlink-free paths, for `under` (clause 12).
    """

    tool: str
    args: Mapping[str, Any]
    declared: ToolMetadata | None
    context: ExecutionContext
    namespace: str | None = None
    given: frozenset[str] | None = None
    injected: Mapping[str, Any] = field(default_factory=_empty)
    resolved: Mapping[str, str] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True)
class Obligation:
    """A mandatory side action that rides on a decision (the XACML idea).

    `phase` pre gates the action, post follows it. `on` always also runs where the body does not
    (clause 25).
    """

    id: str
    phase: Literal["pre", "post"] = "post"
    params: Mapping[str, Any] = field(default_factory=_empty)
    on: Literal["execute", "always"] = "execute"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of `evaluate`.

    `effective_args` are the arguments to execute, preview or ask about; None means as proposed.
    `approver_sets` has one entry for each ask that must be met, each a tuple of who may grant it
    (an empty tuple: whoever the handler asks). `timeout_seconds` bounds the asking.
    """

    verdict: Verdict
    reason: str = ""
    matched_rules: tuple[str, ...] = ()
    approver_sets: tuple[tuple[str, ...], ...] = ()
    effective_args: Mapping[str, Any] | None = None
    timeout_seconds: float | None = None
    obligations: tuple[Obligation, ...] = ()

    @property
    def approvers(self) -> tuple[str, ...]:
        """Everybody named in any approver set, in order, once each."""
        return tuple(dict.fromkeys(name for names in self.approver_sets for name in names))

    @property
    def transform_args(self) -> Mapping[str, Any] | None:
        """Another name for `effective_args`, which `lynx-agent` uses."""
        return self.effective_args


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One question to a person: may this call, with exactly these arguments, run?

    `request.args` are the final arguments. `approvers` is the one set being asked. `digest` binds
    the answer to tool identity, arguments, principal and occurrence. `timeout_seconds` is how long
    the asking may take.
    """

    request: ActionRequest
    decision: Decision
    correlation_id: str
    id: str = ""
    approvers: tuple[str, ...] = ()
    digest: str = ""
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A person's answer; only `granted` being the bool True grants (clause 22).

    `edited_args`, where given, are other arguments for the same tool: judged again (clause 23).
    """

    granted: bool
    approver: str = ""
    reason: str = ""
    edited_args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A call that waits for a person; `id` is all that a framework's saved state may carry.

    `decision.effective_args` are the arguments that would run, where they differ from the
    request's. `call_id` is the provider's name of the call, if it has one.
    """

    id: str
    request: ActionRequest
    decision: Decision
    digest: str
    expires_at: datetime | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ObligationOutcome:
    """What came of one obligation."""

    id: str
    phase: Literal["pre", "post"]
    fulfilled: bool
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What enforcement produced: the tool's own value, a preview, or why there is none.

    `code` says which kind of refusal or failure it was (`denied`, `refused_arguments`,
    `approval_refused`, ...), empty on success. `duration_ms` is the time of the body alone, in
    milliseconds.
    """

    ok: bool
    value: Any = None
    error: str | None = None
    code: str = ""
    duration_ms: float = 0.0
    obligations: tuple[ObligationOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class GovernedCall:
    """One governed call: what was asked, decided, and what came of it."""

    decision: Decision
    result: ActionResult
    request: ActionRequest
    outcome: Outcome
    pending: PendingApproval | None = None
    replayed: bool = False
    """Whether this is what an earlier attempt came to, given again: nothing ran or was recorded."""

    @property
    def allowed(self) -> bool:
        """Whether the action ran, or was previewed, successfully."""
        return self.result.ok

    @property
    def text(self) -> str | None:
        """What the model is told in place of a result; None where the body ran or waits."""
        from adjudge._texts import model_text

        return model_text(self)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One line of the record; `seq` numbers the governed call within its guard."""

    correlation_id: str
    bundle_id: str
    seq: int
    kind: str
    timestamp: datetime
    body: Mapping[str, Any] = field(default_factory=_empty)
