"""The execution chain: every step of a session, put down before anything that depends on it.

It only grows, and no compaction touches it. To append the next record is to claim the session: of
two workers the one that comes second is told by `ConcurrentModification`, and does nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adjudge import (
    ConcurrentModification,
    DuplicateRecord,
    Outcome,
    RunStore,
    StepRecord,
    StoreError,
)
from adjudge_runtime._answers import Answer
from adjudge_runtime._journal import Journal, NoJournal, open_nested
from adjudge_runtime._keys import idempotency_key
from adjudge_runtime._stops import Halt, Stop, said
from adjudge_runtime._values import ToolCall
from adjudge_runtime.kernel._steps import read_time

__all__ = ["Chain", "ExecutedStep", "chain_id", "executed_steps"]


class Chain:
    """The chain of one session, for one worker that goes on with it.

    For the tools of the runtime's loop it is the journal in which a body's start is claimed.
    """

    keeps = True

    def __init__(
        self,
        store: RunStore,
        session_id: str,
        records: Sequence[StepRecord],
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._now = now
        self._lock = asyncio.Lock()
        self.session_id = session_id
        self.run_id = chain_id(session_id)
        self.records = tuple(records)
        for number, record in enumerate(self.records):
            if (record.run_id, record.seq) != (self.run_id, number):
                raise StoreError(
                    f"The chain of the session {session_id!r} has the record {record.seq} of "
                    f"{record.run_id!r} in the place {number}."
                )
        self.length = len(self.records)
        self.halt = Halt()
        self.applies: Callable[[StepRecord], None] = _nothing
        """What is told each record once it is there, in order."""

    async def append(self, kind: str, body: Mapping[str, Any], key: str = "") -> StepRecord:
        """Put down what is about to happen, or has.

        Raises `ConcurrentModification` where another worker has gone on with the session, and
        `StoreError` where the store failed; after either this worker appends nothing more.
        """
        async with self._lock:
            self.check()
            record = StepRecord(self.run_id, self.length, kind, key, body, self._now())
            try:
                await self._store.append(record)
            except DuplicateRecord:
                self.halt.set(Stop("superseded", f"it has a record {record.seq} already"))
            except Exception as error:
                # It may be there or not: whoever goes on with the session will see.
                self.halt.set(Stop("store_failed", said(error)))
            self.check()
            self.length += 1
            self.applies(record)
            return record

    def check(self) -> None:
        """Raise what stopped this worker, if something did."""
        stop = self.halt.stop
        if stop is None:
            return
        if stop.code == "superseded":
            raise ConcurrentModification(
                f"Another worker has gone on with the session {self.session_id!r} ({stop.error}); "
                "this one began nothing since. Run it again to go on from there."
            )
        raise StoreError(f"The chain of the session {self.session_id!r} failed: {stop.error}.")

    # What the loop's tools ask of a journal

    def key(self, step: int, index: int, call: ToolCall) -> str | None:
        """Give the key under which a call is the same in every attempt."""
        return idempotency_key(self.run_id, step, call.tool, call.args, index=index)

    def was_cancelled(self, answer: Answer) -> bool:
        """Whether the kill switch stopped a call before its body, or an agent inside of it.

        What is under way in that agent's run may not begin any more; the chain goes on. Raises what
        else stopped this worker.
        """
        stop = self.halt.stop
        if stop is not None and stop.code == "cancelled":
            self.halt = Halt()
            return True
        self.check()
        return answer.code == "cancelled" and answer.outcome == Outcome.DENIED.value

    async def intend(self, step: int, index: int, call: ToolCall, key: str) -> None:
        """Put down that a body is about to start; only who has done this may start it."""
        await self.append("step.intent", {"step": step}, key)

    async def nested(self, name: str) -> NoJournal | Journal:
        """Give the journal of an agent inside of a tool; it has a run of its own in the store."""
        return await open_nested(self._store, self.run_id, name, self.halt)


def _nothing(record: StepRecord) -> None:
    """Nobody follows the chain yet."""


def chain_id(session_id: str) -> str:
    """Name the run under which the store has a session's chain."""
    return f"session/{session_id}"


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """One step of a session and what came of it, as the chain has it.

    `kind` is that of the model's decision, or `input` for what a person answered. `ok` is None
    where the outcome is not known: the call is under way, waits, or `is_uncertain` because a crash
    lost it. `tokens` and `cost_micros` are those of model and tool. `duration_micros` is from the
    asking of the model to the end of the step, in microseconds.
    """

    session_id: str
    tenant: str
    user_id: str
    step: int
    kind: str
    thought: str
    tool: str | None
    arguments: Mapping[str, Any] | str | None
    ok: bool | None
    observation: str | None
    error: str | None
    verdict: str
    code: str
    tokens: int
    cost_micros: int
    started_at: datetime
    duration_micros: int | None
    idempotency_key: str = ""
    is_uncertain: bool = False


def executed_steps(
    session_id: str, tenant: str, user_id: str, records: Iterable[StepRecord]
) -> list[ExecutedStep]:
    """Read the steps out of a session's records; raises `StoreError` for what are none."""
    who = (session_id, tenant, user_id)
    answered: dict[int, ExecutedStep] = {}
    decided: dict[int, StepRecord] = {}
    later: dict[int, dict[str, StepRecord]] = {}
    try:
        for record in records:
            if record.kind == "step.decided":
                decided[record.body["step"]] = record
                later[record.body["step"]] = {}
            elif record.kind in ("step.intent", "step.observed"):
                later[record.body["step"]][record.kind] = record
            elif record.kind == "input.received":
                answered[record.body["step"]] = _input(who, record)
        acted = {step: _executed(who, decided[step], later[step]) for step in decided}
    except (KeyError, TypeError) as error:
        raise StoreError(f"The chain of the session {session_id!r} is none: {error!r}.") from None
    return [step for _, step in sorted({**answered, **acted}.items())]


def _input(who: tuple[str, str, str], record: StepRecord) -> ExecutedStep:
    return ExecutedStep(
        *who,
        step=record.body["step"],
        kind="input",
        thought="",
        tool=None,
        arguments=None,
        ok=True,
        observation=record.body["answer"],
        error=None,
        verdict="",
        code="",
        tokens=0,
        cost_micros=0,
        started_at=record.timestamp,
        duration_micros=0,
    )


def _executed(
    who: tuple[str, str, str], decided: StepRecord, later: Mapping[str, StepRecord]
) -> ExecutedStep:
    body = decided.body
    intent, observed = later.get("step.intent"), later.get("step.observed")
    acts = body["kind"] == "act"
    end = observed if acts else decided
    seen: Mapping[str, Any] = {} if observed is None else observed.body
    started = read_time(body["started_at"], "started_at") or decided.timestamp
    ok = seen.get("ok") if acts else True
    said = seen.get("message") if acts else body["answer"] or body["question"]
    return ExecutedStep(
        *who,
        step=body["step"],
        kind=body["kind"],
        thought=body["thought"],
        tool=body["tool"],
        arguments=body["arguments"],
        ok=ok,
        observation=said if ok else None,
        error=None if ok else said,
        verdict=seen.get("verdict", ""),
        code=seen.get("code", ""),
        tokens=body["tokens_in"] + body["tokens_out"] + seen.get("tokens", 0),
        cost_micros=body["cost_micros"] + seen.get("cost_micros", 0),
        started_at=started,
        duration_micros=None if end is None else _micros(started, end.timestamp),
        idempotency_key="" if intent is None else intent.idempotency_key,
        is_uncertain=intent is not None and observed is None,
    )


def _micros(start: datetime, end: datetime) -> int:
    passed = end - start
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
