"""A run that waits for people: what it waits for, and its going on with their answers.

LangGraph's own interrupt and checkpointer carry the run. The answers are kept in the guard's
ledger, and the door of the body takes them, each once: so whatever the answer, the graph is told to
go on, and a refusal is said at the door in the same words as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt

from adjudge import AnswerError, ApprovalDecision, GovernError, PendingApproval, ToolGuard
from adjudge.integration import GovernedRun
from adjudge_langchain._agents import binding_over
from adjudge_langchain._runs import pending_mark, resumption, run_id_of

__all__ = ["apending", "aresume", "pending", "resume"]

Answers: TypeAlias = Mapping[str, ApprovalDecision | None]
Graph: TypeAlias = "CompiledStateGraph[Any, Any, Any, Any]"


def pending(
    agent: Graph, config: RunnableConfig, *, guard: ToolGuard | None = None
) -> list[PendingApproval]:
    """Give the calls for which the run of a thread waits because the policy has a person asked.

    `config` names the thread, as for `agent.invoke`. `guard` is needed where the agent is governed
    by an `AdjudgeMiddleware` alone. `decision.effective_args` are the arguments that would run.
    What else the graph waits for is in its own interrupts alone. Raises `LedgerError` where the
    ledger cannot be read.
    """
    asked = _asked(agent.get_state(config).interrupts)
    found = _guard(agent, guard).waiting_sync(run_id_of(_thread(config)))
    return [each for each in found if each.id in asked]


async def apending(
    agent: Graph, config: RunnableConfig, *, guard: ToolGuard | None = None
) -> list[PendingApproval]:
    """Do what `pending` does, for a checkpointer that is used from coroutines."""
    state = await agent.aget_state(config)
    found = await _guard(agent, guard).waiting(run_id_of(_thread(config)))
    asked = _asked(state.interrupts)
    return [each for each in found if each.id in asked]


def resume(
    agent: Graph,
    config: RunnableConfig,
    answers: Answers,
    *,
    guard: ToolGuard | None = None,
    **options: Any,
) -> Any:
    """Go on with the run of a thread, in any process that sees the guard's ledger.

    `agent` is the governed agent, built anew, with the checkpointer. `answers` maps the ids of what
    was pending to decisions; calls without one go on if they were answered elsewhere, and else
    wait on. `options` are those of `agent.invoke`, whose result is given. Raises `AnswerError` for
    what is no answer to a call of this run, and then nothing runs.
    """
    run = _guard(agent, guard).reopen_sync(answers, run=run_id_of(_thread(config)))
    state = agent.get_state(config)
    command = _going_on(state.interrupts, run)
    if command is None:
        return _as_it_waits(state)
    return agent.invoke(command, config, **options)


async def aresume(
    agent: Graph,
    config: RunnableConfig,
    answers: Answers,
    *,
    guard: ToolGuard | None = None,
    **options: Any,
) -> Any:
    """Do what `resume` does, through `agent.ainvoke`."""
    run = await _guard(agent, guard).reopen(answers, run=run_id_of(_thread(config)))
    state = await agent.aget_state(config)
    command = _going_on(state.interrupts, run)
    if command is None:
        return _as_it_waits(state)
    return await agent.ainvoke(command, config, **options)


def _going_on(interrupts: Sequence[Interrupt], run: GovernedRun) -> Command[Any] | None:
    """Tell the graph to go on with all that no longer waits: the door decides."""
    values = {
        interrupt_id: resumption(pending_id)
        for pending_id, interrupt_id in _asked(interrupts).items()
        if pending_id not in run.unanswered
    }
    if len(values) == len(interrupts) == 1:
        # What somebody has resumed it with before, without naming the interrupt, would stay behind
        # and be given to the next one; only another such value takes its place.
        return Command(resume=next(iter(values.values())))
    return Command(resume=values) if values else None


def _asked(interrupts: Iterable[Interrupt]) -> dict[str, str]:
    """Map the ids of what is pending to those of the interrupts that ask about it."""
    marks = ((pending_mark(each.value), each.id) for each in interrupts)
    return {pending_id: interrupt_id for pending_id, interrupt_id in marks if pending_id}


def _as_it_waits(state: Any) -> Any:
    return {**state.values, "__interrupt__": list(state.interrupts)}


def _thread(config: RunnableConfig) -> object:
    thread = (config.get("configurable") or {}).get("thread_id")
    if thread is None:
        raise AnswerError(
            "The config names no thread; give {'configurable': {'thread_id': ...}}, as for invoke."
        )
    return thread


def _guard(agent: Graph, given: ToolGuard | None) -> ToolGuard:
    binding = binding_over(agent)
    if binding is None:
        if given is None:
            raise GovernError(
                "The agent is not governed by `govern`; give the one that paused, built anew, or "
                "guard= where an AdjudgeMiddleware governs it."
            )
        return given
    if given is not None and given is not binding.guard:
        raise GovernError("The agent is under another guard; it has only one.")
    return binding.guard
