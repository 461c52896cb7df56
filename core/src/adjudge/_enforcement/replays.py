"""Calls of a run that starts over when it goes on: what has finished is given again, not run again.

Some frameworks cannot save a run in the middle; they propose every call of it again. The ledger
then keeps each call of the run, under an id that follows from its occurrence, from before its body
starts: so of two processes one can begin it, and the n-th call that looks the same is the n-th call
(law 6). What is given again is not judged, recorded or run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from adjudge._arguments.proposal import Replay, json_text
from adjudge._enforcement.asking import LONGEST_TIMEOUT
from adjudge._enforcement.attempt import Refusal, Steps, failure_text, final_request
from adjudge._enforcement.carrying_on import RunCall
from adjudge._enforcement.doors import FrameworkDoor
from adjudge._enforcement.effects import Mediating, Raised, UseLedger
from adjudge._enforcement.judging import same
from adjudge._enforcement.keeping import call_digest, enter, pending_of, request_of
from adjudge._enforcement.resumption import turned_away
from adjudge._enforcement.runs import GovernedRun
from adjudge._enforcement.settings import Settings
from adjudge._ledger.entries import EntryState, LedgerEntry
from adjudge._types import ActionRequest, ActionResult, Decision, GovernedCall, Outcome, Verdict
from adjudge._values import digest, freeze_object
from adjudge.errors import LedgerError

__all__ = ["ReplayedCall"]

_OF_THE_GUARD = frozenset(
    {
        "cancelled",
        "context_failed",
        "internal_error",
        "ledger_failed",
        "record_failed",
        "uncertain",
    }
)
"""Codes of denials that say nothing of the call itself: proposed again, it is judged again."""


class ReplayedCall(RunCall):
    """One call of a run whose framework proposes it again when the run goes on."""

    def __init__(
        self,
        settings: Settings,
        door: FrameworkDoor,
        run: GovernedRun,
        next_seq: Callable[[], int],
        replay: Replay,
        *,
        context: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(settings, door, door.call.arguments, run, next_seq, context=context)
        self._proposed = door
        self._replay = replay

    def known(self, *, take: bool) -> Steps[LedgerEntry | None]:
        """Read what became of the call, past attempts whose bodies raised and left nothing."""
        while True:
            entry = yield from self._read_entry(self.entry_id())
            failed = entry is not None and entry.outcome == Outcome.FAILED
            if entry is None or entry.result is not None or not failed:
                return entry
            call = self._proposed.call
            self._proposed.call = replace(call, attempt=call.attempt + 1)

    def entry_id(self) -> str:
        """Make the id follow from the occurrence, so that two cannot be made of one."""
        return digest({"occurrence": self.occurrence})

    def _read_entry(self, id: str) -> Steps[LedgerEntry | None]:
        ledger = self.settings.ledger
        assert ledger is not None
        entry = yield UseLedger(ledger.get, (id,), may_block=True)
        if entry is None:
            return None
        if not isinstance(entry, LedgerEntry) or entry.occurrence != self.occurrence:
            raise LedgerError("The ledger answered with something that is no entry of the call.")
        return entry

    def go_on(self, entry: LedgerEntry) -> Mediating:
        """Give what was kept; leave waiting what waits; go on with what else there is."""
        waits = entry.state is EntryState.PAUSED and entry.expires_at > self.settings.now()
        given = entry.state is EntryState.FINISHED and entry.result is not None
        if not given and not (waits and self.door.may_pause):
            return (yield from super().go_on(entry))
        self.seq, self.correlation_id = entry.seq, entry.correlation_id
        try:
            yield from self.check_caller(entry)
            if not same(self.sent, entry.args):
                raise Refusal("other_call", "the arguments are not those of the call")
        except Refusal as refused:
            turned = turned_away(self.settings, entry, self.next_seq())
            return (yield from turned.tell(refused.code, refused.reason))
        self.request = request_of(entry, self.settings, self.settings.metadata(self.door))
        if given:
            return (yield from self._given_again(entry))
        pending = pending_of(entry, self.settings)
        self.decision = pending.decision
        return replace(self.paused(pending), replayed=True)

    # What is given again

    def _given_again(self, entry: LedgerEntry) -> Mediating:
        try:
            return self._restored(entry)
        except Exception as error:
            turned = turned_away(self.settings, entry, self.next_seq())
            why = f"what was kept of the call cannot be read: {failure_text(error)}"
            return (yield from turned.tell("ledger_failed", why))

    def _restored(self, entry: LedgerEntry) -> GovernedCall | Raised:
        kept = entry.result
        assert kept is not None
        outcome = Outcome(entry.outcome or "")
        verdict = Verdict(kept["verdict"])
        reason = str(kept["reason"])
        self.decision = Decision(verdict, reason, entry.matched_rules, entry.approver_sets)
        if outcome is Outcome.DENIED:
            self.result = ActionResult(False, None, reason, str(kept["code"]))
        elif outcome is Outcome.PREVIEWED:
            self.result = ActionResult(True, json.loads(kept["preview"]))
        elif outcome is Outcome.COMPLETED:
            self.result = ActionResult(True, self._replay.give(json.loads(kept["gave"])))
        elif outcome is Outcome.FAILED:
            try:
                value = self._replay.give(json.loads(kept["gave"]))
            except Exception as error:
                return Raised(error)
            raise LedgerError(f"It gave a {type(value).__name__} in place of raising.")
        else:
            raise LedgerError(f"The call ended as {outcome.value}.")
        return replace(self.governed(outcome), replayed=True)

    # What is kept

    begins = True

    def begin(self, request: ActionRequest, decision: Decision) -> Steps[None]:
        """Claim the call before its body starts."""
        if self.entry is None:
            yield from self._enter(request, decision, EntryState.CLAIMED)

    def settle(self, outcome: Outcome, gave: object = None) -> Steps[None]:
        """Keep a denial or a preview of which the ledger knows nothing yet, too."""
        if self.entry is not None:
            yield from super().settle(outcome, gave)
            return
        kept = self.kept(outcome, gave)
        if kept is None or self.request is None or self.decision is None:
            return
        try:
            yield from self._enter(
                self.request, self.decision, EntryState.FINISHED, outcome.value, kept
            )
        except (Refusal, LedgerError):
            return  # proposed again it is judged again, or it is somebody else's
        finally:
            self.entry = None

    def kept(self, outcome: Outcome, gave: object) -> Mapping[str, Any] | None:
        """Give what is to be given again, as JSON; None for what cannot be."""
        about: dict[str, Any] = {"verdict": Verdict.DENY.value, "reason": ""}
        if self.decision is not None:
            about = {"verdict": self.decision.verdict.value, "reason": self.decision.reason}
        if isinstance(gave, Refusal):
            own = gave.code in _OF_THE_GUARD
            return None if own else {**about, "code": gave.code, "reason": gave.reason}
        if outcome is Outcome.PREVIEWED:
            return {**about, "preview": json.dumps(gave)}
        if outcome not in (Outcome.COMPLETED, Outcome.FAILED):
            return None
        try:
            kept = self._replay.keep(gave)
            # As text, in which keys keep their order.
            return None if kept is None else {**about, "gave": json_text(freeze_object(kept))}
        except Exception:
            return None  # and then it is not run again

    def _enter(
        self,
        request: ActionRequest,
        decision: Decision,
        state: EntryState,
        outcome: str | None = None,
        kept: Mapping[str, Any] | None = None,
    ) -> Steps[None]:
        self.holder = self.holder or self.settings.new_id()
        yield from enter(
            self,
            request,
            decision,
            id=self.entry_id(),
            digest=call_digest(final_request(request, decision), self.occurrence),
            state=state,
            seconds=LONGEST_TIMEOUT,
            # A run can have many calls, and whoever opens it needs those alone that wait.
            in_run=False,
            outcome=outcome,
            result=kept,
        )

    def not_entered(self, entry: LedgerEntry) -> Steps[None]:
        """Where somebody else has begun the call, leave it to them."""
        self.entry = None
        if (yield from self._read_entry(entry.id)) is not None:
            raise Refusal("uncertain", "the call was begun elsewhere; it is not run again")
