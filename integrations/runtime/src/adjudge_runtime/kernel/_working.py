"""A session while a worker has it: the snapshot, and each record of the chain applied to it.

Going on after a crash and going on live are one thing: a record changes the session here and
nowhere else, whether it was just written or is found on resuming.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from adjudge import SessionRecord, StepRecord, StoreError
from adjudge_runtime.kernel._lifecycle import Event, IllegalTransition, RunState, transition
from adjudge_runtime.kernel._scratchpad import Scratchpad
from adjudge_runtime.kernel._sessions import SessionSnapshot, session_to_record, step_to_text
from adjudge_runtime.kernel._steps import Step, read_time

__all__ = ["Working"]


class Working:
    """The changing state of one session."""

    def __init__(self, snapshot: SessionSnapshot, pad: Scratchpad) -> None:
        self.now = snapshot
        """The session as it stands; `steps`, `summary` and `compactions` are those of `pad`."""
        self.pad = pad
        self._texts = [step_to_text(step) for step in pad.steps]

    def snapshot(self) -> SessionSnapshot:
        """Give the session as it is to be saved."""
        pad = self.pad
        return replace(self.now, steps=pad.steps, summary=pad.summary, compactions=pad.compactions)

    def record(self) -> SessionRecord:
        """Give the snapshot as a store keeps it."""
        return session_to_record(self.snapshot(), steps=self._texts)

    def saved_as(self, version: int) -> None:
        """Put down the version under which a store has it."""
        self._set(version=version)

    def apply(self, record: StepRecord) -> None:
        """Change the session by a record; raises `StoreError` for one that does not follow."""
        now = self.now
        if record.seq != now.covers:
            raise StoreError(
                f"The session {now.session_id!r} covers {now.covers} records of its chain, and "
                f"the next one there is {record.seq}."
            )
        try:
            _APPLY[record.kind](self, record.body, record.timestamp)
        except (KeyError, TypeError, ValueError, IllegalTransition) as error:
            raise StoreError(
                f"The record {record.seq} ({record.kind}) of the session {now.session_id!r} is "
                f"none that a kernel writes there: {type(error).__name__}: {error}"
            ) from None
        self._set(covers=record.seq + 1, updated_at=record.timestamp)

    def _set(self, **changes: Any) -> None:
        self.now = replace(self.now, **changes)

    def _on(self, event: Event, **changes: Any) -> None:
        self._set(state=transition(self.now.state, event), **changes)

    def _started(self, body: Mapping[str, Any], at: datetime) -> None:
        self._on(Event.START)

    def _resumed(self, body: Mapping[str, Any], at: datetime) -> None:
        """Take the session up where it was left, whatever state that was."""
        if self.now.state is RunState.SUSPENDED:
            self._on(Event.RESUME)
            if self.now.pending_question is not None or self.now.pending is not None:
                # It was suspended while it waited, and nobody has answered by that.
                self._on(Event.NEED_INPUT)
        if self.now.pending is not None and self.now.state is RunState.WAITING_INPUT:
            self._on(Event.RESUME_INPUT)
        if self.now.acting is not None and self.now.state is RunState.PLANNING:
            self._on(Event.PROPOSE, pending=None)

    def _input(self, body: Mapping[str, Any], at: datetime) -> None:
        self._on(Event.RESUME_INPUT, pending_question=None)
        step, answer = body["step"], body["answer"]
        said = "a person answered"
        self._add(Step(step, said, observation=answer, started_at=at, ended_at=at))

    def _decided(self, body: Mapping[str, Any], at: datetime) -> None:
        now = self.now
        kind, tokens = body["kind"], body["tokens_in"] + body["tokens_out"]
        step = Step(
            body["step"],
            body["thought"],
            tool=body["tool"],
            arguments=body["arguments"],
            tokens_in=body["tokens_in"],
            tokens_out=body["tokens_out"],
            cost_micros=body["cost_micros"],
            started_at=read_time(body["started_at"], "started_at"),
            ended_at=at,
        )
        self._set(
            model_calls=now.model_calls + 1,
            tokens_used=now.tokens_used + tokens,
            cost_micros=now.cost_micros + body["cost_micros"],
        )
        if kind == "act":
            tools = tuple(sorted({*now.tools, body["tool"]}))
            self._on(Event.PROPOSE, acting=step, has_begun=False, tools=tools)
        elif kind == "finish":
            self._on(Event.FINISH, answer=body["answer"])
            self._add(replace(step, observation=body["answer"]))
        else:
            self._on(Event.NEED_INPUT, pending_question=body["question"])
            self._add(replace(step, observation=f"asked a person: {body['question']}"))

    def _intended(self, body: Mapping[str, Any], at: datetime) -> None:
        self._acting(body)
        self._set(has_begun=True)

    def _observed(self, body: Mapping[str, Any], at: datetime) -> None:
        step = self._acting(body)
        now = self.now
        said = "observation" if body["ok"] else "error"
        cost = step.cost_micros + body["cost_micros"]
        self._on(
            Event.OBSERVE,
            acting=None,
            has_begun=False,
            tokens_used=now.tokens_used + body["tokens"],
            cost_micros=now.cost_micros + body["cost_micros"],
        )
        told = {said: body["message"]}
        verdict, code = body["verdict"], body["code"]
        self._add(replace(step, verdict=verdict, code=code, cost_micros=cost, ended_at=at, **told))

    def _left_pending(self, body: Mapping[str, Any], at: datetime) -> None:
        self._acting(body)
        self._on(Event.NEED_INPUT, pending=str(body["pending"]))

    def _acting(self, body: Mapping[str, Any]) -> Step:
        step = self.now.acting
        if step is None or step.index != body["step"]:
            raise ValueError(f"the step {body['step']} is not under way")
        return step

    def _breached(self, body: Mapping[str, Any], at: datetime) -> None:
        self._on(Event.FAIL, breach=f"{body['kind']}: {body['detail']}")

    def _suspended(self, body: Mapping[str, Any], at: datetime) -> None:
        self._on(Event.SUSPEND)

    def _cancelled(self, body: Mapping[str, Any], at: datetime) -> None:
        self._on(Event.CANCEL)

    def _compacted(self, body: Mapping[str, Any], at: datetime) -> None:
        self.pad.fold(body["summary"], body["count"])
        del self._texts[: body["count"]]

    def _not_compacted(self, body: Mapping[str, Any], at: datetime) -> None:
        """The pad stays as it is."""

    def _add(self, step: Step) -> None:
        self.pad.append(step)
        self._texts.append(step_to_text(step))
        self._set(next_index=step.index + 1)


_APPLY: Mapping[str, Callable[[Working, Mapping[str, Any], datetime], None]] = {
    "session.started": Working._started,
    "session.resumed": Working._resumed,
    "session.suspended": Working._suspended,
    "session.cancelled": Working._cancelled,
    "input.received": Working._input,
    "step.decided": Working._decided,
    "step.intent": Working._intended,
    "step.observed": Working._observed,
    "step.pending": Working._left_pending,
    "budget.breached": Working._breached,
    "pad.compacted": Working._compacted,
    "pad.compaction_failed": Working._not_compacted,
}
