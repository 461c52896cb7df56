"""What the ledger keeps of one call: the entry of an occurrence, and the digest that binds it.

Used by whatever makes a call wait, for a person or for something inside of its own body.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from adjudge._enforcement.effects import UseLedger
from adjudge._ledger.entries import EntryState, LedgerEntry
from adjudge._types import (
    ActionRequest,
    Decision,
    ExecutionContext,
    PendingApproval,
    ToolMetadata,
    Verdict,
)
from adjudge._values import FrozenDict, digest
from adjudge.errors import LedgerError

if TYPE_CHECKING:
    from adjudge._enforcement.attempt import Attempt, Steps
    from adjudge._enforcement.settings import Settings

__all__ = ["call_digest", "enter", "pending_of", "request_of"]


def call_digest(request: ActionRequest, occurrence: str) -> str:
    """Bind tool identity, final arguments, principal and occurrence into one digest (clause 22)."""
    who = request.context.principal
    return digest(
        {
            "tool": request.tool,
            "namespace": request.namespace,
            "args": request.args,
            "principal": {"kind": who.kind, "id": who.id, "name": who.name},
            "occurrence": occurrence,
        }
    )


def enter(
    attempt: Attempt,
    request: ActionRequest,
    decision: Decision,
    *,
    id: str,
    digest: str,
    state: EntryState,
    seconds: float,
    in_run: bool = True,
    outcome: str | None = None,
    result: Mapping[str, Any] | None = None,
) -> Steps[LedgerEntry | None]:
    """Make the ledger's entry of this occurrence, where there is a ledger.

    `in_run` False leaves it out of what the ledger gives of the run: it is found by its id alone.
    """
    settings, door, context = attempt.settings, attempt.door, request.context
    if settings.ledger is None:
        return None
    holder = attempt.holder if state in (EntryState.CLAIMED, EntryState.FINISHED) else None
    final = request.args if decision.effective_args is None else decision.effective_args
    entry = LedgerEntry(
        id=id,
        tool=request.tool,
        namespace=request.namespace,
        args=attempt.sent,
        digest=digest,
        principal=context.principal,
        occurrence=attempt.occurrence,
        policy_id=settings.policy.id,
        matched_rules=decision.matched_rules,
        approver_sets=decision.approver_sets,
        correlation_id=attempt.correlation_id,
        seq=attempt.seq,
        call_id=door.call_id,
        attempt=door.attempt,
        environment=context.environment,
        workspace=context.workspace,
        extra=FrozenDict(context.extra),
        session=context.session,
        injected=request.injected,
        expires_at=settings.now() + timedelta(seconds=seconds),
        state=state,
        run=door.run.id if in_run and door.run is not None else None,
        reason=decision.reason,
        final_args=final,
        holder=holder,
        outcome=outcome,
        result=result,
    )
    # Known before it is added: a cancellation meanwhile must find it, to finish it.
    attempt.entry = entry
    try:
        yield UseLedger(settings.ledger.add, (entry,), may_block=True)
    except LedgerError:
        yield from attempt.not_entered(entry)
        raise
    return entry


def request_of(
    entry: LedgerEntry, settings: Settings, declared: ToolMetadata | None
) -> ActionRequest:
    """Give the request of an entry, with the arguments as the model sent them."""
    context = ExecutionContext(
        entry.principal,
        entry.environment,
        entry.workspace,
        entry.correlation_id,
        entry.seq,
        settings.now(),
        entry.extra,
        entry.session,
    )
    return ActionRequest(
        entry.tool, entry.args, declared, context, entry.namespace, None, entry.injected
    )


def pending_of(entry: LedgerEntry, settings: Settings) -> PendingApproval:
    """Give what a person is shown of an entry that waits; `effective_args` are what would run."""
    decision = Decision(
        Verdict.APPROVE_REQUIRED,
        entry.reason,
        entry.matched_rules,
        entry.approver_sets,
        effective_args=entry.final_args,
    )
    request = request_of(entry, settings, None)
    return PendingApproval(
        entry.id, request, decision, entry.digest, entry.expires_at, entry.call_id
    )
