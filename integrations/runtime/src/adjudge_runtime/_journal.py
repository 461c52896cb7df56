"""The journal of a run: what happened, put down before anything that depends on it.

The model's decision before any of its calls runs, the intent of a call before its body, the result
after. Each record has the next number, and a number is given once: whoever comes second is
superseded and does nothing more. `NoJournal` is the same for runs that nobody wants to go on with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from adjudge import DuplicateRecord, RunStore
from adjudge.integration import FrozenDict
from adjudge_runtime._answers import Answer, storable
from adjudge_runtime._keys import idempotency_key
from adjudge_runtime._making import are_plain, recorded
from adjudge_runtime._past import JournalError, Past, PastStep, read_past
from adjudge_runtime._stops import Halt, Stop, said
from adjudge_runtime._values import AgentAction, FinalAnswer, ToolCall, Usage

__all__ = ["Journal", "NoJournal", "check_run_id", "open_journal", "open_nested"]

Writing: TypeAlias = Coroutine[Any, Any, None]

_USAGE = tuple(item.name for item in fields(Usage))
# Between a run and the place of the call in whose body another one is; in no id of a caller's.
_NESTED = "/nested/"


class NoJournal:
    """The journal of a run that is kept nowhere."""

    keeps = False

    def __init__(self) -> None:
        self.past = Past()

    def step(self, number: int) -> PastStep | None:
        """Nothing has happened before."""
        return None

    async def begin(self, task: str, bundle_id: str, ledger_run: str | None) -> None:
        """Nothing is put down."""

    async def decide(self, step: int, action: AgentAction) -> None:
        """Nothing is put down."""

    async def lose(self, step: int, usage: Usage) -> None:
        """Nothing is put down."""

    async def intend(self, step: int, index: int, call: ToolCall, key: str) -> None:
        """Nothing is put down."""

    async def keep(
        self, step: int, index: int, tool: str, answer: Answer, *, uncertain: bool
    ) -> None:
        """Nothing is put down."""

    async def leave(self, step: int, index: int, pending: str) -> None:
        """Nothing is put down."""

    async def finish(self, step: int, answer: str) -> None:
        """Nothing is put down."""

    def key(self, step: int, index: int, call: ToolCall) -> str | None:
        """No key would be the same in another attempt."""
        return None

    async def nested(self, name: str) -> NoJournal | Journal:
        """Give the journal of an agent inside of a tool."""
        return self


class Journal:
    """The journal of one run in a store, for one attempt at it."""

    keeps = True

    def __init__(self, store: RunStore, run_id: str, past: Past, halt: Halt) -> None:
        self._store = store
        self._run_id = run_id
        self._halt = halt
        self._next = past.next_seq
        self._lock = asyncio.Lock()
        self.past = past

    def step(self, number: int) -> PastStep | None:
        """Give what is known of a step from earlier attempts."""
        steps = self.past.steps
        return steps[number] if number < len(steps) else None

    async def begin(self, task: str, bundle_id: str, ledger_run: str | None) -> None:
        """Put down that an attempt begins; who comes second is superseded here."""
        past = self.past
        body: dict[str, Any] = {"bundle_id": bundle_id}
        if ledger_run is not None:
            body["run"] = ledger_run
        if past.records == 0:
            await self._append("run.started", {"task": task, **body})
        else:
            await self._append("run.resumed", {"records": past.records, **body})

    def decide(self, step: int, action: AgentAction) -> Writing:
        """Put down what the agent chose, before any of it runs; the loop has frozen arguments."""
        body = {"step": step, **_described(action)}
        foreign: tuple[object, ...] | None = None
        if isinstance(action, ToolCall):
            args = () if type(action.args) is FrozenDict else (action.args,)
            foreign = (action.tool, action.call_id, *args)
        if action.usage is not None:
            body["usage"] = usage = _told(action.usage)
            if not are_plain(usage.values()):
                foreign = None
        return self._append("model.output", body, foreign=foreign)

    def lose(self, step: int, usage: Usage) -> Writing:
        """Put down what a model call used that came to nothing."""
        return self._append("model.failed", {"step": step, "usage": _told(usage)})

    def intend(self, step: int, index: int, call: ToolCall, key: str) -> Writing:
        """Put down that a body is about to start; only who has done this may start it."""
        tool, call_id = call.tool, call.call_id
        body = {"step": step, "call": index, "tool": tool, "call_id": call_id}
        return self._append("action.intent", body, key, foreign=(tool, call_id))

    def keep(self, step: int, index: int, tool: str, answer: Answer, *, uncertain: bool) -> Writing:
        """Put down what came of a call; `uncertain` says that its body may have run before."""
        error = None if answer.error is None else storable(answer.error)
        message, code, lasted = answer.message, answer.code, round(answer.duration_ms, 3)
        body = {
            "step": step,
            "call": index,
            "tool": tool,
            "verdict": answer.verdict,
            "outcome": answer.outcome,
            "ok": answer.ok,
            "error": error,
            "code": code,
            "duration_ms": lasted,
            "message": message,
        }
        foreign: tuple[object, ...] | None = (tool, message, lasted, code, error)
        if uncertain:
            body["uncertain_retry"] = True
        if answer.usage is not None:
            body["usage"] = _told(answer.usage)
            foreign = None
        if answer.denials:
            body["denials"] = answer.denials
        return self._append("action.result", body, foreign=foreign)

    def leave(self, step: int, index: int, pending: str) -> Writing:
        """Put down that a call waits for a person."""
        return self._append("action.pending", {"step": step, "call": index, "pending": pending})

    def finish(self, step: int, answer: str) -> Writing:
        """Put down the answer, which the run then has for ever."""
        return self._append("final", {"step": step, "final_answer": answer})

    def key(self, step: int, index: int, call: ToolCall) -> str | None:
        """Give the key under which a call is the same in every attempt."""
        return idempotency_key(self._run_id, step, call.tool, call.args, index=index)

    async def nested(self, name: str) -> NoJournal | Journal:
        """Give the journal of an agent inside of a tool; it has a run of its own in the store."""
        return await open_nested(self._store, self._run_id, name, self._halt)

    async def _append(
        self,
        kind: str,
        body: Mapping[str, Any],
        key: str = "",
        *,
        foreign: tuple[object, ...] | None = None,
    ) -> None:
        """Put down a record with the next number; `foreign` is as in `recorded`."""
        # `async with` would make two coroutines more for each record.
        lock = self._lock
        await lock.acquire()
        try:
            if self._halt.stop is not None:
                raise self._halt.stop
            try:
                record = recorded((self._run_id, self._next), kind, key, body, foreign=foreign)
            except (TypeError, ValueError) as error:
                raise Stop("agent_failed", f"the journal cannot keep {kind}: {error}") from error
            try:
                await self._store.append(record)
            except DuplicateRecord as error:
                raise self._halt.set(
                    Stop(
                        "superseded",
                        f"superseded: another worker is executing run {self._run_id!r}",
                        detail=str(error),
                    )
                ) from error
            except Exception as error:
                # It may be there or not: whoever goes on with the run will see.
                raise self._halt.set(
                    Stop("store_failed", f"store.append failed: {said(error)}")
                ) from error
            self._next += 1
        finally:
            lock.release()


def check_run_id(run_id: str) -> None:
    """Raise `ValueError` for an id that could be the name of a nested run."""
    if _NESTED in run_id:
        raise ValueError(
            f"The id {run_id!r} contains {_NESTED!r}, which names the runs of agents inside of "
            "tools; choose an id without it."
        )


async def open_journal(store: RunStore, run_id: str, halt: Halt) -> Journal:
    """Read what a store has of a caller's run, once; raises `Stop` where it cannot be read.

    Raises `ValueError` for an id that could be the name of a nested run.
    """
    check_run_id(run_id)
    return await _opened(store, run_id, halt)


async def open_nested(store: RunStore, run_id: str, place: str, halt: Halt) -> Journal:
    """Do the same for the run of an agent inside of a tool, which the run has at a place."""
    return await _opened(store, f"{run_id}{_NESTED}{place}", halt)


async def _opened(store: RunStore, run_id: str, halt: Halt) -> Journal:
    try:
        past = read_past(await store.load(run_id))
    except JournalError as error:
        raise Stop("store_failed", f"the journal of run {run_id!r} is none: {error}") from error
    except Exception as error:
        raise Stop("store_failed", f"store.load failed: {said(error)}") from error
    if past.records and past.run_id != run_id:
        raise Stop("store_failed", f"store.load gave the run {past.run_id!r} for {run_id!r}")
    return Journal(store, run_id, past, halt)


def _described(action: AgentAction) -> dict[str, Any]:
    if isinstance(action, ToolCall):
        return {"type": "tool_call", **_call(action)}
    if isinstance(action, FinalAnswer):
        return {"type": "final_answer", "text": action.text}
    calls = [_call(each) for each in action.calls]
    return {"type": "tool_calls", "calls": calls, "text": action.text}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"tool": call.tool, "args": call.args, "call_id": call.call_id}


def _told(usage: Usage) -> FrozenDict:
    return FrozenDict({name: getattr(usage, name) for name in _USAGE})
