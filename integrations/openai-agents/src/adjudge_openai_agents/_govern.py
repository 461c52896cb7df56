"""`govern`: the one verb."""

from __future__ import annotations

from typing import Any, TypeVar, cast, get_args

from agents import Agent, FunctionTool

from adjudge import GovernError, ToolGuard
from adjudge_openai_agents._agents import agent_behind, govern_agents
from adjudge_openai_agents._invoker import Binding, ContextSource, Hosted
from adjudge_openai_agents._tools import govern_tools

__all__ = ["govern"]

T = TypeVar("T")


def govern(
    target: T,
    guard: ToolGuard,
    *,
    recursive: bool = True,
    hosted: Hosted = "refuse",
    context: ContextSource | None = None,
) -> T:
    """Put a function tool, a list of tools or an agent under a guard.

    A tool or a list comes back as governed copies. An agent is governed in place and returned, with
    the agents that it hands off to or uses as tools unless `recursive` is False, and with tools
    that it gets later. `hosted` says what becomes of tools that run at the provider. `context` gets
    the SDK's run context of each call and answers who is calling; None or an exception denies. The
    same guard again changes nothing. Raises `GovernError` for another guard, for a guard that
    pauses, and for what cannot be governed.
    """
    if not isinstance(guard, ToolGuard):
        raise GovernError(f"guard is a {type(guard).__name__}; give a ToolGuard.")
    if hosted not in get_args(Hosted):
        raise GovernError(f"hosted is {hosted!r}; say 'refuse', 'strip' or 'allow'.")
    if guard.pauses:
        raise GovernError(
            "The guard's on_approval is pause_approval, and pausing a run of this SDK is not supported yet; "
            "give it a handler, which is asked while the run waits."
        )
    binding = Binding(guard, recursive, hosted, context)
    if isinstance(target, Agent):
        govern_agents([target], binding)
        return target
    if isinstance(target, list):
        return cast(T, _govern_tools(target, binding))
    if isinstance(target, FunctionTool):
        return cast(T, _govern_tools([target], binding)[0])
    raise GovernError(
        f"A {type(target).__name__} cannot be governed; give a FunctionTool, a list of tools or an Agent."
    )


def _govern_tools(tools: list[Any], binding: Binding) -> list[Any]:
    governed = govern_tools(tools, binding)
    if binding.recursive:
        inner = [agent_behind(tool) for tool in tools]
        govern_agents([agent for agent in inner if agent is not None], binding)
    return governed
