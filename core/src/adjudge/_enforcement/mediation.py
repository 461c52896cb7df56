"""The one implementation of the five verdicts: a generator without I/O.

It yields effects and receives their outcomes, from the proposal to the terminal event; a driver,
sync or async, carries them out. Each attempt ends in exactly one terminal event, whatever fails,
is cancelled or misbehaves, and whatever fails before the body ends in a denial by value (laws 4
and 7).
"""

from __future__ import annotations

from asyncio import CancelledError
from dataclasses import replace
from time import perf_counter
from typing import Any

from adjudge._enforcement.admission import Reading
from adjudge._enforcement.asking import LONGEST_TIMEOUT
from adjudge._enforcement.attempt import Refusal, Steps, failure_text, final_request
from adjudge._enforcement.effects import Approach, Execute, Mediating, Raised
from adjudge._enforcement.keeping import call_digest, enter
from adjudge._enforcement.verdicts import Verdicts
from adjudge._executors.inline import checked_result
from adjudge._ledger.entries import EntryState
from adjudge._making import OpenCall, OpenResult
from adjudge._record.secrets import redact_text
from adjudge._types import (
    ActionRequest,
    ActionResult,
    Decision,
    GovernedCall,
    Outcome,
    Verdict,
)
from adjudge.errors import LedgerError, RecordError

__all__ = ["Mediation"]

_COMPLETED = Outcome.COMPLETED


class Mediation(Verdicts):
    """One attempt at one call, from the proposal to the terminal event."""

    def run(self) -> Mediating:
        """Mediate a proposal."""
        return self.guarded()

    def guarded(self, steps: Approach | None = None) -> Mediating:
        """Take the steps, run the body that they come to, and record what became of the call.

        Without `steps` this is a proposal. Whatever goes wrong on the way ends in the one terminal
        event that it deserves.
        """
        try:
            try:
                # In one generator, since a call that goes through several costs a quarter more.
                approach = self.straight() if steps is None else steps
                if approach is None:
                    if self.out:
                        yield self.out
                    assert self.request is not None
                    led_to: GovernedCall | Raised | Execute = self.execution_of(
                        self.request, self.request
                    )
                else:
                    led_to = yield from approach
                if not isinstance(led_to, Execute):
                    return led_to
                self.started = True
                began = perf_counter()
                try:
                    value = yield led_to
                except BaseException as error:
                    elapsed = (perf_counter() - began) * 1000
                    return (yield from self._body_raised(error, elapsed))
                elapsed = (perf_counter() - began) * 1000
                self.settled = True
                if self.unjudged is not None or self.door.returns_result:
                    result, outcome = self._returned(value, elapsed)
                else:
                    result, outcome = OpenResult(True, value, None, "", elapsed, ()), _COMPLETED
                    result.__class__ = ActionResult
                self.result = result
                decision = self.decision
                if self.entry is not None or decision is None or decision.obligations:
                    return (yield from self._finish(result, value))
                if self.settings.records:
                    try:
                        yield self.handing_over_end(outcome, self._ending(outcome))
                    except RecordError:
                        self.settled = True  # The outcome stands.
                call: GovernedCall = OpenCall(decision, result, self.request, outcome, None, False)
                call.__class__ = GovernedCall
                return call
            except Exception as error:
                refusal = self._refusal(error)
                if refusal is None:
                    raise
                return (yield from self._denied(refusal))
        except BaseException as error:
            return (yield from self._aborted(error))

    def _refusal(self, error: Exception) -> Refusal | None:
        """Say why the body may not run where this was raised; None where it has been called."""
        if isinstance(error, Refusal):
            return error
        if isinstance(error, RecordError):
            return Refusal("record_failed", redact_text(str(error)), discharges="none")
        if isinstance(error, LedgerError):
            return Refusal("ledger_failed", redact_text(str(error)))
        if self.started:
            return None
        return Refusal("internal_error", f"the guard failed: {failure_text(error)}")

    def straight(self, proposed: Reading | None = None) -> Approach | None:
        """Come to the body of a proposed call without a wait, as nearly all do.

        None is the answer then; the judgment is `out` and still has to be handed over. Any other
        answer is the steps that lead on. `proposed` was read, taken up and recorded before.
        """
        settings, reading = self.settings, proposed
        if reading is None:
            reading = self.read()
            if self.context is not None or self.extra:
                return self.mediate(reading)
            context = self.take_up_own(reading)
            if settings.records:
                self.held = self.proposal(reading, context)
                if not settings.holds_proposals:
                    return self._recorded_first(reading)
        if reading.refusal is not None:
            raise reading.refusal
        if reading.unread is not None:
            return self.unread(reading.unread)
        if not self.door.known:
            raise Refusal("unknown_tool", f"unknown tool: {self.door.tool!r}", discharges="none")
        request = self.request
        assert request is not None
        decision = self.judge_at_once(request)
        if decision is None or decision.effective_args is not None:
            return self._judged_again(request, decision)
        return self._decided(request, decision)

    def mediate(self, reading: Reading) -> Approach:
        """Mediate a proposal whose arguments have been read, up to the body."""
        context = yield from self.identify(reading)
        self.take_up(reading, context)
        if self.settings.records:
            self.held = self.proposal(reading, context)
        return (yield from self._recorded_first(reading))

    def _recorded_first(self, reading: Reading) -> Approach:
        """Put the proposal on record, unless it may wait for the judgment, and go on."""
        if self.held is not None and not self.settings.holds_proposals:
            yield self.handing_over()
        return (yield from self._led(self.straight(reading)))

    def _judged_again(self, request: ActionRequest, decision: Decision | None) -> Approach:
        request, decision = yield from self.judge(request, decision)
        return (yield from self._led(self._decided(request, decision)))

    def _decided(self, request: ActionRequest, decision: Decision) -> Approach | None:
        self.request, self.decision = request, decision
        if self.settings.records:
            self.handing_over(self.judgment(request, decision, phase="propose"))
        if decision.verdict is Verdict.ALLOW and not decision.obligations and not self.begins:
            return None
        return self.enforce(request, decision)

    def _led(self, approach: Approach | None) -> Approach:
        """Go on from an answer such as that of `straight`."""
        if approach is not None:
            return (yield from approach)
        if self.out:
            yield self.out
        return self.to_body()

    def _returned(self, value: object, elapsed: float) -> tuple[ActionResult, Outcome]:
        """Give the result of a body that answers for itself, and how it ended."""
        if self.unjudged is not None:
            code, problem = self.unjudged
            result = ActionResult(False, value, problem, code, elapsed)
        else:
            result = checked_result(value, elapsed)
        return result, Outcome.COMPLETED if result.ok else Outcome.FAILED

    def _body_raised(self, error: BaseException, elapsed: float) -> Steps[GovernedCall | Raised]:
        door = self.door
        if isinstance(error, CancelledError) or not isinstance(
            error, (Exception, *door.control_flow)
        ):
            raise error
        if isinstance(error, door.control_flow):
            self.settled = True
            yield from self._suspend()
            yield from self.emit("action.suspended", {})
            self.ended = True
            return Raised(error)
        self.settled = True
        code, text = self.unjudged or ("tool_error", failure_text(error))
        call = yield from self._finish(ActionResult(False, None, text, code, elapsed), error)
        return Raised(error) if door.raises else call

    def _finish(self, result: ActionResult, gave: object) -> Steps[GovernedCall]:
        """The body has ended: put it down in the ledger, run the `post` obligations, record it."""
        self.result = result
        outcome = Outcome.COMPLETED if result.ok else Outcome.FAILED
        if self.entry is not None:
            yield from self.settle(outcome, gave)
        if self.decision is not None and self.decision.obligations:
            assert self.request is not None
            yield from self.discharge("post", final_request(self.request, self.decision))
            self.result = replace(result, obligations=tuple(self.outcomes.values()))
        yield from self.end(outcome, self._ending(outcome))
        return self.governed(outcome)

    def _ending(self, outcome: Outcome) -> dict[str, Any]:
        result = self.result
        assert result is not None
        body: dict[str, Any] = {"duration_ms": round(result.duration_ms, 3)}
        if outcome is Outcome.FAILED:
            body |= {"code": result.code, "error": result.error}
        return body

    def _suspend(self) -> Steps[None]:
        """Keep, for the run's going on, that the body began; where that fails it is a new call."""
        run = self.door.run
        if run is None:
            yield from self.settle(Outcome.SUSPENDED)
            return
        request, decision = self.request, self.decision
        assert request is not None
        assert decision is not None
        try:
            entry = self.entry
            if entry is not None:
                yield from self.settle_entry(EntryState.SUSPENDED, outcome=None)
                run.keep(replace(entry, state=EntryState.SUSPENDED, holder=None))
                return
            made = yield from enter(
                self,
                request,
                decision,
                id=self.settings.new_id(),
                digest=call_digest(final_request(request, decision), self.occurrence),
                state=EntryState.SUSPENDED,
                seconds=LONGEST_TIMEOUT,
            )
            if made is not None:
                run.keep(made)
        except Exception:
            self.entry = None

    # Endings without a result

    def _denied(self, refusal: Refusal) -> Steps[GovernedCall]:
        """Deny by value: no body has run, and none will."""
        self.settled = True
        if self.decision is not None and self.request is not None and refusal.discharges != "none":
            yield from self.discharge(
                None,
                final_request(self.request, self.decision),
                always_only=refusal.discharges == "always",
            )
        yield from self.settle(Outcome.DENIED, refusal)
        self.result = ActionResult(
            False, None, refusal.reason, refusal.code, obligations=tuple(self.outcomes.values())
        )
        yield from self.end(Outcome.DENIED, {"code": refusal.code, "reason": refusal.reason})
        return self.governed(Outcome.DENIED)

    def _aborted(self, error: BaseException) -> Steps[Raised]:
        """Record, and raise again, what must go through us: a cancellation, an interrupt."""
        self.settled = True
        try:
            yield from self.handing_over_again()
            if self.result is not None and self.started:
                # The body has ended, and the record says so whatever came after it.
                outcome = Outcome.COMPLETED if self.result.ok else Outcome.FAILED
                yield from self.end(outcome, self._ending(outcome))
            else:
                outcome, about = self._interruption(error)
                try:
                    yield from self.settle(outcome)
                finally:
                    # A second cancellation, while the ledger is written, costs no terminal event.
                    yield from self.end(outcome, about)
        except Exception:
            return Raised(error)
        return Raised(error)

    def _interruption(self, error: BaseException) -> tuple[Outcome, dict[str, Any]]:
        if isinstance(error, CancelledError | GeneratorExit):
            return Outcome.CANCELLED, {"started": self.started}
        return Outcome.FAILED, {"code": "interrupted", "error": failure_text(error)}
