"""The one implementation of the five verdicts: a generator without I/O.

It yields effects and receives their outcomes, from the proposal to the terminal event; a driver,
sync or async, carries them out. Each attempt ends in exactly one terminal event, whatever fails,
is cancelled or misbehaves, and whatever fails before the body ends in a denial by value (laws 4
and 7).
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from adjudge._enforcement.admission import Admission, Reading
from adjudge._enforcement.approvals import PauseApproval
from adjudge._enforcement.asking import LONGEST_TIMEOUT, ask_handler, pause
from adjudge._enforcement.attempt import Refusal, Steps, failure_text, final_request, unfit
from adjudge._enforcement.cancel import Cancelled
from adjudge._enforcement.effects import Approach, Execute, Mediating, Preview, Raised
from adjudge._enforcement.keeping import call_digest, enter
from adjudge._executors.inline import call_arguments, checked_result
from adjudge._ledger.entries import EntryState
from adjudge._making import made_call, made_result
from adjudge._record.secrets import redact_text
from adjudge._texts import dry_run_text
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
from adjudge._values import EMPTY, freeze, thaw
from adjudge.errors import ArgumentsRefused, LedgerError, RecordError

__all__ = ["Mediation"]


class Mediation(Admission):
    """One attempt at one call, from the proposal to the terminal event."""

    begins = False
    """Whether `begin` has anything to do."""
    unjudged: tuple[str, str] | None = None
    """Why there is no verdict, by code and in words, where a framework says so in its own way."""

    def run(self) -> Mediating:
        """Mediate a proposal."""
        return self.guarded(self.mediate())

    def guarded(self, steps: Approach) -> Mediating:
        """Run the body that the steps come to, if they do, and record what became of the call.

        Whatever goes wrong on the way ends in the one terminal event that it deserves.
        """
        try:
            try:
                led_to = yield from steps
                if isinstance(led_to, Execute):
                    return (yield from self._execute(led_to))
                return led_to
            except Refusal as refused:
                return (yield from self._denied(refused))
            except RecordError as error:
                return (
                    yield from self._denied(
                        Refusal("record_failed", redact_text(str(error)), discharges="none")
                    )
                )
            except LedgerError as error:
                return (yield from self._denied(Refusal("ledger_failed", redact_text(str(error)))))
            except Exception as error:
                if self.started:
                    raise
                refusal = Refusal("internal_error", f"the guard failed: {failure_text(error)}")
                return (yield from self._denied(refusal))
        except BaseException as error:
            return (yield from self._aborted(error))

    def mediate(self, reading: Reading | None = None) -> Approach:
        """Mediate a proposal, whose arguments may have been read before, up to the body."""
        settings = self.settings
        if reading is None:
            reading = self.read()
        if self.context is None and not self.extra:
            context: ExecutionContext | None = self.own_context()
        else:
            context = yield from self.identify(reading)
        request = self.take_up(reading, context)
        records = settings.records
        if records:
            self.held = self.proposal(reading, context)
            if not settings.holds_proposals:
                yield self.handing_over()
        if reading.refusal is not None:
            raise reading.refusal
        if reading.unread is not None:
            return (yield from self._unread(reading.unread))
        if not self.door.known:
            raise Refusal("unknown_tool", f"unknown tool: {self.door.tool!r}", discharges="none")
        decision = self.judge_at_once(request)
        if decision is None or decision.effective_args is not None:
            request, decision = yield from self.judge(request, decision)
            self.request = request
        self.decision = decision
        if records:
            yield self.handing_over(self.judgment(request, decision, phase="propose"))
        if decision.verdict is not Verdict.ALLOW:
            return (yield from self._enforce(request, decision))
        if decision.obligations or self.begins:
            return (yield from self.carry_out(request, decision))
        return self.execution_of(request, request)

    def _unread(self, problem: str) -> Approach:
        """Let the framework answer arguments that get no verdict, or say what is wrong."""
        code = "invalid_arguments"
        execution = self.door.unjudged()
        if execution is not None:
            yield from self.flush()
            self.unjudged = (code, problem)
            return execution
        self.result = ActionResult(False, None, problem, code)
        yield from self.end(Outcome.FAILED, {"code": code, "error": problem})
        return self.governed(Outcome.FAILED)

    def _enforce(self, request: ActionRequest, decision: Decision) -> Approach:
        verdict = decision.verdict
        if verdict is Verdict.DENY:
            raise Refusal("denied", decision.reason, discharges="all")
        if verdict is Verdict.DRY_RUN:
            return (yield from self._preview(final_request(request, decision)))
        if verdict is Verdict.APPROVE_REQUIRED:
            approval = self.settings.approval
            if isinstance(approval, PauseApproval):
                if not self.door.may_pause:
                    raise Refusal(
                        "cannot_pause",
                        "approval is required, and the call cannot be left waiting for it",
                    )
                return self.paused((yield from pause(self, request, decision, approval)))
            decision = yield from ask_handler(self, request, decision, approval)
            assert self.request is not None
            request = self.request
        return (yield from self.carry_out(request, decision))

    def _preview(self, request: ActionRequest) -> Steps[GovernedCall]:
        """Run the shadow, never the body."""
        failed = yield from self.discharge("pre", request, always_only=True)
        if failed is not None:
            raise Refusal("obligation_failed", f"the obligation {failed.id} failed: {failed.error}")
        shadow = self.settings.shadow_of(self.door)
        if shadow is None:
            raise Refusal(
                "no_shadow", f"dry_run: the tool {request.tool} has no shadow to preview it"
            )
        try:
            value = yield Preview(shadow, (), call_arguments(request), may_block=True)
            preview = freeze(value, where="preview")
            dry_run_text(preview)
        except Exception as error:
            raise Refusal(
                "shadow_failed", f"dry_run: the shadow failed: {failure_text(error)}"
            ) from error
        yield from self.discharge(None, request, always_only=True)
        yield from self.settle(Outcome.PREVIEWED, preview)
        self.result = ActionResult(True, thaw(preview), obligations=tuple(self.outcomes.values()))
        yield from self.end(Outcome.PREVIEWED, {"preview": preview})
        return self.governed(Outcome.PREVIEWED)

    def carry_out(self, request: ActionRequest, decision: Decision) -> Steps[Execute]:
        """Give how to run the body, which may run, after its obligations and the last checks."""
        final = request if decision.effective_args is None else final_request(request, decision)
        if decision.obligations:
            failed = yield from self.discharge("pre", final)
            if failed is not None:
                raise Refusal(
                    "obligation_failed", f"the obligation {failed.id} failed: {failed.error}"
                )
        execution = self.execution_of(request, final)
        if self.begins:
            yield from self.begin(request, decision)
        return execution

    def execution_of(self, request: ActionRequest, final: ActionRequest) -> Execute:
        """Make the last checks, and say how the body is run."""
        if final.declared is not None and final.declared.isolation is not None:
            self._check_isolation(final, final.declared)
        try:
            execution = self.door.execution(final, changed=final is not request)
        except ArgumentsRefused as error:
            raise unfit(error) from None
        if self.settings.cancel is not None:
            self._check_cancelled(self.settings.cancel)
        return execution

    def begin(self, request: ActionRequest, decision: Decision) -> Steps[None]:
        """Put down that the body is about to start, where that has to be known later."""
        yield from ()

    def _check_isolation(self, final: ActionRequest, declared: ToolMetadata) -> None:
        isolation = self.door.unrouted_isolation(declared)
        if isolation is not None:
            raise Refusal(
                "isolation_unrouted",
                f"the tool {final.tool} declares the isolation {isolation!r}, "
                "and nothing here provides it",
            )

    def _check_cancelled(self, token: Cancelled) -> None:
        try:
            cancelled, reason = token.cancelled, token.reason
        except Exception as error:
            raise Refusal("cancelled", f"the cancel token failed: {failure_text(error)}") from error
        if cancelled is not False:
            raise Refusal("cancelled", f"cancelled: {reason}" if reason else "cancelled")

    def _execute(self, execution: Execute) -> Steps[GovernedCall | Raised]:
        """Run the body and record what became of it."""
        self.started = True
        began = perf_counter()
        try:
            value = yield execution
        except BaseException as error:
            return (yield from self._body_raised(error, (perf_counter() - began) * 1000))
        elapsed = (perf_counter() - began) * 1000
        self.settled = True
        if self.unjudged is not None:
            code, problem = self.unjudged
            result = ActionResult(False, value, problem, code, elapsed)
        elif self.door.returns_result:
            result = checked_result(value, elapsed)
        else:
            result = made_result(value, elapsed)
        decision = self.decision
        if self.entry is not None or (decision is not None and decision.obligations):
            return (yield from self._finish(result, value))
        self.result = result
        outcome = Outcome.COMPLETED if result.ok else Outcome.FAILED
        if self.settings.records:
            yield from self.end(outcome, self._ending(outcome))
        return self.governed(outcome)

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
        body: dict[str, Any] = {"duration_ms": round(result.duration_ms * 1000) / 1000}
        if outcome is Outcome.FAILED:
            body |= {"code": result.code, "error": result.error}
        return body

    def settle(self, outcome: Outcome, gave: object = None) -> Steps[None]:
        """Settle the ledger's entry; where that fails it stays claimed: uncertain, never rerun."""
        if self.entry is None:
            return
        try:
            yield from self.settle_entry(
                EntryState.FINISHED, outcome=outcome.value, result=self.kept(outcome, gave)
            )
        except Exception:
            self.entry = None

    def kept(self, outcome: Outcome, gave: object) -> Mapping[str, Any] | None:
        """Give what the ledger is to keep of how this ended, beside the outcome.

        `gave` is what the body gave or raised, the preview, or the refusal.
        """
        return None

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

    def paused(self, pending: PendingApproval) -> GovernedCall:
        """Give what the caller is told of a call that waits."""
        return self.governed(Outcome.PENDING, pending)

    def governed(self, outcome: Outcome, pending: PendingApproval | None = None) -> GovernedCall:
        """Give what the caller is told."""
        request = self.request
        if request is None:
            request = ActionRequest(self.door.tool, EMPTY, None, self.own_context())
        result = self.result
        if result is None:
            result = ActionResult(False, None, None, outcome.value)
        decision = self.decision
        if decision is None:
            decision = Decision(Verdict.DENY, result.error or "", (f"<{result.code}>",))
        return made_call(decision, result, request, outcome, pending)
