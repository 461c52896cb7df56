"""Where a function tool's call is governed: in the `on_invoke_tool` of a copy of the tool.

`Binding` is what one `govern` fixes for all that it reaches. `GovernedInvoker` stands where the
SDK, and anybody who holds the governed tool, invokes the body.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

from agents import FunctionTool, RunContextWrapper, ToolOriginType, get_current_span
from agents import tool as sdk
from agents.function_schema import FuncSchema
from agents.tool_context import ToolContext
from agents.tracing import SpanError

from adjudge import CallContext, GovernError, ToolGuard, ToolMetadata
from adjudge.integration import Effective, ProposedCall
from adjudge_openai_agents._arguments import ValidatedArguments, parameters_of
from adjudge_openai_agents._owned import judged_values

__all__ = ["Binding", "ContextSource", "GovernedInvoker", "Hosted", "govern_function_tool"]

Hosted: TypeAlias = Literal["refuse", "strip", "allow"]
Invoker: TypeAlias = Callable[[ToolContext[Any], str], Awaitable[Any]]
ContextSource: TypeAlias = Callable[[RunContextWrapper[Any]], CallContext | Awaitable[CallContext]]


@dataclass(frozen=True, slots=True)
class Binding:
    """The guard, and how it was told to govern; a tool of a `ToolSet` has metadata and shadow."""

    guard: ToolGuard
    recursive: bool = True
    hosted: Hosted = "refuse"
    context: ContextSource | None = None
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


class GovernedInvoker:
    """The governed way to one tool's body."""

    def __init__(self, tool: FunctionTool, binding: Binding, parameters: FuncSchema | None) -> None:
        self.binding = binding
        self.name, self._schema = tool.name, tool.params_json_schema
        self._parameters = parameters
        origin = sdk.get_function_tool_origin(tool)
        self._namespace = origin.mcp_server_name if origin is not None else None
        if self._namespace is None and tool.qualified_name != tool.name:
            self._namespace = tool.qualified_name.removesuffix(f".{tool.name}")
        # Whether the SDK itself, and no handwritten invoker, reads the argument text.
        self._sdk_reads = self._parameters is not None or (
            origin is not None and origin.type is not ToolOriginType.FUNCTION and _is_sdks(tool)
        )
        self._body, self._answer = _around_failures(tool, self._judge)
        # The SDK reads off the signature which context object the invoker wants: the inner one's.
        self.__signature__ = inspect.signature(tool.on_invoke_tool)

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        """Judge one call, run the body if it may, and answer as the tool does where it fails."""
        return await self._answer(context, arguments)

    async def _judge(self, context: ToolContext[Any], arguments: str) -> Any:
        validated = None if self._parameters is None else ValidatedArguments(self._parameters)

        async def execute(effective: Effective) -> Any:
            text = arguments
            if effective.changed:
                text = effective.text if validated is None else validated.text(effective.args)
                if isinstance(context, ToolContext):
                    context.tool_arguments = text  # a body may read its arguments there
            if validated is None or not self.binding.owned:
                return await self._body(context, text)
            with judged_values(validated.values_of(effective.args)):
                return await self._body(context, text)

        binding = self.binding
        call = await binding.guard.govern_call(
            ProposedCall(
                self.name,
                arguments or "{}",  # the SDK reads an empty text as no arguments
                namespace=self._namespace,
                call_id=getattr(context, "tool_call_id", None),
                schema=self._schema,
                declared=binding.declared,
                shadow=binding.shadow,
                validate=None if validated is None else validated.validate,
                rejects_invalid_text=self._sdk_reads,
            ),
            execute,
            context=binding.context and functools.partial(binding.context, context),
        )
        return call.result.value if call.text is None else call.text

    def __deepcopy__(self, memo: dict[int, Any]) -> GovernedInvoker:
        """Copies of a governed tool are governed by the same guard."""
        return self


def govern_function_tool(tool: FunctionTool, binding: Binding) -> FunctionTool:
    """Give a governed copy of a function tool, or the tool itself where this guard has it."""
    invoker = tool.on_invoke_tool
    if isinstance(invoker, GovernedInvoker):
        if invoker.name != tool.name:
            raise GovernError(
                f"The tool {tool.name!r} was governed as {invoker.name!r} and then renamed; "
                "govern it under its last name."
            )
        if invoker.binding.guard is binding.guard:
            return tool
        raise GovernError(
            f"The tool {tool.name!r} is under another guard; govern the original tool instead."
        )
    if tool.needs_approval is not False:
        raise GovernError(
            f"The tool {tool.name!r} sets needs_approval, and a governed run cannot pause yet; "
            "say approve_required in the policy and give the guard an on_approval handler."
        )
    if tool.output_json_schema is not None:
        raise GovernError(
            f"The tool {tool.name!r} declares an output schema, in which a denial has no shape; "
            "return text without an output_type."
        )
    governed = copy.copy(tool)
    governed.on_invoke_tool = GovernedInvoker(governed, binding, binding.parameters_of(tool))
    return governed


def _is_sdks(tool: FunctionTool) -> bool:
    """Whether the invoker is the SDK's own, which makes a text of what the body raises."""
    return type(tool.on_invoke_tool).__module__ == sdk.__name__


def _around_failures(tool: FunctionTool, judge: Invoker) -> tuple[Invoker, Invoker]:
    """Give a way to the body that lets its failure through, and `judge` with the tool's handling.

    So the record has the failure, and the model is told of it as ungoverned.
    """
    if not _is_sdks(tool):
        return tool.on_invoke_tool, judge
    raising = sdk.set_function_tool_failure_error_function(copy.copy(tool), None)
    answering = copy.copy(tool)
    answering.on_invoke_tool = sdk.with_function_tool_failure_error_handler(judge, _trace_failure)
    return raising.on_invoke_tool, copy.copy(answering).on_invoke_tool  # a copy binds its invoker


def _trace_failure(tool: FunctionTool, error: Exception, _arguments: str) -> None:
    """Mark the tool's span as the SDK does; what the error says stays out of the trace."""
    span = get_current_span()
    if span is not None:
        data = {"tool_name": tool.name, "error": type(error).__name__}
        span.set_error(SpanError(message="Error running tool (non-fatal)", data=data))
