"""Going on with a call that waits, in any process that sees the ledger (clause 24).

The entry is claimed first, by one compare-and-set: of two that resume at once, one goes on and the
other is told so. Then the original arguments are judged again, and only then the people's answers
are looked at. An entry that was claimed and never finished is uncertain: nobody knows whether the
body ran, and it is not run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adjudge._arguments.proposal import InvalidArguments
from adjudge._enforcement.asking import Asking, request_approval, take_answer
from adjudge._enforcement.attempt import Refusal, Steps, failure_text, final_request
from adjudge._enforcement.effects import Approach, Mediating, Raised, UseLedger
from adjudge._enforcement.keeping import call_digest, request_of
from adjudge._enforcement.mediation import Mediation
from adjudge._enforcement.settings import Settings
from adjudge._enforcement.tool_doors import UnknownToolDoor
from adjudge._ledger.entries import EntryState, Ledger, LedgerEntry, checked_claim
from adjudge._types import (
    ActionRequest,
    ActionResult,
    Decision,
    Outcome,
    PendingApproval,
    Verdict,
)
from adjudge._values import EMPTY
from adjudge.errors import ArgumentsRefused, NotAnObject

__all__ = ["Resumption", "claim_and_go_on", "final_digest", "turned_away"]


def claim_and_go_on(
    settings: Settings,
    pending_id: str,
    *,
    expected: EntryState,
    in_run: bool,
    next_seq: Callable[[], int],
    go_on: Callable[[LedgerEntry, str], Mediating],
) -> Mediating:
    """Claim the entry with that id and mediate what `go_on` makes of it and of its holder's name.

    `in_run` False leaves alone what is part of a framework's run. Where it cannot be claimed, say
    why, by value.
    """
    ledger = settings.ledger
    if ledger is None:
        away = _TurnedAway(settings, pending_id, None, next_seq())
        return (yield from away.tell("unknown_approval", "this guard has no ledger"))
    holder = settings.new_id()
    try:
        if not in_run and (yield from _is_of_a_run(ledger, pending_id)):
            away = _TurnedAway(settings, pending_id, None, next_seq())
            why = "the call is part of a framework's run; resume that with the answer"
            return (yield from away.tell("part_of_a_run", why))
        claimed = yield UseLedger(
            ledger.claim,
            (pending_id,),
            {"expected": expected, "holder": holder, "now": settings.now()},
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
        yield from _give_back(ledger, pending_id, holder, expected)
        return Raised(error)
    return (yield from go_on(entry, holder))


def _is_of_a_run(ledger: Ledger, pending_id: str) -> Steps[bool]:
    entry = yield UseLedger(ledger.get, (pending_id,), may_block=True)
    return isinstance(entry, LedgerEntry) and entry.run is not None


def _give_back(ledger: Ledger, pending_id: str, holder: str, expected: EntryState) -> Steps[None]:
    try:
        entry = yield UseLedger(ledger.get, (pending_id,), may_block=True)
        if isinstance(entry, LedgerEntry) and entry.holder == holder:
            yield UseLedger(
                ledger.settle,
                (pending_id,),
                {
                    "holder": holder,
                    "state": expected,
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
    if entry.state is EntryState.PAUSED:
        return (yield from away.tell("unanswered", "nobody has answered yet"))
    ended = f"ended as {entry.outcome}" if entry.outcome else "is not paused"
    return (yield from away.tell("approval_spent", f"the call {ended}; it is not run again"))


def turned_away(settings: Settings, entry: LedgerEntry, seq: int) -> _TurnedAway:
    """Make what tells somebody that a call does not go on for them; the entry stays as it is."""
    return _TurnedAway(settings, entry.id, entry, seq)


class _TurnedAway(Mediation):
    """A resumption that never got hold of its entry."""

    def __init__(
        self, settings: Settings, pending_id: str, entry: LedgerEntry | None, seq: int
    ) -> None:
        tool = "<unknown>" if entry is None else entry.tool
        super().__init__(settings, UnknownToolDoor(tool), seq)
        self.pending_id = pending_id
        self.request = ActionRequest(tool, EMPTY, None, self.own_context())
        if entry is not None:
            self.request = request_of(entry, settings, None)

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
    """A call that waited and goes on."""

    def run_claimed(
        self, entry: LedgerEntry, holder: str, answers: tuple[object, ...]
    ) -> Mediating:
        """Mediate from the claimed entry to the terminal event."""
        self.entry, self.holder = entry, holder
        self.correlation_id = entry.correlation_id
        return self.guarded(self._from_entry(entry, answers))

    def _from_entry(self, entry: LedgerEntry, answers: tuple[object, ...]) -> Approach:
        request, decision = yield from self.judge_again(entry)
        if not _still_holds(entry, request, decision):
            raise Refusal("policy_changed", "the policy has changed, propose again")
        return (yield from self._answered(entry, answers, request, decision))

    def judge_again(self, entry: LedgerEntry) -> Steps[tuple[ActionRequest, Decision]]:
        """Judge what the model had sent, once more; a denial holds whatever was answered."""
        self.request = request_of(entry, self.settings, self.settings.metadata(self.door))
        request = yield from self.restored(entry, self.request)
        request, decision = yield from self.judge(request)
        self.request, self.decision = request, decision
        yield from self.record_judgment(request, decision, phase="resume")
        if not self.door.known:
            raise Refusal("unknown_tool", f"unknown tool: {self.door.tool!r}", discharges="none")
        if decision.verdict is Verdict.DENY:
            raise Refusal("denied", decision.reason, discharges="all")
        return request, decision

    def restored(self, entry: LedgerEntry, request: ActionRequest) -> Steps[ActionRequest]:
        """Give the request with its arguments as the body would get them."""
        try:
            admitted = self.door.admit(entry.args)
        except (ArgumentsRefused, NotAnObject, InvalidArguments) as error:
            raise Refusal(
                "policy_changed", f"the tool has changed, propose again: {error}"
            ) from None
        yield from ()
        return replace(request, args=admitted.args, given=admitted.given)

    def _answered(
        self,
        entry: LedgerEntry,
        answers: tuple[object, ...],
        request: ActionRequest,
        decision: Decision,
    ) -> Approach:
        sets = max(1, len(entry.approver_sets))
        if sets > 1 and any(getattr(answer, "edited_args", None) is not None for answer in answers):
            # The others have granted, or will be asked about, the arguments as they were.
            raise Refusal(
                "edit_denied", "one of several approvers cannot edit a paused call, propose again"
            )
        remaining = (entry.expires_at - self.settings.now()).total_seconds()
        asking = Asking(entry.id, request, decision, entry.digest, max(remaining, 0.0))
        grants = list(entry.grants)
        for answer in answers:
            if _grants_again(answer, grants):
                continue
            if len(grants) > len(entry.grants):
                yield from request_approval(self, asking, len(grants))
            grants.append((yield from take_answer(self, asking, answer, len(grants))))
        if decision.verdict is Verdict.ALLOW or len(grants) >= sets:
            return (yield from self.carry_out(asking.request, asking.decision))
        yield from request_approval(self, asking, len(grants))
        yield from self.settle_entry(EntryState.PAUSED, grants=tuple(grants), outcome=None)
        pending = PendingApproval(
            entry.id, request, decision, entry.digest, entry.expires_at, entry.call_id
        )
        return self.governed(Outcome.PENDING, pending)


def _grants_again(answer: object, grants: list[str]) -> bool:
    """Whether somebody grants who has granted already, for another approver set."""
    return getattr(answer, "granted", None) is True and getattr(answer, "approver", "") in grants


def _still_holds(entry: LedgerEntry, request: ActionRequest, decision: Decision) -> bool:
    """Whether the call is allowed now, or asked about by the same rule with the same digest."""
    if decision.verdict is Verdict.ALLOW:
        return True
    return (
        decision.verdict is Verdict.APPROVE_REQUIRED
        and decision.matched_rules == entry.matched_rules
        and decision.approver_sets == entry.approver_sets
        and final_digest(request, decision, entry) == entry.digest
    )


def final_digest(request: ActionRequest, decision: Decision, entry: LedgerEntry) -> str:
    """Give the digest of what would run now, for comparison with the entry's."""
    return call_digest(final_request(request, decision), entry.occurrence)
