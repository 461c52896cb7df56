"""`govern`, the one verb: tools and lists of them as copies, agents in place."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph

from adjudge import GovernError, ToolGuard
from adjudge_langchain._agents import govern_agent
from adjudge_langchain._binding import Binding, ContextSource, Hosted
from adjudge_langchain._tools import governed_tool

__all__ = ["govern"]

T = TypeVar("T")


def govern(
    target: T,
    guard: ToolGuard,
    *,
    hosted: Hosted = "refuse",
    ungoverned: Collection[str] = (),
    context: ContextSource | None = None,
) -> T:
    """Put a tool, a list of tools or an agent of `create_agent` under a guard.

    Tools come back as governed copies, the originals untouched; an agent is governed in place and
    returned. `hosted` says what becomes of tools that run at the provider; `ungoverned` names those
    of them that may run. `context` gets the `ToolRun` of each call and answers who is calling; None
    or an exception denies. The same guard again changes nothing. Raises `GovernError` for another
    guard, and for what cannot be governed.
    """
    binding = Binding.of(guard, hosted, ungoverned, context)
    governed: T = _governed(target, binding)
    return governed


def _governed(target: Any, binding: Binding) -> Any:
    if isinstance(target, BaseTool):
        return governed_tool(target, binding)
    if isinstance(target, list | tuple):
        return type(target)(_governed(each, binding) for each in target)
    if isinstance(target, CompiledStateGraph):
        govern_agent(target, binding)
        return target
    raise GovernError(
        f"A {type(target).__name__} cannot be governed; give a tool (@tool makes one of a "
        "function), a list of tools, or an agent of create_agent."
    )
