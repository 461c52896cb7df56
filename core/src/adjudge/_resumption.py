"""Going on with a paused call, in any process that sees the ledger (clause 24).

The entry is claimed first, by one compare-and-set: of two that resume at once, one goes on and the other is told so. Then
the original arguments are judged again, and only then the person's answer is looked at. An entry that was claimed and never
finished is uncertain: nobody knows whether the body ran, and it is not run again.
"""

from __future__ import annotations

from collections.abc import Callable

from adjudge._admission import Door, InvalidArguments, UnknownToolDoor
from adjudge._asking import Asking, call_digest, request_approval, same_ask, take_answer
from adjudge._attempt import Refusal, Settings, Steps, failure_text, final_request
from adjudge._effects import Mediating, Raised, UseLedger
from adjudge._ledger import EntryState, Ledger, LedgerEntry
from adjudge._mediation import Mediation
from adjudge._types import (
    ActionRequest,
    ApprovalDecision,
    Decision,
    ExecutionContext,
    GovernedCall,
    Outcome,
    PendingApproval,
    Verdict,
)
from adjudge.errors import ArgumentsRefused, NotAnObject

__all__ = ["Resumption", "resume_entry"]

_CHANGED = Refusal("policy_changed", "the policy has changed, propose again")


def resume_entry(
    settings: Settings,
    pending_id: str,
    answer: object,
    *,
    next_seq: Callable[[], int],
    door_for: Callable[[LedgerEntry], Door],
) -> Mediating:
    """Mediate the resumption of the paused call with that id."""
    ledger = settings.ledger
    if ledger is None:
        away = _TurnedAway(settings, pending_id, None, next_seq())
        return (yield from away.tell("unknown_approval", "this guard has no ledger"))
    holder = settings.new_id()
    try:
        entry = yield UseLedger(
            ledger.claim,
            (pending_id,),
            {"expected": EntryState.PAUSED, "holder": holder, "now": settings.now()},
            may_block=True,
        )
        if entry is None:
            return (yield from _not_claimed(settings, ledger, pending_id, next_seq))
    except Exception as error:
        away = _TurnedAway(settings, pending_id, None, next_seq())
        return (yield from away.tell("ledger_failed", failure_text(error)))
    except BaseException as error:
        # Whether the claim went through is not known here; the ledger knows.
        yield from _give_back(ledger, pending_id, holder)
        return Raised(error)
    resumption = Resumption(settings, door_for(entry), entry.seq)
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
        away = _TurnedAway(settings, pending_id, entry, entry.seq)
        return (yield from away.tell("approval_expired", "the approval has expired"))
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

    __slots__ = ("pending_id", "waiting")

    def __init__(
        self, settings: Settings, pending_id: str, entry: LedgerEntry | None, seq: int
    ) -> None:
        name = "unknown" if entry is None else entry.tool
        super().__init__(settings, UnknownToolDoor(name, {}), seq)
        self.pending_id = pending_id
        self.waiting = entry

    def tell(self, code: str, reason: str) -> Mediating:
        """Deny, and record it: as the end of the call where it expired, else as an attempt of its own."""
        entry = self.waiting
        self.request = self._request_of(entry)
        if code == "approval_expired" and entry is not None:
            self.correlation_id = entry.correlation_id
            return self._guarded(self._expired(reason))
        return self._guarded(self._refused(Refusal(code, reason, discharges="none")))

    def _refused(self, refusal: Refusal) -> Steps[GovernedCall | Raised]:
        yield from self.emit(
            "step.proposed", {"phase": "resume", "approval_id": self.pending_id}
        )
        raise refusal

    def _expired(self, reason: str) -> Steps[GovernedCall | Raised]:
        self.settled = self.ended = True
        yield from self.emit("approval.expired", {"approval_id": self.pending_id})
        return self._denied_call("approval_expired", reason)
