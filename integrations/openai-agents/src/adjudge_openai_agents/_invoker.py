"""The place where a function tool's call is governed: its `on_invoke_tool`, on a copy of the tool.

`Binding` is what one `govern` fixes for all that it reaches. `GovernedInvoker` stands where the
SDK, and anybody who holds the governed tool, invokes the body; it hands each call to the guard and
the guard's answer to the SDK.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agents import FunctionTool, RunContextWrapper, ToolOriginType
from agents.tool import (
    get_function_tool_origin,
    set_function_tool_failure_error_function,
    with_function_tool_failure_error_handler,
)
from agents.tool_context import ToolContext
from agents.tracing import SpanError, get_current_span

from adjudge import CallContext, GovernError, ToolGuard
from adjudge.integration import Effective, ProposedCall
from adjudge_openai_agents._arguments import ValidatedArguments, parameters_of

__all__ = [
    "Binding",
    "ContextSource",
    "Declared",
    "GovernedInvoker",
    "Hosted",
    "govern_function_tool",
]

Hosted: TypeAlias = Literal["refuse", "strip", "allow"]
Invoker: TypeAlias = Callable[[ToolContext[Any], str], Awaitable[Any]]
ContextSource: TypeAlias = Callable[[RunContextWrapper[Any]], CallContext | Awaitable[CallContext]]


@dataclass(frozen=True, slots=True)
class Binding:
    """The guard, and how `govern` was told to use it."""

    guard: ToolGuard
    recursive: bool
    hosted: Hosted
    context: ContextSource | None


@dataclass(frozen=True, slots=True)
class Declared:
    """What a `ToolSet` knows of a tool beyond what the SDK does."""

    metadata: Any = None
    shadow: Callable[..., Any] | None = None


class GovernedInvoker:
    """The governed way to one tool's body."""

    def __init__(self, tool: FunctionTool, binding: Binding, declared: Declared) -> None:
        self.binding = binding
        self._tool = tool.name
        self._namespace = _namespace_of(tool)
        self._schema = tool.params_json_schema
        self._declared = declared
        self._parameters = parameters_of(tool)
        self._rejects_invalid_text = self._parameters is not None or _is_sdk_made(tool)
        self._body, self._answer = _around_failures(tool, self._judge)
        # The SDK reads from the signature which context object the invoker gets: the inner one's.
        self.__signature__ = inspect.signature(tool.on_invoke_tool)

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        """Judge one call, run the body if it may, and answer as the tool does where it fails."""
        return await self._answer(context, arguments)

    async def _judge(self, context: ToolContext[Any], arguments: str) -> Any:
        validated = None if self._parameters is None else ValidatedArguments(self._parameters)

        async def execute(effective: Effective) -> Any:
            if not effective.changed:
                text = arguments
            elif validated is None:
                text = effective.text
            else:
                text = validated.text(effective.args)
            return await self._body(context, text)

        source = self.binding.context
        call = await self.binding.guard.govern_call(
            ProposedCall(
                self._tool,
                arguments or "{}",  # the SDK's invokers read an empty text as no arguments
                namespace=self._namespace,
                call_id=getattr(context, "tool_call_id", None),
                schema=self._schema,
                declared=self._declared.metadata,
                shadow=self._declared.shadow,
                validate=None if validated is None else validated.validate,
                rejects_invalid_text=self._rejects_invalid_text,
            ),
            execute,
            context=None if source is None else functools.partial(source, context),
        )
        return call.result.value if call.text is None else call.text

    def __copy__(self) -> GovernedInvoker:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> GovernedInvoker:
        """Copies of a governed tool are governed by the same guard."""
        return self


def govern_function_tool(
    tool: FunctionTool, binding: Binding, declared: Declared | None = None
) -> FunctionTool:
    """Give a governed copy of a function tool; one that this guard governs already comes back itself."""
    invoker = tool.on_invoke_tool
    if isinstance(invoker, GovernedInvoker):
        if invoker.binding.guard is binding.guard:
            return tool
        raise GovernError(
            f"The tool {tool.name!r} is governed by another guard; govern the original tool instead."
        )
    if tool.needs_approval is not False:
        raise GovernError(
            f"The tool {tool.name!r} sets needs_approval, and pausing a run is not supported under a "
            "guard yet; say approve_required in the policy and give the guard an on_approval handler."
        )
    governed = copy.copy(tool)
    governed.on_invoke_tool = GovernedInvoker(governed, binding, declared or Declared())
    return governed


def _namespace_of(tool: FunctionTool) -> str | None:
    """Name the MCP server, or else the SDK namespace, that a tool comes from."""
    origin = get_function_tool_origin(tool)
    if origin is not None and origin.mcp_server_name is not None:
        return origin.mcp_server_name
    namespace, dot, _ = tool.qualified_name.rpartition(f".{tool.name}")
    return namespace if dot else None


def _is_sdk_made(tool: FunctionTool) -> bool:
    """Whether the SDK itself, and no handwritten invoker, reads the argument text."""
    origin = get_function_tool_origin(tool)
    return (
        origin is not None
        and origin.type in (ToolOriginType.MCP, ToolOriginType.AGENT_AS_TOOL)
        and _handles_failures(tool)
    )


def _handles_failures(tool: FunctionTool) -> bool:
    """Whether the invoker is the SDK's, which turns what a body raises into a text."""
    return type(tool.on_invoke_tool).__module__ == FunctionTool.__module__


def _around_failures(tool: FunctionTool, judge: Invoker) -> tuple[Invoker, Invoker]:
    """Give the way to the body that lets its failure through, and `judge` with the tool's own handling of failures.

    So the record has the failure, and the model is told of it as ungoverned.
    """
    if not _handles_failures(tool):
        return tool.on_invoke_tool, judge
    raising = set_function_tool_failure_error_function(copy.copy(tool), None)
    answering = copy.copy(tool)
    answering.on_invoke_tool = with_function_tool_failure_error_handler(judge, _trace_failure)
    return raising.on_invoke_tool, copy.copy(answering).on_invoke_tool  # a copy binds its invoker


def _trace_failure(tool: FunctionTool, error: Exception, _arguments: str) -> None:
    """Mark the tool's span as the SDK does; what the error says stays out of the trace."""
    span = get_current_span()
    if span is not None:
        data = {"tool_name": tool.name, "error": type(error).__name__}
        span.set_error(SpanError(message="Error running tool (non-fatal)", data=data))
