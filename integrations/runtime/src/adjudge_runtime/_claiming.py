"""Puts the journal's claim immediately before the body of each tool, and of nothing else.

Where an executor runs the bodies the claim comes before the executor, else before the function.
The body of an agent's tool claims nothing: what it does is in a journal of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from adjudge import ActionRequest, ActionResult, Executor, ToolDef, ToolSet, inline_executor
from adjudge.integration import is_async
from adjudge_runtime._scope import SCOPE, CallScope

__all__ = [
    "AgentBody",
    "claiming_executor",
    "claiming_tools",
    "holds_agents",
    "is_agent",
    "unrouted",
]


class AgentBody:
    """The body of a tool inside of which an agent runs; it always runs in this process."""


def is_agent(tool: ToolDef) -> bool:
    """Whether an agent runs inside of a tool's body."""
    body: object = tool.fn
    return isinstance(body, AgentBody)


def holds_agents(tools: ToolSet) -> bool:
    """Whether any of the tools is an agent."""
    return any(is_agent(tool) for tool in tools)


def claiming_tools(tools: ToolSet) -> ToolSet:
    """Give the same tools, with the claim before each body."""
    return ToolSet([_claiming(tool) for tool in tools])


def claiming_executor(executor: Executor) -> Executor:
    """Give the same executor, with the claim before it."""
    own = inline_executor()

    async def execute(request: ActionRequest, tool: ToolDef) -> ActionResult:
        if is_agent(tool):
            # An agent runs in this process, whatever the executor provides for others.
            return await own(request, tool) if tool.metadata.isolation is None else unrouted(tool)
        await _scope().claim()
        return await executor(request, tool)

    return execute


def unrouted(tool: ToolDef) -> ActionResult:
    """Refuse a tool whose isolation nothing here provides."""
    error = (
        f"the tool {tool.name} declares the isolation {tool.metadata.isolation!r}, "
        "and nothing here provides it"
    )
    return ActionResult(False, error=error, code="isolation_unrouted")


def _claiming(tool: ToolDef) -> ToolDef:
    if is_agent(tool):
        return tool
    return replace(tool, fn=_claimed(tool.fn))


def _claimed(body: Callable[..., Any]) -> Callable[..., Any]:
    # `wraps` leaves a trace to the body, by which its arguments are read.
    if is_async(body):

        @functools.wraps(body)
        async def claimed(**args: Any) -> Any:
            await _scope().claim()
            return await body(**args)

        return claimed

    @functools.wraps(body)
    def claimed_in_thread(**args: Any) -> Any:
        _scope().claim_from_thread()
        return body(**args)

    return claimed_in_thread


def _scope() -> CallScope:
    scope = SCOPE.get()
    if scope is None:
        raise RuntimeError("The tools of a run were called outside of it.")
    return scope
