"""Agents: governed in place, with every agent that the object graph names.

An agent's class is swapped for a subclass that governs what `get_all_tools` answers. The SDK asks
it before each turn, so tools added later, tools of MCP servers and agents as tools are reached, and
a clone stays governed; so does a realtime session. What is found only then and cannot be governed
ends the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agents import AgentBase, Handoff, RunContextWrapper, Tool

from adjudge import GovernError
from adjudge_openai_agents._binding import Binding
from adjudge_openai_agents._handoffs import check_handoff, govern_handoffs, target_of
from adjudge_openai_agents._kept import KeptTools
from adjudge_openai_agents._tools import govern_tools

__all__ = ["agents_behind", "binding_of", "govern_again", "govern_agents", "govern_handoff"]

_BINDING = "__adjudge_binding__"


def govern_agents(roots: Iterable[AgentBase], binding: Binding) -> None:
    """Govern agents, and those that they reach, in place; where one cannot be, none is changed."""
    agents: dict[int, AgentBase] = {}
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
        _govern_handoffs(_handoffs(agent), binding)


def govern_handoff(item: Handoff[Any, Any], binding: Binding) -> None:
    """Govern one handoff, and the agents that it leads to, in place."""
    check_handoff(item, binding)
    target = target_of(item)
    if binding.recursive and target is not None:
        govern_agents([target], binding)
    _govern_handoffs([item], binding)


def binding_of(agent: AgentBase) -> Binding | None:
    """Give how an agent is governed, None where it is not."""
    return getattr(type(agent), _BINDING, None)


def govern_again(agent: AgentBase) -> None:
    """Govern what was added to a governed agent since."""
    binding = binding_of(agent)
    if binding is not None:
        govern_agents([agent], binding)


def agents_behind(tools: Iterable[Tool]) -> Iterator[AgentBase]:
    """Give the agents that `as_tool` tools run."""
    for tool in tools:
        # The SDK has no public way from such a tool to its agent; a test fails if this one moves.
        agent = getattr(tool, "_agent_instance", None)
        if isinstance(agent, AgentBase):
            yield agent


def _govern_handoffs(items: list[Any], binding: Binding) -> None:
    govern_handoffs(items, binding, lambda agent: govern_agents([agent], binding))


def _handoffs(agent: AgentBase) -> list[Any]:
    held: list[Any] = getattr(agent, "handoffs", [])
    return held


def _neighbours(agent: AgentBase) -> Iterator[AgentBase]:
    for target in map(target_of, _handoffs(agent)):
        if target is not None:
            yield target
    yield from agents_behind(agent.tools)


def _check(agent: AgentBase, binding: Binding) -> None:
    """Raise `GovernError` for what cannot be governed at this agent."""
    if "get_all_tools" in vars(agent):
        raise GovernError(
            f"The agent {agent.name!r} has a get_all_tools of its own, which would hide the "
            "governed one; override it in a subclass of Agent."
        )
    if getattr(type(agent), _BINDING, binding).guard is not binding.guard:
        raise GovernError(f"The agent {agent.name!r} is under another guard; it has only one.")
    if not hasattr(type(agent), _BINDING):
        govern_tools(agent.tools, binding)
    handoffs = _handoffs(agent)
    if not isinstance(handoffs, list):
        raise GovernError(
            f"The agent {agent.name!r} has a {type(handoffs).__name__} of handoffs; give a list."
        )
    for item in handoffs:
        if isinstance(item, Handoff):
            check_handoff(item, binding)


def _governed_class(base: type[AgentBase], binding: Binding) -> type[AgentBase]:
    class Governed(base):  # type: ignore[misc, valid-type]
        async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
            """Give the agent's tools, governed, and govern the agents that were added since."""
            govern_agents([self], binding)
            tools = await super().get_all_tools(run_context)
            if binding.recursive:
                govern_agents(agents_behind(tools), binding)
            kept = KeptTools.of(self)
            return kept.governed(tools, kept.bound(binding, self), listed=self.tools)

        async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
            """Give the instructions, and govern the agents that making them has added."""
            instructions = await super().get_system_prompt(run_context)
            govern_agents([self], binding)
            return instructions  # type: ignore[no-any-return]

        async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
            """Give the tools of the agent's MCP servers, governed."""
            tools = await super().get_mcp_tools(run_context)
            return govern_tools(tools, KeptTools.of(self).bound(binding, self))

        if hasattr(base, "get_prompt"):  # a realtime agent has none

            async def get_prompt(self, run_context: RunContextWrapper[Any]) -> Any:
                """Give the stored prompt, and govern the agents that making it has added."""
                prompt = await super().get_prompt(run_context)
                govern_agents([self], binding)
                return prompt

    setattr(Governed, _BINDING, binding)
    Governed.__name__, Governed.__qualname__ = base.__name__, base.__qualname__
    Governed.__module__ = base.__module__
    return Governed
