"""Going on with a paused call, in any process that sees the ledger (clause 24).

The entry is claimed first, by one compare-and-set: of two that resume at once, one goes on and the
other is told so. Then the original arguments are judged again, and only then the person's answer
is looked at. An entry that was claimed and never finished is uncertain: nobody knows whether the
body ran, and it is not run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adjudge._arguments.proposal import InvalidArguments
from adjudge._enforcement.asking import Asking, call_digest, request_approval, take_answer
from adjudge._enforcement.attempt import Refusal, Steps, failure_text, final_request
from adjudge._enforcement.doors import Door, UnknownToolDoor
from adjudge._enforcement.effects import Mediating, Raised, UseLedger
from adjudge._enforcement.mediation import Mediation
from adjudge._enforcement.settings import Settings
from adjudge._ledger.entries import EntryState, Ledger, LedgerEntry, checked_claim
from adjudge._types import (
    ActionRequest,
    ActionResult,
    Decision,
    ExecutionContext,
    GovernedCall,
    Outcome,
    PendingApproval,
    ToolMetadata,
    Verdict,
)
from adjudge._values import EMPTY
from adjudge.errors import ArgumentsRefused, NotAnObject

__all__ = ["Resumption", "resume_entry"]


def resume_entry(
    settings: Settings,
    pending_id: str,
    answer: object,
    *,
    next_seq: Callable[[], int],
    door_for: Callable[[str], Door],
) -> Mediating:
    """Mediate the resumption of the paused call with that id."""
    ledger = settings.ledger
    if ledger is None:
        away = _TurnedAway(settings, pending_id, None, next_seq())
        return (yield from away.tell("unknown_approval", "this guard has no ledger"))
    holder = settings.new_id()
    try:
        claimed = yield UseLedger(
            ledger.claim,
            (pending_id,),
            {"expected": EntryState.PAUSED, "holder": holder, "now": settings.now()},
            may_block=True,
        )
        entry = checked_claim(claimed, holder)
        if entry is None:
            return (yield from _not_claimed(settings, ledger, pending_id, next_seq))
    except Exception as error:
        away = _TurnedAway(settings, pending_id, None, next_seq())
        return (yield from away.tell("ledger_failed", failure_text(error)))
    except BaseException as error:
        # Whether the claim went through is not known here; the ledger knows.
        yield from _give_back(ledger, pending_id, holder)
        return Raised(error)
    resumption = Resumption(settings, door_for(entry.tool), entry.seq, entry.args)
    return (yield from resumption.run_claimed(entry, holder, answer))


def _give_back(ledger: Ledger, pending_id: str, holder: str) -> Steps[None]:
    try:
        entry = yield UseLedger(ledger.get, (pending_id,), may_block=True)
        if isinstance(entry, LedgerEntry) and entry.holder == holder:
            yield UseLedger(
                ledger.settle,
                (pending_id,),
                {
                    "holder": holder,
                    "state": EntryState.PAUSED,
                    "grants": entry.grants,
                    "outcome": None,
                },
                may_block=True,
            )
    except Exception:
        return  # It stays claimed: uncertain, and never run.


def _not_claimed(
    settings: Settings, ledger: Ledger, pending_id: str, next_seq: Callable[[], int]
) -> Mediating:
    """Say why an entry could not be claimed; an expired one ends here."""
    entry = yield UseLedger(ledger.get, (pending_id,), may_block=True)
    if entry is None:
        away = _TurnedAway(settings, pending_id, None, next_seq())
        return (yield from away.tell("unknown_approval", f"no call waits under {pending_id!r}"))
    if (yield UseLedger(ledger.expire, (pending_id,), {"now": settings.now()}, may_block=True)):
        return (yield from _TurnedAway(settings, pending_id, entry, entry.seq).tell_expired(entry))
    away = _TurnedAway(settings, pending_id, entry, next_seq())
    if entry.state is EntryState.CLAIMED:
        return (
            yield from away.tell(
                "uncertain",
                "the call was started and its outcome is not known; it is not run again",
            )
        )
    ended = f"ended as {entry.outcome}" if entry.outcome else "is not paused"
    return (yield from away.tell("approval_spent", f"the call {ended}; it is not run again"))


class _TurnedAway(Mediation):
    """A resumption that never got hold of its entry."""

    __slots__ = ("pending_id",)

    def __init__(
        self, settings: Settings, pending_id: str, entry: LedgerEntry | None, seq: int
    ) -> None:
        tool = "<unknown>" if entry is None else entry.tool
        super().__init__(settings, UnknownToolDoor(tool), seq)
        self.pending_id = pending_id
        self.request = ActionRequest(tool, EMPTY, None, self.own_context())
        if entry is not None:
            self.request = _request_of(entry, settings, None)

    def tell(self, code: str, reason: str) -> Mediating:
        """Deny by value, and record it under a number of its own."""
        self.result = ActionResult(False, None, reason, code)
        about = {"code": code, "reason": reason}
        about |= {"approval_id": self.pending_id, "phase": "resume"}
        yield from self.end(Outcome.DENIED, about)
        return self.governed(Outcome.DENIED)

    def tell_expired(self, entry: LedgerEntry) -> Mediating:
        """Record the end of the paused call."""
        self.correlation_id = entry.correlation_id
        self.result = ActionResult(False, None, "the approval has expired", "approval_expired")
        self.ended = self.settled = True
        yield from self.emit("approval.expired", {"approval_id": self.pending_id})
        return self.governed(Outcome.DENIED)


class Resumption(Mediation):
    """A paused call that goes on."""

    __slots__ = ()

    def run_claimed(self, entry: LedgerEntry, holder: str, answer: object) -> Mediating:
        """Mediate from the claimed entry to the terminal event."""
        self.entry, self.holder = entry, holder
        self.correlation_id = entry.correlation_id
        return self._guarded(self._from_entry(entry, answer))

    def _from_entry(self, entry: LedgerEntry, answer: object) -> Steps[GovernedCall | Raised]:
        self.request = _request_of(entry, self.settings, self.settings.metadata(self.door))
        try:
            admitted = self.door.admit(self.arguments)
        except (ArgumentsRefused, NotAnObject, InvalidArguments) as error:
            raise Refusal(
                "policy_changed", f"the tool has changed, propose again: {error}"
            ) from None
        request = replace(self.request, args=admitted.args, given=admitted.given)
        request, decision = yield from self.judge(request)
        self.request, self.decision = request, decision
        yield from self.record_judgment(request, decision, phase="resume")
        if not self.door.known:
            raise Refusal("unknown_tool", f"unknown tool: {self.door.tool!r}", discharges="none")
        if decision.verdict is Verdict.DENY:
            raise Refusal("denied", decision.reason, discharges="all")
        if not _still_holds(entry, request, decision):
            raise Refusal("policy_changed", "the policy has changed, propose again")
        return (yield from self._answered(entry, answer, request, decision))

    def _answered(
        self, entry: LedgerEntry, answer: object, request: ActionRequest, decision: Decision
    ) -> Steps[GovernedCall | Raised]:
        index = len(entry.grants)
        if len(entry.approver_sets) > 1 and getattr(answer, "edited_args", None) is not None:
            # The others have granted, or will be asked about, the arguments as they were.
            raise Refusal(
                "edit_denied", "one of several approvers cannot edit a paused call, propose again"
            )
        remaining = (entry.expires_at - self.settings.now()).total_seconds()
        asking = Asking(entry.id, request, decision, entry.digest, max(remaining, 0.0))
        approver = yield from take_answer(self, asking, answer, index)
        if decision.verdict is Verdict.ALLOW or index + 1 >= len(entry.approver_sets):
            return (yield from self.carry_out(asking.request, asking.decision))
        yield from request_approval(self, asking, index + 1)
        yield from self.settle_entry(
            EntryState.PAUSED, grants=(*entry.grants, approver), outcome=None
        )
        pending = PendingApproval(entry.id, request, decision, entry.digest, entry.expires_at)
        return self.governed(Outcome.PENDING, pending)


def _still_holds(entry: LedgerEntry, request: ActionRequest, decision: Decision) -> bool:
    """Whether the call is allowed now, or asked about by the same rule with the same digest."""
    if decision.verdict is Verdict.ALLOW:
        return True
    return (
        decision.verdict is Verdict.APPROVE_REQUIRED
        and decision.matched_rules == entry.matched_rules
        and decision.approver_sets == entry.approver_sets
        and call_digest(final_request(request, decision), entry.occurrence) == entry.digest
    )


def _request_of(
    entry: LedgerEntry, settings: Settings, declared: ToolMetadata | None
) -> ActionRequest:
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
