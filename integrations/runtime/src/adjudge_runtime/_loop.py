"""The loop: ask the agent, run what it proposes through the one door, tell it what came of that.

Before each model call the budget and the kill switch are looked at. What happened in an earlier
attempt is taken from the journal and neither asked nor run again. The loop knows no guard and no
store: whatever runs a call (`CallTools`), keeps a journal and records events is handed to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from adjudge import ArgumentsRefused, RecordError
from adjudge.integration import freeze_object
from adjudge_runtime._answers import Answer, storable
from adjudge_runtime._asking import chooser
from adjudge_runtime._budgets import Meter
from adjudge_runtime._calls import CallTools, PlainCall
from adjudge_runtime._compressors import Compressor, applied
from adjudge_runtime._conversation import Conversation
from adjudge_runtime._journal import Journal, NoJournal
from adjudge_runtime._making import proposed, said_by_agent, told_by_tool
from adjudge_runtime._past import Kept, PastStep
from adjudge_runtime._stops import Halt, Stop, alone, said
from adjudge_runtime._values import (
    Agent,
    AgentAction,
    Budget,
    FinalAnswer,
    Message,
    OnToken,
    ToolCall,
    ToolCalls,
    Usage,
)

__all__ = ["Loop", "Record"]

Record = Callable[[str, Mapping[str, Any]], Awaitable[None]]


class Loop:
    """One attempt at one run of an agent."""

    def __init__(
        self,
        agent: Agent,
        task: str,
        *,
        calls: CallTools,
        plain: PlainCall | None = None,
        budget: Budget,
        journal: Journal | NoJournal,
        halt: Halt,
        cancelled: Callable[[], str | None],
        record: Record | None = None,
        compressor: Compressor | None = None,
        on_token: OnToken | None = None,
        unanswered: frozenset[str] = frozenset(),
        checks_cancel: bool = False,
    ) -> None:
        self._calls = calls
        self._journal = journal
        self._halt = halt
        self._cancelled = cancelled
        self._record = record
        self._compressor = compressor
        self._choose = chooser(agent, on_token, seconds=budget.step_timeout_seconds)
        is_plain = compressor is None and not journal.keeps and not checks_cancel
        self._plain = plain if is_plain else None
        self._unanswered = unanswered
        self._checks_cancel = checks_cancel
        self._conversation = Conversation([Message("user", task)])
        self.meter = Meter(budget)

    async def run(self) -> str:
        """Run to the answer, and give it; raises `Stop` where there is none."""
        journal, meter, plain = self._journal, self.meter, self._plain
        step = 0
        while True:
            reason = self._cancelled()
            if reason is not None:
                raise _cancellation(reason, at="step_boundary")
            past = journal.step(step)
            if past is None:
                meter.check()
                action = self._completed(await self._ask(step), step)
                if journal.keeps:
                    await journal.decide(step, action)
                if action.usage is not None:
                    await self._count(action.usage, step)
            else:
                action = past.action
                if action.usage is not None:
                    meter.add(action.usage)
            if isinstance(action, FinalAnswer):
                if journal.keeps:
                    await journal.finish(step, action.text)
                return action.text
            if past is None and type(action) is ToolCall:
                # What nearly every step is: nothing lies beside it or behind it.
                meter.propose(action, step)
                told = await (plain(action) if plain else self._run_call(step, 0, action))
                if isinstance(told, Answer):
                    told = await self._settled(step, 0, action, told, uncertain=False)
                if told is None or action.usage is not None or self._halt.stop is not None:
                    self._go_on(step, action, (action,), (told,))
                else:
                    self._conversation = self._conversation.extended(
                        (said_by_agent("", (action,)), told_by_tool(told, action))
                    )
            else:
                await self._carry_out(step, action, past)
            meter.steps += 1
            step += 1

    # The model

    async def _ask(self, step: int) -> AgentAction:
        try:
            action = await self._choose(self._conversation)
        except Stop:
            raise
        except Exception as error:
            used = _usage_of(error)
            if used is not None:
                await self._lose(step, self.meter.priced(used))
            raise Stop("agent_failed", f"agent.step raised: {said(error)}") from error
        if isinstance(action, (ToolCall, ToolCalls, FinalAnswer)):
            return action
        raise Stop(
            "agent_failed",
            f"agent.step gave a {type(action).__name__}; it is to give a ToolCall, ToolCalls or "
            "a FinalAnswer",
        )

    async def _lose(self, step: int, usage: Usage) -> None:
        """Count what a model call used that came to nothing."""
        if self._journal.keeps:
            await self._journal.lose(step, usage)
        await self._count(usage, step)

    def _completed(self, action: AgentAction, step: int) -> AgentAction:
        """Give an action with all that it must have: ids, a price, arguments that stay."""
        if type(action) is ToolCall and action.usage is None and not self._journal.keeps:
            # Nothing of it has to be priced or frozen.
            return action if action.call_id else proposed(action.tool, action.args, f"step_{step}")
        if action.usage is not None:
            usage = self.meter.priced(action.usage)
            if usage is not action.usage:
                action = replace(action, usage=usage)
        if isinstance(action, FinalAnswer):
            return action
        try:
            if isinstance(action, ToolCall):
                return self._completed_call(action, f"step_{step}")
            calls = tuple(
                self._completed_call(call, f"step_{step}_{index}")
                for index, call in enumerate(action.calls)
            )
        except ArgumentsRefused as error:
            raise Stop("agent_failed", f"the journal cannot keep a proposal: {error}") from error
        try:
            return replace(action, calls=calls)
        except ValueError as error:  # an id of the agent's is one that was made here
            raise Stop("agent_failed", f"agent.step gave what is no proposal: {error}") from error

    def _completed_call(self, call: ToolCall, call_id: str) -> ToolCall:
        args = call.args
        if self._journal.keeps and not isinstance(args, str):
            # What is put down is what is judged, whatever the agent does with its own object.
            args = freeze_object(args)
        elif call.call_id and type(call) is ToolCall:
            return call
        return proposed(call.tool, args, call.call_id or call_id, usage=call.usage)

    async def _count(self, usage: Usage, step: int) -> None:
        self.meter.add(usage)
        if self._record is None:
            return
        total = self.meter.used
        assert total is not None
        await self.tell(
            "step.usage",
            {
                "step": step,
                **asdict(usage),
                "total_input": total.input_tokens,
                "total_output": total.output_tokens,
            },
        )

    # Its calls

    async def _carry_out(
        self, step: int, action: ToolCall | ToolCalls, past: PastStep | None
    ) -> None:
        calls = (action,) if isinstance(action, ToolCall) else action.calls
        for call in calls:
            self.meter.propose(call, step)
        told: Sequence[str | None]
        if len(calls) == 1:
            told = (await self._one(step, 0, calls[0], past),)
        else:
            told = await self._side_by_side(step, calls, past)
        self._go_on(step, action, calls, told)

    async def _side_by_side(
        self, step: int, calls: Sequence[ToolCall], past: PastStep | None
    ) -> list[str | None]:
        with alone():
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._caught(step, index, call, past))
                    for index, call in enumerate(calls)
                ]
        told = [task.result() for task in tasks]
        for each in told:
            if isinstance(each, Stop):
                raise each
        return [each for each in told if not isinstance(each, Stop)]

    async def _caught(
        self, step: int, index: int, call: ToolCall, past: PastStep | None
    ) -> str | Stop | None:
        """Leave the calls beside this one to come to their own ends."""
        try:
            return await self._one(step, index, call, past)
        except Stop as stop:
            return stop

    async def _one(
        self, step: int, index: int, call: ToolCall, past: PastStep | None
    ) -> str | None:
        """Give what the model is told of one call, None where it waits."""
        uncertain = False
        if past is not None:
            kept = past.results.get(index)
            if kept is not None:
                return await self._replayed(step, kept)
            if past.pending.get(index) in self._unanswered:
                return None
            waits = self._calls.waiting(call)
            if waits is not None:
                # It was asked about, and an earlier attempt came to no record of that.
                await self._journal.leave(step, index, waits)
                return None
            uncertain = past.is_uncertain(index)
            if not uncertain:
                self._calls.forget_unbegun(call)
        if uncertain:
            await self.tell(
                "step.uncertain",
                {
                    "step": step,
                    "tool": call.tool,
                    "call_id": call.call_id,
                    "idempotency_key": self._journal.key(step, index, call),
                },
            )
        return await self._run_call(step, index, call, uncertain=uncertain)

    async def _run_call(
        self, step: int, index: int, call: ToolCall, *, uncertain: bool = False
    ) -> str | None:
        """Run a call that no earlier attempt has settled."""
        if self._checks_cancel:
            reason = self._cancelled()
            if reason is not None:
                raise _cancellation(reason, at="pre_execute", step=step)
        answer = await self._calls.run(step, index, call, uncertain=uncertain)
        return await self._settled(step, index, call, answer, uncertain=uncertain)

    async def _replayed(self, step: int, kept: Kept) -> str:
        if kept.usage is not None:
            self.meter.add(kept.usage)
        self.meter.denials += kept.all_denials
        await self.tell(
            "step.replayed",
            {"step": step, "tool": kept.tool, "ok": kept.ok, "verdict": kept.verdict},
        )
        return kept.message

    async def _settled(
        self, step: int, index: int, call: ToolCall, answer: Answer, *, uncertain: bool
    ) -> str | None:
        """Put down what came of a call; one that was cancelled before its body is still to run."""
        if self._halt.stop is not None:
            raise self._halt.stop
        if answer.code == "cancelled":
            error = answer.error or "cancelled"
            reason = error.removeprefix("cancelled").removeprefix(": ")
            raise Stop("cancelled", error, reason=reason, at="pre_execute", step=step)
        if answer.waits is not None:
            if answer.waits:
                await self._journal.leave(step, index, answer.waits)
            return None
        if answer.usage is not None:
            self.meter.add(answer.usage)
        self.meter.denials += answer.denials + (answer.outcome == "denied")
        compressed = None
        if self._compressor is not None and answer.outcome == "completed":
            compressed = await self._compress(self._compressor, step, call, answer)
        if self._journal.keeps:
            # What a tool said may be text that no store takes; the model reads what was kept.
            answer.message = storable(answer.message)
            await self._journal.keep(step, index, call.tool, answer, uncertain=uncertain)
        if compressed is not None:
            # Only now: a record that fails must not lose the result of a body that ran.
            await self.tell(*compressed)
        return answer.message

    async def _compress(
        self, compressor: Compressor, step: int, call: ToolCall, answer: Answer
    ) -> tuple[str, dict[str, Any]] | None:
        """Make the answer shorter, and give the event that says so."""
        tool = self._calls.tool(call.tool)
        assert tool is not None
        whole, about = answer.message, {"step": step, "tool": call.tool}
        try:
            answer.message = await applied(compressor, tool, whole)
        except Exception as error:
            return "step.compress_failed", {**about, "error": said(error)}
        if answer.message == whole:
            return None
        counts = {"before_chars": len(whole), "after_chars": len(answer.message)}
        return "step.compressed", {**about, **counts}

    def _go_on(
        self,
        step: int,
        action: ToolCall | ToolCalls,
        calls: tuple[ToolCall, ...],
        told: Sequence[str | None],
    ) -> None:
        """Tell the model what came of a step, unless the run ends with it."""
        if self._halt.stop is not None:
            raise self._halt.stop
        if None in told:
            raise Stop("paused", "paused: approval is needed to go on", step=step)
        text = action.text if isinstance(action, ToolCalls) else ""
        plain = tuple(
            call if call.usage is None else proposed(call.tool, call.args, call.call_id)
            for call in calls
        )
        messages = [said_by_agent(text, plain)]
        for call, answer in zip(calls, told, strict=True):
            messages.append(told_by_tool(answer or "", call))
        self._conversation = self._conversation.extended(messages)

    # The rest of the world

    async def tell(self, kind: str, body: Mapping[str, Any]) -> None:
        """Record an event of the run; a required sink that does not take it ends the run."""
        if self._record is None:
            return
        try:
            await self._record(kind, body)
        except RecordError as error:
            raise Stop("record_failed", f"the record failed: {said(error)}") from error


def _usage_of(error: Exception) -> Usage | None:
    """Give what a failed model call says that it used."""
    try:
        used = getattr(error, "usage", None)
    except Exception:
        # An exception that cannot say what it used must not take the place of another.
        return None
    return used if isinstance(used, Usage) else None


def _cancellation(reason: str, **where: object) -> Stop:
    error = f"cancelled: {reason}" if reason else "cancelled"
    return Stop("cancelled", error, reason=reason, **where)
