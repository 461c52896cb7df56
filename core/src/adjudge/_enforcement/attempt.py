"""What one attempt at a call knows of itself, and the steps that every verdict shares.

Emitting events, keeping the ledger's entry, discharging obligations, and the guarantee that a
terminal event comes once. `mediation.py` puts the steps in order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from adjudge._enforcement.bodies import Bodies
from adjudge._enforcement.circumstances import shown_paths
from adjudge._enforcement.doors import Door
from adjudge._enforcement.effects import Discharge, Effect, Emit, UseLedger
from adjudge._enforcement.settings import Settings
from adjudge._ledger.entries import EntryState, LedgerEntry, checked_claim
from adjudge._ledger.keys import ledger_key, occurrence_of
from adjudge._making import OpenEvent
from adjudge._record.secrets import redact_text
from adjudge._types import (
    ActionRequest,
    ActionResult,
    AuditEvent,
    CallContext,
    Decision,
    Obligation,
    ObligationOutcome,
    Outcome,
)
from adjudge._values import EMPTY, FrozenDict, FrozenList
from adjudge.errors import RecordError

__all__ = [
    "Attempt",
    "Refusal",
    "Steps",
    "failure_text",
    "final_request",
    "unfit",
]

# Written once: to join two texts makes another one, whose hash has to be found anew.
_TERMINAL = MappingProxyType({outcome: f"action.{outcome}" for outcome in Outcome})

T = TypeVar("T")
Steps: TypeAlias = Generator[Effect, Any, T]


class Refusal(Exception):
    """Why a body may not run; becomes a denial by value.

    `discharges` says which of the decision's obligations run on it: "all" (a rule's own denial),
    "always" (those so marked) or "none".
    """

    def __init__(self, code: str, reason: str, *, discharges: str = "always") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.discharges = discharges


def failure_text(error: BaseException) -> str:
    """Name an exception's type and what it says, without secrets: a model may be told."""
    try:
        said = redact_text(str(error))
    except Exception:
        # An exception that cannot say what it is must not take the place of another.
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


class Attempt:
    """The state of one attempt at one call."""

    # What most attempts never set is set here, for all of them.
    caller: CallContext | None = None
    """What `context` answered."""
    continued = False
    """Whether this goes on with a body that suspended itself."""
    sent: FrozenDict = EMPTY
    """The original arguments, before any default."""
    request: ActionRequest | None = None
    decision: Decision | None = None
    entry: LedgerEntry | None = None
    """The ledger's entry of this occurrence, while it is ours; `holder` is our name there."""
    holder = ""
    held: AuditEvent | None = None
    """The proposal, while it waits for the judgment on it, to go on record together with it."""
    outcomes: Mapping[int, ObligationOutcome] = MappingProxyType({})
    """What came of the decision's obligations so far, by their place."""
    started = False
    """Whether the body has been called."""
    result: ActionResult | None = None
    """What the call came to, once that is certain."""
    settled = False
    """Whether the outcome stands: a record that fails from here on changes nothing."""
    ended = False
    """Whether the terminal event is out."""
    ending: AuditEvent | None = None
    """The terminal event, once it is made."""
    bodies: Bodies | None = None
    out: Emit = ()
    """What was handed over last."""

    def __init__(
        self,
        settings: Settings,
        door: Door,
        seq: int,
        arguments: str | Mapping[str, Any] = EMPTY,
        extra: Mapping[str, Any] | None = None,
        context: Callable[[], Any] | None = None,
    ) -> None:
        self.settings = settings
        self.door = door
        self.seq = seq
        self.arguments = arguments
        self.extra = extra
        self.context = context
        self.correlation_id = settings.correlation_id

    @property
    def occurrence(self) -> str:
        """Name this one attempt at this one call among all."""
        door = self.door
        if door.key is not None:
            call = door.key
        elif door.run is not None:
            call = ledger_key(
                run=door.run.id,
                tool=door.tool,
                args=self.sent,
                namespace=door.namespace,
                call_id=door.call_id,
                agent=door.agent,
                task=door.parent,
            )
        else:
            call = f"{self.correlation_id}/{self.seq}"
        return occurrence_of(call, door.attempt)

    def entry_id(self) -> str:
        """Give the id under which the ledger is to keep this occurrence."""
        return self.settings.new_id()

    def not_entered(self, entry: LedgerEntry) -> Steps[None]:
        """Say what it means that an entry could not be added, if it means anything of its own."""
        yield from ()

    def emit(self, kind: str, body: Mapping[str, Any]) -> Steps[None]:
        """Record one event; a required sink's `RecordError` passes while the outcome is open."""
        if self.settings.records:
            yield from self.flush(self.event(kind, self.redacted(body)))

    def redacted(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.settings.bodies_of(self.door).redacted(body)

    def event(
        self, kind: str, redacted: Mapping[str, Any], when: datetime | None = None
    ) -> AuditEvent:
        """Make one event of this call, of a redacted body; without `when` it is of now."""
        settings = self.settings
        event: AuditEvent = OpenEvent(
            self.correlation_id,
            settings.policy.id,
            self.seq,
            kind,
            settings.now() if when is None else when,
            redacted,
        )
        event.__class__ = AuditEvent
        return event

    def flush(self, *events: AuditEvent) -> Steps[None]:
        """Hand over what was held, and then these."""
        if self.held is None and not events:
            return
        try:
            yield self.handing_over(*events)
        except RecordError:
            if not self.settled:
                raise

    def handing_over(self, *events: AuditEvent) -> Emit:
        """Give the effect that hands over what was held, and then these."""
        held = self.held
        if held is None:
            self.out = events
            return events
        self.out = out = (held, *events)
        self.held = None
        return out

    def handing_over_again(self) -> Steps[None]:
        """Give what was handed over last once more: an interrupt may have kept it from the driver.

        One that has it does nothing.
        """
        if self.out and self.out[0] is self.held:
            self.held = None
        if self.ending is not None:
            self.ended = True
            if not self.out or self.out[-1] is not self.ending:
                self.handing_over(self.ending)
        if self.out:
            try:
                yield self.out
            except RecordError:
                return  # What happened stands, whether or not it is on record.

    def end(self, outcome: Outcome, body: Mapping[str, Any]) -> Steps[None]:
        """Record the terminal event, once."""
        if self.ended:
            return
        self.settled = True
        if not self.settings.records:
            self.ended = True
            return
        try:
            yield self.handing_over_end(outcome, body)
        except RecordError:
            return  # The outcome stands.

    def handing_over_end(self, outcome: Outcome, body: Mapping[str, Any]) -> Emit:
        """Make the terminal event, and give the effect that hands over what was held, and then it.

        The outcome stands, whatever becomes of that.
        """
        decision = self.decision
        verdict = None if decision is None else decision.verdict
        bodies = self.bodies or self.settings.bodies_of(self.door)
        event = self.event(_TERMINAL[outcome], bodies.ended(body, verdict))
        # Not before: what an interrupt keeps from being made is made once more.
        self.ending = event
        self.ended = True
        if self.held is not None:
            return self.handing_over(event)
        self.out = out = (event,)
        return out

    def record_judgment(
        self, request: ActionRequest, decision: Decision, *, phase: str, edited: object = None
    ) -> Steps[None]:
        """Record `policy.evaluated`, which a required sink must take before the body may run."""
        if self.settings.records:
            yield from self.flush(self.judgment(request, decision, phase=phase, edited=edited))

    def judgment(
        self, request: ActionRequest, decision: Decision, *, phase: str, edited: object = None
    ) -> AuditEvent:
        """Make the event `policy.evaluated`."""
        effective = edited if edited is not None else decision.effective_args
        bodies = self.bodies or self.settings.bodies_of(self.door)
        environment = request.context.environment
        if effective is None and not request.resolved:
            # Made once for all calls that a rule decides alike.
            body = bodies.judged(decision, phase, environment)
            if body is None:
                body = self._judged(request, decision, phase, None)
                bodies.keep_judged(decision, phase, environment, body)
        else:
            body = self._judged(request, decision, phase, effective)
        return self.event("policy.evaluated", body)

    def _judged(
        self, request: ActionRequest, decision: Decision, phase: str, effective: object
    ) -> Mapping[str, Any]:
        """Give the redacted body of a judgment."""
        body: dict[str, Any] = {
            "verdict": str(decision.verdict),
            "reason": decision.reason,
            "matched_rules": FrozenList(decision.matched_rules),
            "phase": phase,
            "environment": request.context.environment,
        }
        if effective is not None:
            body["effective_args"] = effective
        if request.resolved:
            shown = shown_paths(request, effective, self.redacted)
            if shown:
                body["resolved"] = shown
        return self.redacted(body)

    def claim_entry(self, expected: EntryState) -> Steps[bool]:
        """Take the entry for this attempt alone; False where it expired or is somebody else's."""
        ledger = self.settings.ledger
        assert ledger is not None
        assert self.entry is not None
        if not self.holder:
            self.holder = self.settings.new_id()
        claimed = yield UseLedger(
            ledger.claim,
            (self.entry.id,),
            {"expected": expected, "holder": self.holder, "now": self.settings.now()},
            may_block=True,
        )
        self.entry = checked_claim(claimed, self.holder)
        return self.entry is not None

    def settle_entry(
        self,
        state: EntryState,
        *,
        grants: tuple[str, ...] | None = None,
        outcome: str | None,
        result: Mapping[str, Any] | None = None,
    ) -> Steps[None]:
        """Put down in the ledger what became of the entry, if it is ours."""
        ledger, entry = self.settings.ledger, self.entry
        if ledger is None or entry is None:
            return
        if entry.state is not EntryState.CLAIMED:
            # Nobody has answered; or our own claim went through, and its answer was cut off.
            yield from self.claim_entry(entry.state)
        # One that waits again is still ours to finish, should this be cancelled meanwhile.
        self.entry = None if state is EntryState.FINISHED else replace(entry, state=state)
        ours = yield UseLedger(
            ledger.settle,
            (entry.id,),
            {
                "holder": self.holder,
                "state": state,
                "grants": entry.grants if grants is None else grants,
                "outcome": outcome,
                "result": result,
            },
            may_block=True,
        )
        self.entry = None
        if not ours:
            yield UseLedger(
                ledger.expire, (entry.id,), {"now": self.settings.now()}, may_block=True
            )

    # Obligations (clause 25)

    def discharge(
        self, phase: str | None, request: ActionRequest, *, always_only: bool = False
    ) -> Steps[ObligationOutcome | None]:
        """Run the decision's obligations of a phase (None: of both), each once.

        The first `pre` that fails ends the phase and is the answer.
        """
        assert self.decision is not None
        for index, obligation in enumerate(self.decision.obligations):
            if index in self.outcomes or phase not in (None, obligation.phase):
                continue
            if self.continued and obligation.phase == "pre":
                continue  # it was fulfilled when the body began
            if always_only and obligation.on != "always":
                continue
            outcome = yield from self._discharge_one(obligation, request)
            self.outcomes = {**self.outcomes, index: outcome}
            if phase == "pre" and not outcome.fulfilled:
                return outcome
        return None

    def _discharge_one(
        self, obligation: Obligation, request: ActionRequest
    ) -> Steps[ObligationOutcome]:
        about = {"id": obligation.id, "phase": obligation.phase}
        yield from self.emit("obligation.required", about)
        registry = self.settings.obligations
        handler = None if registry is None else registry.get(obligation.id)
        error: str | None = None
        if registry is None:
            error = "no obligations are configured"
        elif handler is None:
            error = f"no obligation is called {obligation.id!r}"
        else:
            try:
                answer = yield Discharge(
                    handler, (obligation, request, request.context), may_block=True
                )
            except Exception as raised:
                error = failure_text(raised)
            else:
                error = "the handler answered False" if answer is False else None
        if error is None:
            yield from self.emit("obligation.fulfilled", about)
        else:
            yield from self.emit("obligation.failed", {**about, "error": error})
        return ObligationOutcome(obligation.id, obligation.phase, error is None, error)


def unfit(error: Exception) -> Refusal:
    """Say that rewritten or edited arguments are none that the tool could get."""
    return Refusal("invalid_rewrite", f"the rewritten arguments do not fit the tool: {error}")


def final_request(request: ActionRequest, decision: Decision) -> ActionRequest:
    """Give the request with the arguments to execute, preview or ask about."""
    if decision.effective_args is None:
        return request
    return replace(request, args=decision.effective_args)
