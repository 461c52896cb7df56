"""Agents: governed in place, with every agent that the object graph names.

An agent's class is swapped for a subclass that governs what `get_all_tools` answers. The SDK asks
it before each turn, so tools added later, tools of MCP servers and agents as tools are reached, and
a clone stays governed. What is found only then and cannot be governed ends the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from agents import Agent, Handoff, RunContextWrapper, Tool

from adjudge import GovernError
from adjudge_openai_agents._invoker import Binding
from adjudge_openai_agents._tools import govern_tools

__all__ = ["agents_behind", "govern_agents"]

_BINDING = "__adjudge_binding__"


def govern_agents(roots: Iterable[Agent[Any]], binding: Binding) -> None:
    """Govern agents, and those that they reach, in place; where one cannot be, none is changed."""
    agents: dict[int, Agent[Any]] = {}
    waiting = list(roots)
    while waiting:
        agent = waiting.pop()
        if id(agent) not in agents:
            agents[id(agent)] = agent
            _check(agent, binding)
            waiting.extend(_neighbours(agent) if binding.recursive else ())
    for agent in agents.values():
        if not hasattr(type(agent), _BINDING):
            agent.__class__ = _governed_class(type(agent), binding)
        for handoff in agent.handoffs if binding.recursive else ():
            if isinstance(handoff, Handoff) and not isinstance(
                handoff.on_invoke_handoff, _GovernedHandoff
            ):
                handoff.on_invoke_handoff = _GovernedHandoff(handoff.on_invoke_handoff, binding)


def agents_behind(tools: Iterable[Tool]) -> Iterator[Agent[Any]]:
    """Give the agents that `as_tool` tools run."""
    for tool in tools:
        # The SDK has no public way from such a tool to its agent; a test fails if this one moves.
        agent = getattr(tool, "_agent_instance", None)
        if isinstance(agent, Agent):
            yield agent


def _neighbours(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    for item in agent.handoffs:
        # Nor has it one from a handoff to its agent; a test fails if this one moves.
        reference = getattr(item, "_agent_ref", None)
        target = item if reference is None else reference()
        if isinstance(target, Agent):
            yield target
    yield from agents_behind(agent.tools)


def _check(agent: Agent[Any], binding: Binding) -> None:
    """Raise `GovernError` for what cannot be governed at this agent."""
    if "get_all_tools" in vars(agent):
        raise GovernError(
            f"The agent {agent.name!r} has a get_all_tools of its own, which would hide the "
            "governed one; override it in a subclass of Agent."
        )
    if not hasattr(type(agent), _BINDING):
        govern_tools(agent.tools, binding)
    handoffs = [item for item in agent.handoffs if isinstance(item, Handoff)]
    bound = [getattr(type(agent), _BINDING, binding)]
    if binding.recursive:
        bound += [getattr(item.on_invoke_handoff, "binding", binding) for item in handoffs]
    if any(each.guard is not binding.guard for each in bound):
        raise GovernError(f"The agent {agent.name!r} is under another guard; it has only one.")
    for item in handoffs:
        if item.input_json_schema.get("properties"):
            raise GovernError(
                f"The handoff {item.tool_name!r} takes arguments for a callback of its own, which "
                "cannot be governed yet; do what the callback does in a function tool."
            )


def _governed_class(base: type[Agent[Any]], binding: Binding) -> type[Agent[Any]]:
    class Governed(base):  # type: ignore[misc, valid-type]
        async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
            """Give the agent's tools, governed, and govern the agents that were added since."""
            govern_agents([self], binding)
            tools = await super().get_all_tools(run_context)
            if binding.recursive:
                govern_agents(agents_behind(tools), binding)
            return govern_tools(tools, binding)

        async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
            """Give the instructions, and govern the agents that making them has added."""
            instructions = await super().get_system_prompt(run_context)
            govern_agents([self], binding)
            return instructions  # type: ignore[no-any-return]

        async def get_prompt(self, run_context: RunContextWrapper[Any]) -> Any:
            """Give the stored prompt, and govern the agents that making it has added."""
            prompt = await super().get_prompt(run_context)
            govern_agents([self], binding)
            return prompt

        async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
            """Give the tools of the agent's MCP servers, governed."""
            return govern_tools(await super().get_mcp_tools(run_context), binding)

    setattr(Governed, _BINDING, binding)
    Governed.__name__, Governed.__qualname__ = base.__name__, base.__qualname__
    Governed.__module__ = base.__module__
    return Governed


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
            raise GovernError(f"A handoff led to a {type(agent).__name__}; it must be an Agent.")
        govern_agents([agent], self.binding)
        return agent
