"""What each verdict means: the steps from a decision to the body, or to what comes in its place.

Nothing here runs a body; `mediation.py` does, and records what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge._enforcement.admission import Admission
from adjudge._enforcement.approvals import PauseApproval
from adjudge._enforcement.asking import ask_handler, pause
from adjudge._enforcement.attempt import Refusal, Steps, failure_text, final_request, unfit
from adjudge._enforcement.cancel import Cancelled
from adjudge._enforcement.effects import Approach, Execute, Preview
from adjudge._executors.inline import call_arguments
from adjudge._ledger.entries import EntryState
from adjudge._making import OpenCall
from adjudge._texts import dry_run_text
from adjudge._types import (
    ActionRequest,
    ActionResult,
    Decision,
    GovernedCall,
    Outcome,
    PendingApproval,
    ToolMetadata,
    Verdict,
)
from adjudge._values import EMPTY, freeze, thaw
from adjudge.errors import ArgumentsRefused

__all__ = ["Verdicts"]


class Verdicts(Admission):
    """An attempt whose decision can be carried out, up to the body."""

    begins = False
    """Whether `begin` has anything to do."""
    unjudged: tuple[str, str] | None = None
    """Why there is no verdict, by code and in words, where a framework says so in its own way."""

    def unread(self, problem: str) -> Approach:
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

    def enforce(self, request: ActionRequest, decision: Decision) -> Approach:
        """Hand over the judgment, and lead to the body, or to what comes in its place."""
        if self.out:
            yield self.out
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

    def to_body(self) -> Execute:
        """Say how the body of a call that is plainly allowed is run."""
        request = self.request
        assert request is not None
        return self.execution_of(request, request)

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
        call: GovernedCall = OpenCall(decision, result, request, outcome, pending, False)
        call.__class__ = GovernedCall
        return call
