"""What a guard is made of, as mediation sees it: fixed, and shared by all its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from adjudge._enforcement.approvals import ApprovalHandler, PauseApproval
from adjudge._enforcement.bodies import Bodies
from adjudge._enforcement.cancel import Cancelled
from adjudge._enforcement.doors import Door
from adjudge._ledger.entries import Ledger
from adjudge._record.redaction import Redactor
from adjudge._types import (
    ActionRequest,
    Decision,
    ExecutionContext,
    Obligation,
    Principal,
    ToolMetadata,
)

__all__ = ["ObligationHandler", "Policy", "Settings"]

_MOST_KEPT = 256

ObligationHandler: TypeAlias = Callable[[Obligation, ActionRequest, ExecutionContext], Any]


class Policy(Protocol):
    """What enforcement needs of a policy bundle, layered or not."""

    @property
    def id(self) -> str: ...
    @property
    def may_ask(self) -> bool: ...
    def metadata_for(
        self, tool: str, namespace: str | None, declared: ToolMetadata | None
    ) -> ToolMetadata | None: ...
    def paths_to_resolve(self, request: ActionRequest) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What a guard is made of, as mediation sees it.

    `records` says that there are sinks, `holds_proposals` that a proposal may go on record together
    with the judgment on it: nothing of anybody else's runs in between. `may_read_paths` False says
    that the policy never asks where a path leads. `described` is the guard's own principal as the
    record shows it. `keeps_judgments` says that redacted bodies of judgments may be kept for the
    next call that the same decision is made about, `bodies` has those of each tool.
    """

    policy: Any
    evaluate: Callable[[Any, ActionRequest], Decision]
    correlation_id: str
    records: bool
    holds_proposals: bool
    may_read_paths: bool
    principal: Principal
    environment: str | None
    workspace: str
    approval: ApprovalHandler | PauseApproval
    obligations: Mapping[str, ObligationHandler] | None
    ledger: Ledger | None
    shadows: Mapping[str, Callable[..., Any]]
    cancel: Cancelled | None
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    redact: Redactor
    keeps_judgments: bool
    described: Mapping[str, Any]
    bodies: dict[tuple[str, int, str | None], Bodies] = field(default_factory=dict)

    def bodies_of(self, door: Door) -> Bodies:
        """Give what makes the bodies of the events of a call at that door."""
        key = (door.tool, door.attempt, door.namespace)
        found = self.bodies.get(key)
        if found is None:
            if len(self.bodies) >= _MOST_KEPT:
                self.bodies.clear()
            found = Bodies(self.redact, *key, keeps_judgments=self.keeps_judgments)
            self.bodies[key] = found
        return found

    def shadow_of(self, door: Door) -> Callable[..., Any] | None:
        """Give what previews the tool: its own shadow, or the one that the guard was given."""
        return door.shadow if door.shadow is not None else self.shadows.get(door.tool)

    def metadata(self, door: Door) -> ToolMetadata | None:
        """Give what is known of the tool, `has_shadow` being whether a preview could really run."""
        declared: ToolMetadata | None = self.policy.metadata_for(
            door.tool, door.namespace, door.declared
        )
        if declared is None:
            return None
        has_shadow = self.shadow_of(door) is not None
        if declared.has_shadow is has_shadow:
            return declared
        return replace(declared, has_shadow=has_shadow)
