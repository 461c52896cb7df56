"""Calls of a run that can pause: a first look, a pause, and the going on from where it stands.

A framework that pauses asks about a call before it runs it, saves its run, and later, maybe in
another process, reaches the body's door once more. What the ledger keeps of the call decides what
that is: the call that was asked about, a body that suspended itself, or something new.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

from adjudge._enforcement.admission import Reading
from adjudge._enforcement.approvals import PauseApproval
from adjudge._enforcement.asking import edit_again, pause
from adjudge._enforcement.attempt import Refusal, Steps
from adjudge._enforcement.doors import Door
from adjudge._enforcement.effects import Approach, Effect, Mediating, Raised
from adjudge._enforcement.judging import same
from adjudge._enforcement.keeping import pending_of, request_of
from adjudge._enforcement.resumption import (
    Resumption,
    claim_and_go_on,
    final_digest,
    turned_away,
)
from adjudge._enforcement.runs import GovernedRun, Look
from adjudge._enforcement.settings import Settings
from adjudge._ledger.entries import EntryState, LedgerEntry
from adjudge._types import (
    ActionRequest,
    Decision,
    ExecutionContext,
    PendingApproval,
    Verdict,
)
from adjudge._values import EMPTY, freeze_object
from adjudge.errors import LedgerError

__all__ = ["RunCall"]


class RunCall(Resumption):
    """One call of a run that can pause, at one of the points where its framework asks about it."""

    def __init__(
        self,
        settings: Settings,
        door: Door,
        arguments: str | Mapping[str, Any],
        run: GovernedRun,
        next_seq: Callable[[], int],
        *,
        extra: Mapping[str, Any] | None = None,
        context: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(settings, door, -1, arguments, extra, context)
        self._run = run
        self.next_seq = next_seq
        self._reading = Reading()

    def run(self) -> Mediating:
        """Mediate the call at its body's door."""
        return self.guarded(self._at_the_body())

    def _at_the_body(self) -> Approach:
        reading = self._reading = self.read()
        if reading.unread is None and reading.refusal is None:
            entry = yield from self.known(take=True)
            if entry is not None:
                return (yield from self.go_on(entry))
            look = self._run.look_at(self.occurrence)
            if look is not None:
                if look.denied is not None:
                    return look.denied
                self.seq = look.seq
                if look.caller is not None:
                    caller = look.caller
                    self.context = lambda: caller
        elif reading.refusal is not None:
            entry = self._take_by_id()
            if entry is not None:
                return (yield from self._refuse_waiting(entry, reading.refusal))
        if self.seq < 0:
            self.seq = self.next_seq()
        return (yield from self.mediate(reading))

    def known(self, *, take: bool) -> Steps[LedgerEntry | None]:
        """Give the entry of this call, None where it is a new one; `take` it to go on with it."""
        yield from ()
        occurrence = self.occurrence
        return self._run.take(occurrence) if take else self._run.waits(occurrence)

    def _take_by_id(self) -> LedgerEntry | None:
        """Find the call that waits under this id and in this place, whatever its arguments."""
        door = self.door
        for entry in self._run.entries if door.call_id is not None else ():
            if (entry.tool, entry.call_id) == (door.tool, door.call_id):
                self.sent = freeze_object(entry.args)
                if self.occurrence == entry.occurrence:  # ids alone repeat (fault X037)
                    return self._run.take(entry.occurrence)
        self.sent = EMPTY
        return None

    def _refuse_waiting(self, entry: LedgerEntry, refusal: Refusal) -> Approach:
        """End a call that waited, and whose own text turns out to be refused (clause 2)."""

        def claimed(entry: LedgerEntry, holder: str) -> Mediating:
            self.entry, self.holder, self.seq = entry, holder, entry.seq
            self.correlation_id, self.ended = entry.correlation_id, False
            self.request = request_of(entry, self.settings, None)
            return self.guarded(_raising(refusal))

        self.ended = True
        return (yield from self._claim(entry, claimed))

    # Before the body

    def look(self) -> Generator[Effect, Any, PendingApproval | Raised | None]:
        """Leave the call waiting if a person must be asked; what else it is shows at the body."""
        reading = self.read()
        if reading.unread is not None or reading.refusal is not None:
            return None
        try:
            entry = yield from self.known(take=False)
        except LedgerError:
            return None  # and at the body it is denied
        if entry is not None:
            # Whatever else became of the call is told where it would go on.
            waits = entry.state is EntryState.PAUSED and entry.expires_at > self.settings.now()
            return pending_of(entry, self.settings) if waits else None
        approval = self.settings.approval
        if not isinstance(approval, PauseApproval):
            return None
        self.seq = self.next_seq()
        try:
            context = yield from self.who()
            request, decision = yield from self.judge(self.take_up(reading, context))
        except Exception:
            return None  # and at the body it is denied
        if decision.verdict is not Verdict.APPROVE_REQUIRED:
            self._run.looked(self.occurrence, Look(self.seq, self.caller))
            return None
        steps = self._pausing(reading, context, request, decision, approval)
        paused = yield from self.guarded(steps)
        if isinstance(paused, Raised):
            return paused
        if paused.pending is None:
            self._run.looked(self.occurrence, Look(self.seq, self.caller, paused))
        return paused.pending

    def _pausing(
        self,
        reading: Reading,
        context: ExecutionContext,
        request: ActionRequest,
        decision: Decision,
        approval: PauseApproval,
    ) -> Approach:
        yield from self.propose(reading, context)
        self.request, self.decision = request, decision
        yield from self.record_judgment(request, decision, phase="propose")
        return self.paused((yield from pause(self, request, decision, approval)))

    # After a pause

    def go_on(self, entry: LedgerEntry) -> Mediating:
        """Go on with what the ledger keeps, or say by value why not."""
        # Asked before the entry is claimed: who else may resume must not use up a grant.
        self.seq = self.next_seq()
        try:
            yield from self.check_caller(entry)
        except Refusal as refused:
            turned = turned_away(self.settings, entry, self.seq)
            return (yield from turned.tell(refused.code, refused.reason))
        suspended = entry.state is EntryState.SUSPENDED
        self.ended = True  # until the entry is ours, this is no attempt

        def claimed(entry: LedgerEntry, holder: str) -> Mediating:
            self.ended = False
            self.seq = entry.seq
            if not suspended:
                return self.run_claimed(entry, holder, entry.answers)
            self.entry, self.holder = entry, holder
            self.correlation_id = entry.correlation_id
            return self.guarded(self._from_suspension(entry))

        return (yield from self._claim(entry, claimed))

    def _claim(
        self, entry: LedgerEntry, go_on: Callable[[LedgerEntry, str], Mediating]
    ) -> Mediating:
        suspended = entry.state is EntryState.SUSPENDED
        return claim_and_go_on(
            self.settings,
            entry.id,
            expected=EntryState.SUSPENDED if suspended else EntryState.ANSWERED,
            in_run=True,
            next_seq=self.next_seq,
            go_on=go_on,
        )

    def check_caller(self, entry: LedgerEntry) -> Steps[None]:
        context = yield from self.who()
        if context.principal != entry.principal:
            raise Refusal("other_caller", "the call was asked about for somebody else")
        caller = self.caller
        if caller is not None:
            self.context = lambda: caller

    def _from_suspension(self, entry: LedgerEntry) -> Approach:
        """Enter a body again that suspended itself: the same execution, judged again (law 6)."""
        self.continued = True
        request, decision = yield from self.judge_again(entry)
        asked = decision.verdict is Verdict.APPROVE_REQUIRED
        if (
            decision.verdict is Verdict.DRY_RUN
            or (asked and decision.matched_rules != entry.matched_rules)
            or (asked and decision.approver_sets != entry.approver_sets)
            or final_digest(request, decision, entry) != entry.digest
        ):
            raise Refusal("policy_changed", "the policy has changed, propose again")
        request, decision = yield from edit_again(self, entry, request, decision)
        return (yield from self.carry_out(request, decision))

    def restored(self, entry: LedgerEntry, request: ActionRequest) -> Steps[ActionRequest]:
        """Give the request as the framework hands it over now, which must be the one kept."""
        if not same(self.sent, entry.args):
            raise Refusal("other_call", "the arguments are not those that were asked about")
        context = yield from self.who()
        args, given = self._reading.args, self._reading.given
        return replace(request, args=args, given=given, context=context)


def _raising(refusal: Refusal) -> Approach:
    yield from ()
    raise refusal
