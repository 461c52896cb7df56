"""Agents: governed in place, with every agent that the object graph names.

An agent's class is swapped for a subclass that governs what `get_all_tools` answers, which the SDK
asks before each turn: tools added later, tools of MCP servers and agents as tools are reached, and
a clone stays governed. What is found only then and cannot be governed ends the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from agents import Agent, FunctionTool, Handoff, RunContextWrapper, Tool

from adjudge import GovernError
from adjudge_openai_agents._invoker import Binding
from adjudge_openai_agents._tools import check_tool, govern_tools

__all__ = ["agent_behind", "govern_agents"]

_BINDING = "__adjudge_binding__"


def govern_agents(roots: Iterable[Agent[Any]], binding: Binding) -> None:
    """Govern agents, and those that they can reach, in place; where one cannot be, none is changed."""
    agents, handoffs = _reachable(roots, binding)
    for agent in agents:
        bound: Binding | None = getattr(type(agent), _BINDING, None)
        if bound is not None and bound.guard is not binding.guard:
            raise GovernError(
                f"The agent {agent.name!r} is governed by another guard; an agent has one guard."
            )
        for tool in agent.tools:
            check_tool(tool, binding)
    for handoff in handoffs:
        _check_handoff(handoff, binding)
    for agent in agents:
        if getattr(type(agent), _BINDING, None) is None:
            agent.__class__ = _governed_class(type(agent), binding)
    for handoff in handoffs:
        if not isinstance(handoff.on_invoke_handoff, _GovernedHandoff):
            handoff.on_invoke_handoff = _GovernedHandoff(handoff.on_invoke_handoff, binding)


def agent_behind(tool: Tool) -> Agent[Any] | None:
    """Give the agent that an `as_tool` tool runs."""
    # The SDK has no public way from such a tool to its agent; a test fails when this one moves.
    agent = getattr(tool, "_agent_instance", None)
    return agent if isinstance(agent, Agent) else None


def _reachable(
    roots: Iterable[Agent[Any]], binding: Binding
) -> tuple[list[Agent[Any]], list[Handoff[Any, Any]]]:
    agents: dict[int, Agent[Any]] = {}
    handoffs: dict[int, Handoff[Any, Any]] = {}
    waiting = list(roots)
    while waiting:
        agent = waiting.pop()
        if id(agent) in agents:
            continue
        agents[id(agent)] = agent
        if not binding.recursive:
            continue
        handoffs.update((id(item), item) for item in agent.handoffs if isinstance(item, Handoff))
        waiting.extend(_neighbours(agent))
    return list(agents.values()), list(handoffs.values())


def _neighbours(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    for item in agent.handoffs:
        if isinstance(item, Agent):
            yield item
            continue
        # No public way leads from a handoff to its agent before it happens; a test fails when this one moves.
        reference = getattr(item, "_agent_ref", None)
        target = None if reference is None else reference()
        if isinstance(target, Agent):
            yield target
    for tool in agent.tools:
        inner = agent_behind(tool)
        if inner is not None:
            yield inner


def _governed_class(base: type[Agent[Any]], binding: Binding) -> type[Agent[Any]]:
    class Governed(base):  # type: ignore[misc, valid-type]
        async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
            """Give the agent's tools, governed, and govern the agents that were added since."""
            govern_agents([self], binding)
            return govern_tools(await super().get_all_tools(run_context), binding)

    setattr(Governed, _BINDING, binding)
    Governed.__name__ = base.__name__
    Governed.__qualname__ = base.__qualname__
    Governed.__module__ = base.__module__
    return Governed


def _check_handoff(handoff: Handoff[Any, Any], binding: Binding) -> None:
    invoke = handoff.on_invoke_handoff
    if isinstance(invoke, _GovernedHandoff):
        if invoke.binding.guard is not binding.guard:
            raise GovernError(f"The handoff {handoff.tool_name!r} is governed by another guard.")
    elif handoff.input_json_schema.get("properties"):
        raise GovernError(
            f"The handoff {handoff.tool_name!r} takes arguments for a callback of its own, which cannot be "
            "governed yet; hand off without input_type, and do what the callback does in a function tool."
        )


class _GovernedHandoff:
    """A handoff whose agent, whichever it turns out to be, is governed before it takes over."""

    def __init__(
        self, inner: Callable[[RunContextWrapper[Any], str], Awaitable[Any]], binding: Binding
    ) -> None:
        self.binding = binding
        self._inner = inner

    async def __call__(self, context: RunContextWrapper[Any], arguments: str) -> Any:
        agent = await self._inner(context, arguments)
        if not isinstance(agent, Agent):
            raise GovernError(
                f"A handoff led to a {type(agent).__name__}, which cannot be governed."
            )
        govern_agents([agent], self.binding)
        return agent
