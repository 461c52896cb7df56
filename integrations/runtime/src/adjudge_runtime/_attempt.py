"""One attempt at a run, from its first event to its result, whichever way it ends.

Used for the run of `run_agent` and for those of the agents inside of its tools. What ended the loop
becomes a `RunResult` and an event here; only cancellations and what is no `Exception` pass, and the
record says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge import LedgerError, PendingApproval, RecordError, ToolSet
from adjudge.integration import GovernedRun
from adjudge_runtime._budgets import Meter, described_budget, is_unbounded
from adjudge_runtime._calls import GovernedCalls
from adjudge_runtime._compressors import Compressor
from adjudge_runtime._desk import Desk
from adjudge_runtime._journal import Journal, NoJournal
from adjudge_runtime._loop import Loop
from adjudge_runtime._past import Past
from adjudge_runtime._stops import Stop, said
from adjudge_runtime._values import Agent, Budget, FinalAnswer, OnToken, RunResult

__all__ = ["Attempt", "name_of"]

_UNTOLD = frozenset({"superseded", "cancelled", "paused"})


def name_of(agent: object) -> str | None:
    """Give the name of an agent, if it has one."""
    name = getattr(agent, "name", None)
    return name if isinstance(name, str) and name else None


@dataclass(slots=True, eq=False)
class Attempt:
    """All that one attempt at a run of an agent needs."""

    desk: Desk
    journal: Journal | NoJournal
    agent: Agent
    task: str
    tools: ToolSet
    budget: Budget
    compressor: Compressor | None = None
    on_token: OnToken | None = None
    about: Mapping[str, Any] | None = None
    """What else the record is to say of the run where it begins."""

    async def carry_out(self) -> RunResult:
        """Go on with the run from where its journal ends."""
        if self.desk.run is not None:
            self._forget_what_was_told(self.desk.run)
        loop = self._loop()
        if self.journal.past.lost is not None:
            loop.meter.add(self.journal.past.lost)
        try:
            if self.desk.records or self.journal.keeps:
                await self._begin(loop)
            if self.journal.past.is_finished:
                answer = self._answer_again(loop.meter, self.journal.past)
            else:
                answer = await loop.run()
        except Stop as stop:
            return await self._stopped(stop, loop.meter)
        except GeneratorExit:
            raise  # nothing can be awaited any more
        except BaseException as error:
            await self._end("run.cancelled", {"reason": f"interrupted by {said(error)}"})
            raise
        if self.desk.records:
            await self._end("run.succeeded", self._answered(answer, loop.meter))
        return self._result(loop.meter, final_answer=answer)

    def _forget_what_was_told(self, run: GovernedRun) -> None:
        """Leave out what waited for steps that are done, so that a later call may have its id."""
        steps = self.journal.past.steps
        done = {
            pending
            for step in steps
            for index, pending in step.pending.items()
            if index in step.results
        }
        for entry in run.entries:
            if entry.id in done:
                run.take(entry.occurrence)

    def _loop(self) -> Loop:
        desk = self.desk
        calls = GovernedCalls(desk, self.tools, agent=name_of(self.agent))
        return Loop(
            self.agent,
            self.task,
            calls=calls,
            plain=calls.plain,
            budget=self.budget,
            journal=self.journal,
            halt=desk.halt,
            cancelled=desk.cancelled,
            record=desk.guard.record_event if desk.records else None,
            compressor=self.compressor,
            on_token=self.on_token,
            checks_cancel=desk.checks_cancel,
            unanswered=frozenset() if desk.run is None else desk.run.unanswered,
        )

    async def _begin(self, loop: Loop) -> None:
        desk = self.desk
        past, bundle = self.journal.past, desk.guard.policy.id
        if desk.records:
            name = name_of(self.agent)
            about = {"agent": name} if name is not None else {}
            budget = described_budget(self.budget)
            await loop.tell(
                "run.started", {"task": self.task, **(self.about or {}), **about, "budget": budget}
            )
            if is_unbounded(self.budget):
                await loop.tell("run.unbounded", {"detail": "nothing caps the run"})
        if past.is_finished:
            return
        if past.records and past.bundle_id != bundle:
            await loop.tell(
                "run.bundle_changed",
                {"journaled_bundle_id": past.bundle_id, "current_bundle_id": bundle},
            )
        await self.journal.begin(self.task, bundle, None if desk.run is None else desk.run.id)
        if past.records:
            await loop.tell("run.resumed", {"records": past.records, "attempt": past.attempts + 1})

    def _answer_again(self, meter: Meter, past: Past) -> str:
        """Give the answer of a run that is finished, with all that it counted."""
        for step in past.steps:
            if step.action.usage is not None:
                meter.add(step.action.usage)
            for kept in step.results.values():
                if kept.usage is not None:
                    meter.add(kept.usage)
                meter.denials += kept.all_denials
        meter.steps = sum(not isinstance(step.action, FinalAnswer) for step in past.steps)
        return past.final_answer or ""

    def _answered(self, answer: str, meter: Meter) -> dict[str, Any]:
        body: dict[str, Any] = {"final_answer": answer}
        if self.journal.past.is_finished:
            body["replayed"] = True
        elif meter.used is not None:
            used = meter.used
            body["usage"] = {
                "input_tokens": used.input_tokens,
                "output_tokens": used.output_tokens,
            }
        return body

    async def _stopped(self, stop: Stop, meter: Meter) -> RunResult:
        pending: tuple[PendingApproval, ...] = ()
        error = stop.error
        if stop.code == "paused":
            assert self.desk.run is not None
            try:
                pending = await self.desk.guard.waiting(self.desk.run.id)
            except LedgerError as failed:
                error = f"{error}; what waits cannot be read: {said(failed)}"
        body = {"reason": error, **stop.about}
        if stop.code in _UNTOLD:
            await self._end(f"run.{stop.code}", body)
        else:
            await self._end("run.failed", {**body, "code": stop.code})
        return self._result(meter, error=error, code=stop.code, pending=pending)

    async def _end(self, kind: str, body: Mapping[str, Any]) -> None:
        """Record how the run ended; a record that fails changes nothing about that."""
        if not self.desk.records:
            return
        try:
            await self.desk.guard.record_event(kind, body)
        except RecordError:
            return

    def _result(self, meter: Meter, **ended: Any) -> RunResult:
        guard = self.desk.guard
        return RunResult(
            guard.correlation_id,
            guard.policy.id,
            steps_taken=meter.steps,
            usage=meter.used,
            denials=meter.denials,
            **ended,
        )
