"""The door to everything that is governed: `ToolGuard`.

It holds what does not change between calls (policy, tools, handlers, sinks, ledger), numbers the
calls, and hands each to mediation through the async or the sync driver. One guard serves many
tasks and threads at once. It decides nothing itself.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from adjudge._arguments.proposal import Effective, ProposedCall
from adjudge._enforcement.admission import described
from adjudge._enforcement.approvals import ApprovalHandler, PauseApproval, auto_deny
from adjudge._enforcement.cancel import Cancelled
from adjudge._enforcement.carrying_on import RunCall
from adjudge._enforcement.configuration import check_settings, check_tools, is_data, may_read_paths
from adjudge._enforcement.doors import Door, FrameworkDoor
from adjudge._enforcement.drivers import drive, drive_sync
from adjudge._enforcement.effects import Effect, Mediating, Raised
from adjudge._enforcement.loop import LoopThread
from adjudge._enforcement.mediation import Mediation
from adjudge._enforcement.notes import check_kind, noted
from adjudge._enforcement.places import CallPlace
from adjudge._enforcement.replays import ReplayedCall
from adjudge._enforcement.resumption import Resumption, claim_and_go_on
from adjudge._enforcement.runs import GovernedRun, reopen, waiting
from adjudge._enforcement.settings import ObligationHandler, Policy, Settings
from adjudge._enforcement.tool_doors import UnknownToolDoor, doors_of
from adjudge._enforcement.tools import ToolSet
from adjudge._ledger.entries import EntryState, Ledger, LedgerEntry
from adjudge._record.redaction import Redactor, default_redactor, is_pure
from adjudge._record.sinks import Recorder, Sink
from adjudge._types import (
    ApprovalDecision,
    CallContext,
    GovernedCall,
    PendingApproval,
    Principal,
)
from adjudge._values import EMPTY
from adjudge.policy import evaluate

if TYPE_CHECKING:
    from adjudge._executors.routing import Executor

__all__ = ["ContextSource", "ToolGuard"]

ContextSource = Callable[[], CallContext | Awaitable[CallContext]]

_now = partial(datetime.now, UTC)
_ANONYMOUS = Principal("user", "anonymous")


class ToolGuard:
    """Judges tool calls, carries out the verdict, and records it.

    `on_approval` is a handler or `pause_approval(ledger)`; without one, what needs approval is
    refused. `executor` runs the tools of `check`. `obligations` and `shadows` are looked up by id
    and by tool name. `cancel` is read immediately before each body. `environment` None means that
    nobody supplied one. What cannot be a setting raises `GovernError`. Close the guard, or use it
    as a context manager, to stop the thread that the sync door may have started.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        tools: ToolSet | None = None,
        principal: Principal = _ANONYMOUS,
        environment: str | None = None,
        workspace: str = ".",
        on_approval: ApprovalHandler | PauseApproval | None = None,
        executor: Executor | None = None,
        sinks: Iterable[Sink] = (),
        correlation_id: str | None = None,
        obligations: Mapping[str, ObligationHandler] | None = None,
        ledger: Ledger | None = None,
        shadows: Mapping[str, Callable[..., Any]] | None = None,
        cancel: Cancelled | None = None,
        redact: Redactor | None = None,
    ) -> None:
        check_settings(locals())
        approval = on_approval if on_approval is not None else auto_deny()
        sinks = tuple(sinks)
        redact = default_redactor() if redact is None else redact
        self._tools = ToolSet() if tools is None else tools
        if isinstance(approval, PauseApproval):
            ledger = approval.ledger
        self._thread = LoopThread()
        self._recorder = Recorder(sinks, loop=self._thread.loop)
        self._next_number = itertools.count().__next__
        self._settings = Settings(
            policy=policy,
            evaluate=evaluate,
            correlation_id=correlation_id if correlation_id is not None else os.urandom(16).hex(),
            records=bool(sinks),
            may_read_paths=may_read_paths(policy),
            holds_proposals=self._recorder.takes_several and is_data(policy),
            principal=principal,
            environment=environment,
            workspace=workspace,
            approval=approval,
            obligations=obligations,
            ledger=ledger,
            shadows=dict(shadows or {}),
            cancel=cancel,
            now=_now,
            new_id=_new_id,
            redact=redact,
            keeps_judgments=is_pure(redact),
            described=described(principal, redact) if sinks else EMPTY,
        )
        self._doors = doors_of(self._settings, self._tools, executor=executor)

    def with_tools(
        self,
        tools: ToolSet,
        *,
        executor: Executor | None = None,
        schemas: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> ToolGuard:
        """Give the same guard with other tools for `check`.

        Policy, handlers, ledger, record and numbering are those of this one, which stays as it is:
        one record of all agents that work for one run. `schemas` are the JSON Schemas, by tool
        name, by which a model was told to call them: arguments that one rejects get no verdict and
        no body. Closing either guard closes both.
        """
        check_tools(tools, executor)
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._tools = tools
        other._doors = doors_of(self._settings, tools, executor=executor, schemas=schemas or EMPTY)
        return other

    @property
    def policy(self) -> Policy:
        """The policy bundle that decides."""
        policy: Policy = self._settings.policy
        return policy

    @property
    def tools(self) -> ToolSet:
        """The tools that `check` runs."""
        return self._tools

    @property
    def ledger(self) -> Ledger | None:
        """Where approvals and pauses are kept, if anywhere."""
        return self._settings.ledger

    @property
    def correlation_id(self) -> str:
        """What all events of this guard have in common."""
        return self._settings.correlation_id

    @property
    def may_ask(self) -> bool:
        """Whether the policy could require an approval."""
        return self.policy.may_ask

    @property
    def pauses(self) -> bool:
        """Whether a call that needs approval is left pending rather than asked about in place."""
        return isinstance(self._settings.approval, PauseApproval)

    async def check(
        self,
        name: str,
        args: Mapping[str, Any] | str,
        *,
        extra: Mapping[str, Any] | None = None,
        context: ContextSource | None = None,
        place: CallPlace | None = None,
    ) -> GovernedCall:
        """Govern one call of a tool of the guard's `ToolSet`, and run it if it may.

        `args` are named values, or the model's own JSON text. `context` is asked once who is
        calling; without it the guard's own principal and surroundings hold. `extra` is what a
        policy reads as `context.extra`; what `context` says of it counts first. Denials, failures
        of the tool and previews are values; only a cancellation and the like is raised. A sync
        tool runs in a thread of its own, which a cancellation leaves behind. `place` says where in
        a run that can pause the call stands (`adjudge.integration.CallPlace`).
        """
        door = self._doors.get(name) if place is None and type(name) is str else None
        if door is None:
            steps = self._checking(name, args, extra, context, place)
        else:
            # As `_checking` does, without the call, for what nearly all of them are.
            number = self._next_number()
            steps = Mediation(self._settings, door, number, args, extra, context).guarded()
        return await drive(steps, self._recorder)

    def check_sync(
        self,
        name: str,
        args: Mapping[str, Any] | str,
        *,
        extra: Mapping[str, Any] | None = None,
        context: ContextSource | None = None,
        place: CallPlace | None = None,
    ) -> GovernedCall:
        """Do what `check` does, for callers without an event loop."""
        steps = self._checking(name, args, extra, context, place)
        return drive_sync(steps, self._recorder, self._thread)

    async def govern_call(
        self,
        call: ProposedCall,
        execute: Callable[[Effective], Awaitable[Any]],
        *,
        context: ContextSource | None = None,
    ) -> GovernedCall:
        """Govern one call that a framework proposes; `execute` is its continuation to the body.

        What `execute` returns is `result.value`, untouched; what it raises is recorded and raised
        again, unchanged.
        """
        return await drive(self._governing(call, execute, context), self._recorder)

    def govern_call_sync(
        self,
        call: ProposedCall,
        execute: Callable[[Effective], Any],
        *,
        context: ContextSource | None = None,
    ) -> GovernedCall:
        """Do what `govern_call` does, for callers without an event loop."""
        return drive_sync(self._governing(call, execute, context), self._recorder, self._thread)

    async def resume(self, pending_id: str, answer: ApprovalDecision) -> GovernedCall:
        """Go on with a call that `check` left pending, with a person's answer (clause 24)."""
        return await drive(self._resuming(pending_id, answer), self._recorder)

    def resume_sync(self, pending_id: str, answer: ApprovalDecision) -> GovernedCall:
        """Do what `resume` does, for callers without an event loop."""
        return drive_sync(self._resuming(pending_id, answer), self._recorder, self._thread)

    async def pause_call(
        self, call: ProposedCall, *, context: ContextSource | None = None
    ) -> PendingApproval | None:
        """Leave a call of a run waiting, where the policy has a person asked about it.

        For frameworks that ask whether a call needs approval before they come to its body. The call
        is entered in the ledger and recorded, once however often this is asked. None means that
        nobody has to be asked now; nothing is recorded then, and `govern_call` judges the call
        at its body.
        """
        return await drive(self._looking(call, context), self._recorder)

    def pause_call_sync(
        self, call: ProposedCall, *, context: ContextSource | None = None
    ) -> PendingApproval | None:
        """Do what `pause_call` does, for callers without an event loop."""
        return drive_sync(self._looking(call, context), self._recorder, self._thread)

    async def waiting(self, run: str) -> tuple[PendingApproval, ...]:
        """Give the calls of a framework's run that wait for a person, in the order of asking.

        `run` is the id of a `GovernedRun`. Raises `LedgerError` where the ledger cannot be read.
        """
        return await drive(waiting(self._settings, run), self._recorder)

    def waiting_sync(self, run: str) -> tuple[PendingApproval, ...]:
        """Do what `waiting` does, for callers without an event loop."""
        return drive_sync(waiting(self._settings, run), self._recorder, self._thread)

    async def reopen(
        self, answers: Mapping[str, ApprovalDecision | None], *, run: str | None = None
    ) -> GovernedRun:
        """Keep people's answers to calls of one paused run, and give the run to go on with.

        `answers` are by the ids of what is pending, one for each approver set that is still to
        answer; the first answer to a question counts. None leaves a call as the ledger has it, for
        what was answered elsewhere; `run`, the id of the `GovernedRun`, may stand for answers where
        there are none to give. Raises `AnswerError` for what is no answer,
        or none to a call of one run that this guard's ledger knows.
        """
        return await drive(reopen(self._settings, answers, run), self._recorder)

    def reopen_sync(
        self, answers: Mapping[str, ApprovalDecision | None], *, run: str | None = None
    ) -> GovernedRun:
        """Do what `reopen` does, for callers without an event loop."""
        return drive_sync(reopen(self._settings, answers, run), self._recorder, self._thread)

    async def record_event(self, kind: str, body: Mapping[str, Any]) -> None:
        """Put an event of the host's own on the record, such as `run.started` (for integrations).

        It is redacted, and goes to every sink after what was recorded before it. Raises
        `RecordError` where a required sink does not take it, and `ValueError` for a kind that is
        none, or that is Adjudge's own.
        """
        await drive(self._noting(kind, body), self._recorder)

    def record_event_sync(self, kind: str, body: Mapping[str, Any]) -> None:
        """Do what `record_event` does, for callers without an event loop."""
        drive_sync(self._noting(kind, body), self._recorder, self._thread)

    def close(self) -> None:
        """Stop the guard's loop thread, if it was started; a later call would start it again."""
        self._thread.close()

    def __enter__(self) -> ToolGuard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> ToolGuard:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _door(self, name: object, place: CallPlace | None = None) -> Door:
        call_id = None if place is None else place.call_id
        if not isinstance(name, str):
            return UnknownToolDoor(f"<{type(name).__name__}>", call_id)
        door = self._doors.get(name)
        if door is None:
            return UnknownToolDoor(name, call_id)
        return door if place is None else door.at(place)

    def _checking(
        self,
        name: str,
        args: Mapping[str, Any] | str,
        extra: Mapping[str, Any] | None,
        context: ContextSource | None,
        place: CallPlace | None,
    ) -> Mediating:
        settings, number = self._settings, self._next_number
        door = self._door(name, place)
        if door.run is None:
            return Mediation(settings, door, number(), args, extra, context).guarded()
        return RunCall(settings, door, args, door.run, number, extra=extra, context=context).run()

    def _governing(
        self, call: ProposedCall, execute: Callable[[Effective], Any], context: ContextSource | None
    ) -> Mediating:
        door = FrameworkDoor(call, execute)
        if call.run is not None:
            return self._run_call(call, door, call.run, context).run()
        return Mediation(
            self._settings, door, self._next_number(), call.arguments, context=context
        ).run()

    def _looking(
        self, call: ProposedCall, context: ContextSource | None
    ) -> Generator[Effect, Any, PendingApproval | Raised | None]:
        if call.run is None:
            raise ValueError("The call names no run; without one there is nothing to pause.")
        return self._run_call(call, FrameworkDoor(call, _no_body), call.run, context).look()

    def _run_call(
        self,
        call: ProposedCall,
        door: FrameworkDoor,
        run: GovernedRun,
        context: ContextSource | None,
    ) -> RunCall:
        settings, number = self._settings, self._next_number
        if call.replay is None or settings.ledger is None:
            return RunCall(settings, door, call.arguments, run, number, context=context)
        return ReplayedCall(settings, door, run, number, call.replay, context=context)

    def _noting(self, kind: str, body: Mapping[str, Any]) -> Generator[Effect, Any, None]:
        check_kind(kind)
        return noted(self._settings, self._next_number(), kind, body)

    def _resuming(self, pending_id: str, answer: ApprovalDecision) -> Mediating:
        def go_on(entry: LedgerEntry, holder: str) -> Mediating:
            resumption = Resumption(self._settings, self._door(entry.tool), entry.seq, entry.args)
            return resumption.run_claimed(entry, holder, (answer,))

        return claim_and_go_on(
            self._settings,
            pending_id,
            expected=EntryState.PAUSED,
            in_run=False,
            next_seq=self._next_number,
            go_on=go_on,
        )


def _no_body(effective: Effective) -> None:
    raise RuntimeError("A first look at a call runs nothing.")


def _new_id() -> str:
    return uuid.uuid4().hex
