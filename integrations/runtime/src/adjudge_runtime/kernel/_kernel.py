"""The kernel: a model's loop whose life, quotas, state and record are not the model's to decide.

Each turn: look at the quotas, ask the model, put its move into the chain, run the tool through the
guard, put the result into the chain, fold the scratchpad, save the session. A tool has no other way
than the guard, and what a crash leaves open is never run again silently.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import cast

from adjudge import (
    AnswerError,
    ApprovalDecision,
    CallContext,
    ConcurrentModification,
    Executor,
    Principal,
    RecordError,
    RunStore,
    SessionStore,
    ToolGuard,
    ToolSet,
)
from adjudge.integration import GovernedRun
from adjudge_runtime._answers import Answer, storable
from adjudge_runtime._calls import GovernedCalls
from adjudge_runtime._desk import Desk
from adjudge_runtime._journal import Journal, check_run_id
from adjudge_runtime._stops import Stop, said
from adjudge_runtime._values import ToolCall
from adjudge_runtime.kernel._budgets import BudgetBreach, Budgets
from adjudge_runtime.kernel._chain import ExecutedStep, chain_id, executed_steps
from adjudge_runtime.kernel._checks import check_answer, check_settings, check_texts
from adjudge_runtime.kernel._decision import Decision, Model, decision_to_body
from adjudge_runtime.kernel._episodic import Episode, Episodes, EpisodicMemory
from adjudge_runtime.kernel._lifecycle import Event, IllegalTransition, RunState, transition
from adjudge_runtime.kernel._results import SessionResult, result_of
from adjudge_runtime.kernel._scratchpad import Scratchpad, Summarize
from adjudge_runtime.kernel._sessions import (
    SessionSnapshot,
    session_from_record,
    session_to_record,
)
from adjudge_runtime.kernel._steps import Step, default_summarizer, estimate_tokens
from adjudge_runtime.kernel._worker import Worker, open_session

__all__ = ["AgentKernel"]

CallerOf = Callable[[SessionSnapshot], CallContext | Awaitable[CallContext]]

# How often ending a session is tried against a worker that goes on with it.
_TRIES = 10
_utc_now = partial(datetime.now, UTC)


class AgentKernel:
    """Runs sessions of one model with one set of tools.

    `guard` judges, runs and records every call of `tools`, for the session's user; `executor` runs
    them, as in `ToolGuard.with_tools`. `store` has the sessions and `chain` what they did: both
    durable, or neither. `caller` says on whose behalf a session's calls are made; without it that
    is the session's user, in `environment`, with `tenant` and `session` as `context.extra`.
    `tool_costs` is what a body costs each time that it starts, in millionths of a unit. `now` gives
    the time, aware. What cannot be a setting raises `TypeError` or `ValueError`.

    The guard's kill switch, read at each body, suspends the session with the call still to be made.
    """

    def __init__(
        self,
        model: Model,
        *,
        guard: ToolGuard,
        tools: ToolSet,
        store: SessionStore,
        chain: RunStore,
        budgets: Budgets = Budgets(),  # noqa: B008 - a frozen value
        executor: Executor | None = None,
        summarize: Summarize = default_summarizer,
        scratchpad_max_tokens: int = 4_000,
        keep_recent: int = 2,
        estimate: Callable[[str], int] = estimate_tokens,
        episodic: Episodes | None = None,
        tool_costs: Mapping[str, int] | None = None,
        caller: CallerOf | None = None,
        environment: str | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        check_settings(guard, tools, store, chain, tool_costs)
        self._model = model
        self._guard = guard
        self._tools = tools
        self._store = store
        self._chain = chain
        self._budgets = budgets
        self._executor = executor
        self._episodic = EpisodicMemory() if episodic is None else episodic
        self._tool_costs = dict(tool_costs or {})
        self._caller = caller
        self._environment = environment
        self._now = now
        self._new_pad = partial(
            Scratchpad, scratchpad_max_tokens, summarize, keep_recent=keep_recent, estimate=estimate
        )
        self._new_pad()  # raises for settings that are none

    @property
    def episodic(self) -> Episodes:
        """The memory into which sessions go when they end."""
        return self._episodic

    async def create_session(
        self, *, session_id: str, tenant: str, user_id: str, goal: str
    ) -> SessionSnapshot:
        """Make a session; raises `SessionExists` where there is one of that id."""
        check_run_id(session_id)
        check_texts(tenant=tenant, user_id=user_id, goal=goal)
        at = self._now()
        made = SessionSnapshot(session_id, tenant, user_id, goal, RunState.CREATED, at, at)
        return session_from_record(await self._store.create(session_to_record(made)))

    async def load(self, session_id: str) -> SessionSnapshot:
        """Give a session as it stands, with what the chain has beyond the last save."""
        return (await self._open(session_id)).working.snapshot()

    async def execution_chain(self, session_id: str) -> list[ExecutedStep]:
        """Give every step that the session ever took, whatever became of its scratchpad."""
        worker = await self._open(session_id)
        now = worker.now
        return executed_steps(session_id, now.tenant, now.user_id, worker.written)

    async def run(
        self,
        session_id: str,
        *,
        resume_answer: str | None = None,
        answers: Mapping[str, ApprovalDecision] | None = None,
        suspend_when: Callable[[], bool] | None = None,
    ) -> SessionResult:
        """Go on with a session until it ends or waits, in place of any worker that has it.

        `resume_answer` answers the question that it waits with, `answers` the approval, by the id
        of what is pending. `suspend_when` is asked before each model call whether to stop there.
        Raises `IllegalTransition` for a session that has ended, `ValueError` for one that waits
        and gets no answer (or the other way round), `AnswerError` for approvals that are none, and
        `ConcurrentModification` where another worker has taken the session over: then this one has
        begun nothing since. What the model raises is raised, and the session can go on from there.
        """
        worker = await self._open(session_id)
        if worker.has_ended:
            return await self._ended_before(worker)
        check_answer(worker.now, resume_answer)
        governed = await self._governed_run(worker, answers)
        if worker.now.pending is not None and worker.now.pending in governed.unanswered:
            return result_of(worker)
        await self._take_up(worker, resume_answer)
        await self._note("session.run_started", worker.now)
        try:
            breach = await self._go_on(worker, governed, suspend_when)
            await self._leave(worker)
        except GeneratorExit:
            raise  # nothing can be awaited any more
        except BaseException as error:
            # A body that has not begun by now, in a thread of its own, may not begin.
            worker.chain.halt.set(Stop("store_failed", "the run was interrupted"))
            with suppress(RecordError):
                await self._note("session.run_ended", worker.now, error=said(error))
            raise
        await self._note("session.run_ended", worker.now)
        result = result_of(worker, breach)
        if result.pending == "":
            # An agent inside of the call waits: what it waits for has its id in the ledger.
            waiting = await self._guard.waiting(governed.id)
            result = replace(result, pending=waiting[-1].id if waiting else "")
        return result

    async def suspend(self, session_id: str) -> SessionSnapshot:
        """Put a session aside, for any worker to take up later.

        A worker that has it stops at its next step; a call that it is in the middle of is uncertain
        from then on. Give `suspend_when` to `run` for a stop between two calls.
        """
        return await self._interrupt(session_id, "session.suspended", Event.SUSPEND)

    async def cancel(self, session_id: str) -> SessionSnapshot:
        """End a session for good; a worker that has it stops at its next step."""
        return await self._interrupt(session_id, "session.cancelled", Event.CANCEL)

    # Taking up and leaving

    async def _open(self, session_id: str) -> Worker:
        return await open_session(
            self._store, self._chain, session_id, make_pad=self._pad_of, now=self._now
        )

    def _pad_of(self, saved: SessionSnapshot) -> Scratchpad:
        return self._new_pad(
            steps=saved.steps, summary=saved.summary, compactions=saved.compactions
        )

    async def _ended_before(self, worker: Worker) -> SessionResult:
        if worker.is_saved:
            raise IllegalTransition(worker.now.state, Event.RESUME)
        # It ended, and the worker that ended it did not come to save that.
        await self._leave(worker)
        await self._note("session.run_ended", worker.now)
        return result_of(worker)

    async def _governed_run(
        self, worker: Worker, answers: Mapping[str, ApprovalDecision] | None
    ) -> GovernedRun:
        run_id = chain_id(worker.now.session_id)
        if worker.now.acting is not None and self._guard.pauses:
            # It may wait without the chain's saying so: the ledger is written first.
            return await self._guard.reopen(answers or {}, run=run_id)
        if answers:
            raise AnswerError(
                f"No call of the session {worker.now.session_id!r} waits for approval."
            )
        return GovernedRun(run_id)

    async def _take_up(self, worker: Worker, resume_answer: str | None) -> None:
        now = worker.now
        if now.state is RunState.CREATED:
            who = {"tenant": now.tenant, "user_id": now.user_id, "goal": now.goal}
            await worker.claim("session.started", who)
        elif now.state is RunState.WAITING_INPUT and resume_answer is not None:
            body = {"step": now.next_index, "answer": resume_answer}
            await worker.claim("input.received", body)
        else:
            await worker.claim("session.resumed", {})
            if resume_answer is not None:
                body = {"step": worker.now.next_index, "answer": resume_answer}
                await worker.chain.append("input.received", body)

    async def _leave(self, worker: Worker) -> None:
        now = worker.now
        if worker.has_ended:
            episode = Episode(
                episode_id=now.session_id,
                session_id=now.session_id,
                tenant=now.tenant,
                goal=now.goal,
                outcome=now.state.value,
                steps=now.model_calls,
                tags=now.tools,
                lesson=now.breach or "",
            )
            await asyncio.to_thread(self._episodic.record, episode)
        await worker.save()

    async def _interrupt(self, session_id: str, kind: str, event: Event) -> SessionSnapshot:
        for last in (False,) * (_TRIES - 1) + (True,):
            worker = await self._open(session_id)
            transition(worker.now.state, event)
            try:
                await worker.claim(kind, {})
                await self._leave(worker)
                await self._note("session.run_ended", worker.now)
            except ConcurrentModification:
                if last:
                    raise
            else:
                return worker.working.snapshot()
        raise AssertionError  # the last try returns or raises

    async def _note(self, kind: str, now: SessionSnapshot, **about: str) -> None:
        await self._guard.record_event(
            kind,
            {
                "session_id": now.session_id,
                "tenant": now.tenant,
                "user_id": now.user_id,
                "state": now.state.value,
                "model_calls": now.model_calls,
                "tokens_used": now.tokens_used,
                "cost_micros": now.cost_micros,
                **about,
            },
        )

    # The loop

    async def _go_on(
        self, worker: Worker, governed: GovernedRun, suspend_when: Callable[[], bool] | None
    ) -> BudgetBreach | None:
        calls = self._calls(worker, governed)
        began = self._now()
        while True:
            if worker.now.state is RunState.ACTING:
                await self._act(worker, calls)
                await worker.save()
            if worker.now.state is not RunState.PLANNING:
                return None
            if suspend_when is not None and suspend_when():
                await worker.chain.append("session.suspended", {})
                return None
            breach = self._budgets.breach(
                steps=worker.now.model_calls,
                tokens=worker.now.tokens_used,
                cost_micros=worker.now.cost_micros,
                seconds=(self._now() - began).total_seconds(),
            )
            if breach is not None:
                body = {"kind": breach.kind, "detail": breach.detail}
                await worker.chain.append("budget.breached", body)
                return breach
            await self._compact(worker)
            await self._decide(worker)

    async def _decide(self, worker: Worker) -> None:
        shown = f"[goal] {worker.now.goal}\n{worker.working.pad.render()}"
        started_at = self._now()
        answer = self._model(shown)
        move = await answer if inspect.isawaitable(answer) else answer
        if not isinstance(move, Decision):
            raise TypeError(f"The model answered with a {type(move).__name__}; give a Decision.")
        at = {"step": worker.now.next_index, "started_at": started_at.isoformat()}
        await worker.chain.append("step.decided", {**decision_to_body(move), **at})

    async def _act(self, worker: Worker, calls: GovernedCalls) -> None:
        step = worker.now.acting
        assert step is not None
        assert step.tool is not None
        arguments = {} if step.arguments is None else step.arguments
        call = ToolCall(step.tool, arguments, call_id=f"step-{step.index}")
        waits = calls.waiting(call)
        if waits is not None:
            await worker.chain.append("step.pending", {"step": step.index, "pending": waits})
            return
        if not worker.now.has_begun:
            calls.forget_unbegun(call)
        answer = await calls.run(step.index, 0, call, uncertain=worker.now.has_begun)
        if worker.chain.was_cancelled(answer):
            await worker.chain.append("session.suspended", {})
        elif answer.waits is not None:
            body = {"step": step.index, "pending": answer.waits}
            await worker.chain.append("step.pending", body)
        else:
            await self._observe(worker, step, answer)

    async def _observe(self, worker: Worker, step: Step, answer: Answer) -> None:
        used = answer.usage
        cost = self._tool_costs.get(step.tool or "", 0) if worker.now.has_begun else 0
        body = {
            "step": step.index,
            "ok": answer.ok,
            # The body has run: what it said is kept, also where it is no text that a store takes.
            "message": storable(answer.message),
            "verdict": answer.verdict,
            "code": storable(answer.code),
            "tokens": 0 if used is None else (used.input_tokens or 0) + (used.output_tokens or 0),
            "cost_micros": cost if used is None else cost + (used.cost_micros or 0),
        }
        await worker.chain.append("step.observed", body)

    async def _compact(self, worker: Worker) -> None:
        pad = worker.working.pad
        summary = await pad.compacted_summary()
        if pad.compaction_error is not None:
            failed = {"error": storable(pad.compaction_error)}
            await worker.chain.append("pad.compaction_failed", failed)
        elif summary is not None:
            count = len(pad.steps) - pad.keep_recent
            folded = {"summary": storable(summary), "count": count}
            await worker.chain.append("pad.compacted", folded)

    def _calls(self, worker: Worker, governed: GovernedRun) -> GovernedCalls:
        desk = Desk(
            guard=self._guard,
            # The chain is the journal of this loop.
            journal=cast(Journal, worker.chain),
            halt=worker.chain.halt,
            cancelled=_never,
            executor=self._executor,
            context=partial(self._context, worker),
            run=governed if self._guard.pauses else None,
        )
        return GovernedCalls(desk, self._tools, agent=None)

    async def _context(self, worker: Worker) -> CallContext:
        now = worker.now
        if self._caller is None:
            extra = {"tenant": now.tenant, "session": now.session_id}
            user = Principal("user", now.user_id)
            return CallContext(user, self._environment, extra=extra)
        given = self._caller(now)
        return await given if inspect.isawaitable(given) else given


def _never() -> None:
    """A kernel's session is ended by its chain."""
