"""What one attempt at a call knows of itself, and the steps that every verdict shares.

Emitting events, judging (paths resolved, rewritten arguments judged again), discharging
obligations, and the guarantee that a terminal event comes once. `_mediation.py` puts the steps in
order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from adjudge._doors import Door
from adjudge._effects import Discharge, Effect, Emit, Resolve, UseLedger
from adjudge._ledger import EntryState, LedgerEntry, checked_claim
from adjudge._proposal import InvalidArguments
from adjudge._redact import apply_redactor
from adjudge._settings import Settings
from adjudge._types import (
    ActionRequest,
    ActionResult,
    AuditEvent,
    Decision,
    Obligation,
    ObligationOutcome,
    Outcome,
    Verdict,
)
from adjudge._values import EMPTY, FrozenDict, canonical_json, freeze_object
from adjudge.errors import ArgumentsRefused, RecordError

__all__ = [
    "Attempt",
    "Refusal",
    "Steps",
    "failure_text",
    "final_request",
    "same",
    "united",
]

T = TypeVar("T")
Steps: TypeAlias = Generator[Effect, Any, T]

_STRICTNESS = {
    Verdict.ALLOW: 0,
    Verdict.TRANSFORM: 1,
    Verdict.APPROVE_REQUIRED: 2,
    Verdict.DRY_RUN: 3,
    Verdict.DENY: 4,
}
_MAX_ROUNDS = 4


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
    """Name an exception's type and what it says."""
    try:
        said = str(error)
    except Exception:
        # An exception that cannot say what it is must not take the place of another.
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


class Attempt:
    """The state of one attempt at one call."""

    __slots__ = (
        "arguments",
        "context",
        "correlation_id",
        "decision",
        "door",
        "ended",
        "entry",
        "extra",
        "holder",
        "outcomes",
        "request",
        "result",
        "sent",
        "seq",
        "settings",
        "settled",
        "started",
    )

    def __init__(
        self,
        settings: Settings,
        door: Door,
        seq: int,
        arguments: str | Mapping[str, Any] = EMPTY,
        *,
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
        self.sent: FrozenDict = EMPTY
        """The original arguments, before any default."""
        self.request: ActionRequest | None = None
        self.decision: Decision | None = None
        self.entry: LedgerEntry | None = None
        """The ledger's entry of this occurrence, while it is ours; `holder` is our name there."""
        self.holder = ""
        self.outcomes: dict[int, ObligationOutcome] = {}
        """What came of the decision's obligations so far, by their place."""
        self.started = False
        """Whether the body has been called."""
        self.result: ActionResult | None = None
        """What the call came to, once that is certain."""
        self.settled = False
        """Whether the outcome stands: a record that fails from here on changes nothing."""
        self.ended = False
        """Whether the terminal event is out."""

    @property
    def occurrence(self) -> str:
        """Name this one attempt at this one call among all."""
        return f"{self.correlation_id}/{self.seq}/{self.door.attempt}"

    def emit(self, kind: str, body: Mapping[str, Any]) -> Steps[None]:
        """Record one event; a required sink's `RecordError` passes while the outcome is open."""
        settings = self.settings
        if not settings.records:
            return
        event = AuditEvent(
            self.correlation_id,
            settings.policy.id,
            self.seq,
            kind,
            settings.now(),
            apply_redactor(
                settings.redact, {"tool": self.door.tool, "attempt": self.door.attempt, **body}
            ),
        )
        try:
            yield Emit(event)
        except RecordError:
            if not self.settled:
                raise

    def end(self, outcome: Outcome, body: Mapping[str, Any]) -> Steps[None]:
        """Record the terminal event, once."""
        if self.ended:
            return
        self.ended = self.settled = True
        verdict = {} if self.decision is None else {"verdict": self.decision.verdict.value}
        yield from self.emit(f"action.{outcome.value}", {**verdict, **body})

    def record_judgment(
        self, request: ActionRequest, decision: Decision, *, phase: str, edited: object = None
    ) -> Steps[None]:
        """Record `policy.evaluated`, which a required sink must take before the body may run."""
        if not self.settings.records:
            return
        body: dict[str, Any] = {
            "verdict": decision.verdict.value,
            "reason": decision.reason,
            "matched_rules": decision.matched_rules,
            "phase": phase,
            "environment": request.context.environment,
        }
        effective = edited if edited is not None else decision.effective_args
        if effective is not None:
            body["effective_args"] = effective
        yield from self.emit("policy.evaluated", body)

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
        self, state: EntryState, *, grants: tuple[str, ...] | None = None, outcome: str | None
    ) -> Steps[None]:
        """Put down in the ledger what became of the entry, if it is ours."""
        ledger, entry = self.settings.ledger, self.entry
        if ledger is None or entry is None:
            return
        if entry.state is not EntryState.CLAIMED:
            # Nobody has answered; or our own claim went through, and its answer was cut off.
            yield from self.claim_entry(entry.state)
        self.entry = None
        ours = yield UseLedger(
            ledger.settle,
            (entry.id,),
            {
                "holder": self.holder,
                "state": state,
                "grants": entry.grants if grants is None else grants,
                "outcome": outcome,
            },
            may_block=True,
        )
        if not ours:
            yield UseLedger(
                ledger.expire, (entry.id,), {"now": self.settings.now()}, may_block=True
            )

    # Judging

    def judge(self, request: ActionRequest) -> Steps[tuple[ActionRequest, Decision]]:
        """Judge a request; rewritten arguments come as the body would get them.

        Where the judging itself fails, that is a denial like any other (law 4).
        """
        try:
            missing = self._unresolved(request)
            if missing:
                request = yield from self._resolve(request, missing)
            decision = self._evaluate(request)
            if decision.effective_args is not None:
                return (yield from self._judge_rewritten(request, decision))
        except Refusal as failed:
            decision = Decision(Verdict.DENY, failed.reason, (f"<{failed.code}>",))
        return request, decision

    def _judge_rewritten(
        self, request: ActionRequest, decision: Decision
    ) -> Steps[tuple[ActionRequest, Decision]]:
        for _ in range(_MAX_ROUNDS):
            if decision.effective_args is None:
                return request, decision
            final = self.completed(decision.effective_args)
            rewritten = replace(request, args=final)
            missing = self._unresolved(rewritten)
            known = (yield from self._resolve(rewritten, missing)) if missing else rewritten
            if known is rewritten:
                if same(final, decision.effective_args):
                    return request, replace(decision, effective_args=final)
                return request, self._judge_completed(rewritten, decision)
            # `under` reads a rewritten value: with its path resolved, judge again (clause 19).
            request = replace(request, resolved=known.resolved)
            decision = self._evaluate(request)
        raise Refusal("policy_failed", "the policy kept rewriting the arguments")

    def completed(self, args: Mapping[str, Any]) -> FrozenDict:
        """Give rewritten arguments as the body would get them; refuse what does not fit it."""
        try:
            return self.door.complete(args if type(args) is FrozenDict else freeze_object(args))
        except (InvalidArguments, ArgumentsRefused) as error:
            raise Refusal(
                "invalid_rewrite", f"the rewritten arguments do not fit the tool: {error}"
            ) from None

    def _judge_completed(self, rewritten: ActionRequest, decision: Decision) -> Decision:
        """Judge arguments into which defaults came back after a transform took them out.

        The stricter of the two judgments holds.
        """
        again = self._evaluate(rewritten)
        if again.effective_args is not None and not same(
            self.completed(again.effective_args), rewritten.args
        ):
            raise Refusal(
                "invalid_rewrite",
                "the rewritten arguments change again when defaults are filled in",
            )
        stricter = max(decision, again, key=lambda item: _STRICTNESS[item.verdict])
        return replace(
            stricter,
            effective_args=rewritten.args,
            matched_rules=united(decision.matched_rules, again.matched_rules),
            approver_sets=united(decision.approver_sets, again.approver_sets),
            obligations=united(decision.obligations, again.obligations),
        )

    def _evaluate(self, request: ActionRequest) -> Decision:
        settings = self.settings
        try:
            decision: object = settings.evaluate(settings.policy, request)
        except Exception as error:
            raise _policy_failed(error) from error
        if not isinstance(decision, Decision) or decision.verdict not in _STRICTNESS:
            raise Refusal(
                "policy_failed",
                f"the policy answered with a {type(decision).__name__} that is no decision",
            )
        return decision

    def _unresolved(self, request: ActionRequest) -> tuple[str, ...]:
        try:
            wanted = self.settings.policy.paths_to_resolve(request)
        except Exception as error:
            raise _policy_failed(error) from error
        return tuple(path for path in wanted if path not in request.resolved) if wanted else ()

    def _resolve(self, request: ActionRequest, missing: tuple[str, ...]) -> Steps[ActionRequest]:
        found = yield Resolve(missing, request.context.workspace)
        # What could not be resolved stays out, and `under` errs on it (clause 12).
        known = {path: found[path] for path in missing if path in found}
        if not known:
            return request
        return replace(request, resolved=FrozenDict({**request.resolved, **known}))

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
            if always_only and obligation.on != "always":
                continue
            outcome = yield from self._discharge_one(obligation, request)
            self.outcomes[index] = outcome
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


def _policy_failed(error: Exception) -> Refusal:
    return Refusal(
        "policy_failed",
        f"the policy could not be evaluated: {failure_text(error)}",
    )


def final_request(request: ActionRequest, decision: Decision) -> ActionRequest:
    """Give the request with the arguments to execute, preview or ask about."""
    if decision.effective_args is None:
        return request
    return replace(request, args=decision.effective_args)


def same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether two arguments are the same JSON value, kinds included."""
    # Python's equality would take 1 for True.
    return left is right or canonical_json(left) == canonical_json(right)


def united(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    """Give the members of both, in order, once each."""
    return first + tuple(item for item in second if item not in first)
