"""A graph that waits for people: what it waits for, and its going on with their answers.

As for LangChain's agents, with the guard found in whichever tool node of the graph has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot

import adjudge_langchain
from adjudge import ApprovalDecision, GovernError, PendingApproval, ToolGuard
from adjudge_langchain.integration import binding_of
from adjudge_langgraph._walk import tools_of

__all__ = ["apending", "aresume", "pending", "resume"]


def pending(
    graph: Pregel[Any, Any, Any, Any], config: RunnableConfig, *, guard: ToolGuard | None = None
) -> list[PendingApproval]:
    """Give the calls for which the run of a thread waits because the policy has a person asked.

    `config` names the thread, as for `graph.invoke`. `guard` is needed where only tools are
    governed, which the graph's nodes make when they run. `decision.effective_args` are the
    arguments that would run. What else the graph waits for is in its own interrupts alone. Raises
    `LedgerError` where the ledger cannot be read.
    """
    agent: Any = graph
    return adjudge_langchain.pending(agent, config, guard=_guard(graph, guard))


async def apending(
    graph: Pregel[Any, Any, Any, Any], config: RunnableConfig, *, guard: ToolGuard | None = None
) -> list[PendingApproval]:
    """Do what `pending` does, for a checkpointer that is used from coroutines."""
    agent: Any = graph
    return await adjudge_langchain.apending(agent, config, guard=_guard(graph, guard))


def resume(
    graph: Pregel[Any, Any, Any, Any],
    config: RunnableConfig,
    answers: Mapping[str, ApprovalDecision],
    *,
    guard: ToolGuard | None = None,
    **options: Any,
) -> Any:
    """Go on with the run of a thread, in any process that sees the guard's ledger.

    `graph` is the governed graph, built anew, with the checkpointer. `answers` maps the ids of what
    was pending to decisions; calls without one go on waiting. `options` are those of
    `graph.invoke`, whose result is given. Raises `AnswerError` for what is no answer to a call of
    this run, and then nothing runs.
    """
    agent: Any = _Distinct(graph)
    given = _guard(graph, guard)
    return adjudge_langchain.resume(agent, config, answers, guard=given, **options)


async def aresume(
    graph: Pregel[Any, Any, Any, Any],
    config: RunnableConfig,
    answers: Mapping[str, ApprovalDecision],
    *,
    guard: ToolGuard | None = None,
    **options: Any,
) -> Any:
    """Do what `resume` does, through `graph.ainvoke`."""
    agent: Any = _Distinct(graph)
    given = _guard(graph, guard)
    return await adjudge_langchain.aresume(agent, config, answers, guard=given, **options)


class _Distinct:
    """A graph whose state names each interrupt once.

    LangGraph names what waits in a task of a subgraph's node twice, for the one and for the other.
    """

    def __init__(self, graph: Pregel[Any, Any, Any, Any]) -> None:
        self.invoke, self.ainvoke = graph.invoke, graph.ainvoke
        self._graph = graph

    def get_state(self, config: RunnableConfig) -> Any:
        """Read the state."""
        return _distinct(self._graph.get_state(config))

    async def aget_state(self, config: RunnableConfig) -> Any:
        """Do what `get_state` does, in a coroutine."""
        return _distinct(await self._graph.aget_state(config))


def _distinct(state: StateSnapshot) -> Any:
    interrupts = {each.id: each for each in state.interrupts}
    return SimpleNamespace(values=state.values, interrupts=tuple(interrupts.values()))


def _guard(graph: Pregel[Any, Any, Any, Any], given: ToolGuard | None) -> ToolGuard:
    for tool in tools_of(graph):
        held = binding_of(tool)
        if held is None:
            continue
        if given is not None and given is not held.guard:
            raise GovernError("The graph is under another guard; it has only one.")
        return held.guard
    if given is None:
        raise GovernError(
            "The graph is not governed; give the one that paused, built anew and governed, or "
            "guard= where only tools are governed that its nodes make when they run."
        )
    return given
