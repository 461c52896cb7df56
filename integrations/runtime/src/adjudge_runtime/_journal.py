"""The journal of a run: what happened, put down before anything that depends on it.

The model's decision before any of its calls runs, the intent of a call before its body, the result
after. Each record has the next number, and a number is given once: whoever comes second is
superseded and does nothing more. `NoJournal` is the same for runs that nobody wants to go on with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from adjudge import DuplicateRecord, RunStore
from adjudge_runtime._keys import idempotency_key
from adjudge_runtime._making import recorded
from adjudge_runtime._past import JournalError, Kept, Past, PastStep, read_past
from adjudge_runtime._stops import Halt, Stop, said
from adjudge_runtime._values import AgentAction, FinalAnswer, ToolCall, ToolCalls, Usage

__all__ = ["Journal", "NoJournal", "check_run_id", "open_journal", "open_nested"]

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

    async def keep(self, step: int, index: int, kept: Kept) -> None:
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

    async def decide(self, step: int, action: AgentAction) -> None:
        """Put down what the agent chose, before any of it runs."""
        frozen = action.args if isinstance(action, ToolCall) else None
        body = {"step": step, **_described(action)}
        await self._append("model.output", body, frozen=frozen)

    async def lose(self, step: int, usage: Usage) -> None:
        """Put down what a model call used that came to nothing."""
        await self._append("model.failed", {"step": step, "usage": _told(usage)})

    async def intend(self, step: int, index: int, call: ToolCall, key: str) -> None:
        """Put down that a body is about to start; only who has done this may start it."""
        body = {"step": step, "call": index, "tool": call.tool, "call_id": call.call_id}
        await self._append("action.intent", body, key)

    async def keep(self, step: int, index: int, kept: Kept) -> None:
        """Put down what came of a call."""
        body = {
            "step": step,
            "call": index,
            "tool": kept.tool,
            "verdict": kept.verdict,
            "outcome": kept.outcome,
            "ok": kept.ok,
            "error": kept.error,
            "code": kept.code,
            "duration_ms": kept.duration_ms,
            "message": kept.message,
        }
        if kept.uncertain_retry:
            body["uncertain_retry"] = True
        if kept.usage is not None:
            body["usage"] = _told(kept.usage)
        if kept.denials:
            body["denials"] = kept.denials
        await self._append("action.result", body)

    async def leave(self, step: int, index: int, pending: str) -> None:
        """Put down that a call waits for a person."""
        await self._append("action.pending", {"step": step, "call": index, "pending": pending})

    async def finish(self, step: int, answer: str) -> None:
        """Put down the answer, which the run then has for ever."""
        await self._append("final", {"step": step, "final_answer": answer})

    def key(self, step: int, index: int, call: ToolCall) -> str | None:
        """Give the key under which a call is the same in every attempt."""
        return idempotency_key(self._run_id, step, call.tool, call.args, index=index)

    async def nested(self, name: str) -> NoJournal | Journal:
        """Give the journal of an agent inside of a tool; it has a run of its own in the store."""
        return await open_nested(self._store, self._run_id, name, self._halt)

    async def _append(
        self, kind: str, body: Mapping[str, Any], key: str = "", *, frozen: object = None
    ) -> None:
        """Put down a record with the next number; `frozen` is as in `recorded`."""
        # `async with` would make two coroutines more for each record.
        lock = self._lock
        await lock.acquire()
        try:
            if self._halt.stop is not None:
                raise self._halt.stop
            try:
                record = recorded((self._run_id, self._next), kind, key, body, frozen=frozen)
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
    body: dict[str, Any]
    if isinstance(action, FinalAnswer):
        body = {"type": "final_answer", "text": action.text}
    elif isinstance(action, ToolCalls):
        calls = [_call(each) for each in action.calls]
        body = {"type": "tool_calls", "calls": calls, "text": action.text}
    else:
        body = {"type": "tool_call", **_call(action)}
    if action.usage is not None:
        body["usage"] = _told(action.usage)
    return body


def _call(call: ToolCall) -> dict[str, Any]:
    return {"tool": call.tool, "args": call.args, "call_id": call.call_id}


def _told(usage: Usage) -> dict[str, Any]:
    return asdict(usage)
