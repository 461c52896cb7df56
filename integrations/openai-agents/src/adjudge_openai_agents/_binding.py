"""What one `govern` fixes for all that it reaches: the guard, and how it was told to govern."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary, ref

from agents import AgentBase, FunctionTool, RunContextWrapper
from agents.function_schema import FuncSchema
from agents.tool_context import ToolContext

from adjudge import CallContext, ToolGuard, ToolMetadata
from adjudge_openai_agents._arguments import parameters_of

__all__ = ["Binding", "ContextSource", "Hosted", "Invoker"]

Hosted: TypeAlias = Literal["refuse", "strip", "allow"]
Invoker: TypeAlias = Callable[[ToolContext[Any], str], Awaitable[Any]]
ContextSource: TypeAlias = Callable[[RunContextWrapper[Any]], CallContext | Awaitable[CallContext]]


@dataclass(frozen=True, slots=True)
class Binding:
    """The guard, and how it was told to govern; a tool of a `ToolSet` has metadata and shadow."""

    guard: ToolGuard
    recursive: bool = True
    hosted: Hosted = "refuse"
    ungoverned: frozenset[str] = frozenset()
    context: ContextSource | None = None
    agent: str | None = None
    """The name of the agent whose tools are governed, where known: it tells equal calls apart."""
    holder: ref[AgentBase] | None = None
    """That agent itself."""
    declared: ToolMetadata | None = None
    shadow: Callable[..., Any] | None = None
    owned: bool = False
    """Whether the function takes its values from the judgment (`_owned`)."""
    parameters: WeakKeyDictionary[Invoker, FuncSchema] = field(default_factory=WeakKeyDictionary)
    """The parameters of the decorated tools seen so far, by invoker: they cost milliseconds."""

    def parameters_of(self, tool: FunctionTool) -> FuncSchema | None:
        """Read the parameters of the function behind a decorated tool; None for other tools."""
        if not hasattr(tool, "__wrapped__"):
            return None
        if tool.on_invoke_tool not in self.parameters:
            self.parameters[tool.on_invoke_tool] = parameters_of(tool)
        return self.parameters[tool.on_invoke_tool]
