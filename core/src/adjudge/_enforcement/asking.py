"""Asking people: one question for each approver set, their answers and edits, and pauses.

Every approval is for one occurrence of one call (clause 22). Only an `ApprovalDecision` whose
`granted` is the bool True grants; an edit is judged again under the same grant (clause 23).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from adjudge._enforcement.approvals import DEFAULT_APPROVAL_TIMEOUT, ApprovalHandler, PauseApproval
from adjudge._enforcement.attempt import Refusal, Steps, failure_text, final_request
from adjudge._enforcement.effects import ApprovalHandlerFailed, ApprovalTimedOut, Ask
from adjudge._enforcement.judging import Judging, same, united
from adjudge._enforcement.keeping import call_digest, enter
from adjudge._ledger.entries import EntryState, LedgerEntry
from adjudge._types import (
    ActionRequest,
    ApprovalDecision,
    ApprovalRequest,
    Decision,
    PendingApproval,
    Verdict,
)
from adjudge._values import freeze_object
from adjudge.errors import ArgumentsRefused

__all__ = [
    "LONGEST_TIMEOUT",
    "Asking",
    "ask_handler",
    "edit_again",
    "pause",
    "request_approval",
    "take_answer",
]

LONGEST_TIMEOUT = 10 * 365 * 86400.0
"""Seconds that an entry of the ledger may wait at all."""


@dataclass(slots=True)
class Asking:
    """One approval while it is being obtained: what is asked about, and under which id."""

    id: str
    request: ActionRequest
    decision: Decision
    digest: str
    timeout_seconds: float

    @property
    def approver_sets(self) -> tuple[tuple[str, ...], ...]:
        """The sets that must grant, at least one."""
        return self.decision.approver_sets or ((),)

    def question(self, index: int, correlation_id: str) -> ApprovalRequest:
        """Give the question for one approver set."""
        return ApprovalRequest(
            request=final_request(self.request, self.decision),
            decision=self.decision,
            correlation_id=correlation_id,
            id=self.id,
            approvers=self.approver_sets[index],
            digest=self.digest,
            timeout_seconds=self.timeout_seconds,
        )


def open_asking(
    attempt: Judging, request: ActionRequest, decision: Decision, default_timeout: float
) -> Asking:
    """Make a new occurrence to ask about, unless nobody is to be asked."""
    before_asking = attempt.door.before_asking
    refused = None if before_asking is None else before_asking(request)
    if refused is not None:
        raise Refusal(*refused)
    seconds = decision.timeout_seconds
    timeout = min(default_timeout if seconds is None else seconds, LONGEST_TIMEOUT)
    return Asking(
        id=attempt.entry_id(),
        request=request,
        decision=decision,
        digest=_digest(request, decision, attempt.occurrence),
        timeout_seconds=timeout,
    )


def ask_handler(
    attempt: Judging, request: ActionRequest, decision: Decision, handler: ApprovalHandler
) -> Steps[Decision]:
    """Ask the handler once for each approver set; give the decision to execute under, or refuse."""
    asking = open_asking(attempt, request, decision, DEFAULT_APPROVAL_TIMEOUT)
    sets = asking.approver_sets
    yield from _enter(attempt, asking, EntryState.ASKED, asking.timeout_seconds * len(sets))
    for index in range(len(sets)):
        yield from request_approval(attempt, asking, index)
        try:
            answer = yield Ask(
                handler,
                asking.question(index, attempt.correlation_id),
                asking.timeout_seconds,
            )
        except ApprovalTimedOut:
            yield from attempt.emit(
                "approval.timed_out",
                {"approval_id": asking.id, "timeout_seconds": asking.timeout_seconds},
            )
            raise Refusal(
                "approval_timed_out", f"approval timed out after {asking.timeout_seconds:g} s"
            ) from None
        except ApprovalHandlerFailed as failed:
            answer = failed
        yield from take_answer(attempt, asking, answer, index)
    if attempt.entry is not None and not (yield from attempt.claim_entry(EntryState.ASKED)):
        raise Refusal("approval_spent", "the approval has expired or was used already")
    return asking.decision


def pause(
    attempt: Judging, request: ActionRequest, decision: Decision, how: PauseApproval
) -> Steps[PendingApproval]:
    """Enter the call into the ledger and leave it there for `resume`."""
    asking = open_asking(attempt, request, decision, how.timeout_seconds)
    entry = yield from _enter(attempt, asking, EntryState.PAUSED, asking.timeout_seconds)
    assert entry is not None
    yield from request_approval(attempt, asking, 0)
    yield from attempt.emit(
        "approval.pending",
        {
            "approval_id": asking.id,
            "digest": asking.digest,
            "expires_at": entry.expires_at.isoformat(),
        },
    )
    if attempt.door.run is not None:
        attempt.door.run.keep(entry)
    return PendingApproval(
        asking.id, request, decision, asking.digest, entry.expires_at, entry.call_id
    )


def request_approval(attempt: Judging, asking: Asking, index: int) -> Steps[None]:
    """Record that one approver set is asked."""
    yield from attempt.emit(
        "approval.requested",
        {
            "approval_id": asking.id,
            "approvers": asking.approver_sets[index],
            "digest": asking.digest,
            "timeout_seconds": asking.timeout_seconds,
            "args": final_request(asking.request, asking.decision).args,
        },
    )


def take_answer(attempt: Judging, asking: Asking, answer: object, index: int) -> Steps[str]:
    """Name the approver whom an answer shows to have granted, its edit applied; else refuse."""
    problem = _problem(answer)
    if problem is not None:
        yield from attempt.emit(
            "approval.refused",
            {"approval_id": asking.id, "code": "approval_failed", "reason": problem},
        )
        raise Refusal("approval_failed", f"the approval handler failed: {problem}")
    assert isinstance(answer, ApprovalDecision)
    about = {"approval_id": asking.id, "approver": answer.approver, "reason": answer.reason}
    if answer.granted is not True:
        yield from attempt.emit("approval.refused", {**about, "code": "approval_refused"})
        by = f" by {answer.approver}" if answer.approver else ""
        why = f": {answer.reason}" if answer.reason else ""
        raise Refusal("approval_refused", f"approval refused{by}{why}")
    yield from attempt.emit("approval.granted", about)
    if answer.edited_args is not None:
        yield from _apply_edit(attempt, asking, answer.edited_args, index)
    return answer.approver


def _problem(answer: Any) -> str | None:
    if isinstance(answer, ApprovalHandlerFailed):
        return failure_text(answer.error)
    # A subclass could say what it likes about `granted`.
    if type(answer) is not ApprovalDecision:
        return f"it answered with a {type(answer).__name__}, which is no ApprovalDecision"
    granted: object = answer.granted
    if not isinstance(granted, bool):
        return f"it answered granted={granted!r}, which is no bool"
    words: tuple[object, ...] = (answer.approver, answer.reason)
    if not all(isinstance(word, str) for word in words):
        return "its answer names the approver or the reason by something that is no text"
    return None


def _apply_edit(attempt: Judging, asking: Asking, edited: object, index: int) -> Steps[None]:
    """Judge edited arguments; allow, or the same asking rule, goes on with them (clause 23)."""
    try:
        args = attempt.completed(freeze_object(edited))  # type: ignore[arg-type]
    except ArgumentsRefused as error:
        raise Refusal("edit_denied", f"the edited arguments are refused: {error}") from None
    if same(args, final_request(asking.request, asking.decision).args):
        return
    if index > 0:
        raise Refusal(
            "edit_denied", "the arguments were edited after somebody else had approved others"
        )
    original = asking.request
    given = original.given if original.given is not None else frozenset(original.args)
    request, decision = yield from attempt.judge(replace(original, args=args, given=given))
    yield from attempt.record_judgment(request, decision, phase="edit", edited=args)
    if decision.effective_args is not None and not same(decision.effective_args, args):
        raise Refusal("edit_denied", "the policy would rewrite the edited arguments")
    if decision.verdict is not Verdict.ALLOW and not same_ask(decision, asking.decision):
        why = f": {decision.reason}" if decision.reason else ""
        raise Refusal("edit_denied", f"the edited arguments are not permitted{why}")
    asking.request = request
    asking.decision = replace(
        asking.decision,
        effective_args=args,
        obligations=united(asking.decision.obligations, decision.obligations),
    )
    asking.digest = _digest(request, asking.decision, attempt.occurrence)
    attempt.request = request
    attempt.decision = asking.decision


def edit_again(
    attempt: Judging, entry: LedgerEntry, request: ActionRequest, decision: Decision
) -> Steps[tuple[ActionRequest, Decision]]:
    """Apply the edit under which the body of an entry began, where there was one."""
    asking = Asking(entry.id, request, decision, entry.digest, 0.0)
    for answer in entry.answers:
        if answer.edited_args is not None:
            yield from _apply_edit(attempt, asking, answer.edited_args, 0)
    return asking.request, asking.decision


def same_ask(one: Decision, other: Decision) -> bool:
    """Whether two decisions are the asking of the same rules, to the same people."""
    return (
        one.verdict is Verdict.APPROVE_REQUIRED
        and other.verdict is Verdict.APPROVE_REQUIRED
        and one.matched_rules == other.matched_rules
        and one.approver_sets == other.approver_sets
    )


def _digest(request: ActionRequest, decision: Decision, occurrence: str) -> str:
    return call_digest(final_request(request, decision), occurrence)


def _enter(
    attempt: Judging, asking: Asking, state: EntryState, seconds: float
) -> Steps[LedgerEntry | None]:
    return enter(
        attempt,
        asking.request,
        asking.decision,
        id=asking.id,
        digest=asking.digest,
        state=state,
        seconds=seconds,
    )
