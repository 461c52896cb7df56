"""Where a function tool's call is governed: in the `on_invoke_tool` of a copy of the tool.

`GovernedInvoker` stands where the SDK, and anybody who holds the governed tool, invokes the body.
"""

from __future__ import annotations

import copy
import importlib.metadata
import inspect
import json
import re
from typing import Any

from agents import (
    FunctionTool,
    ModelBehaviorError,
    RunContextWrapper,
    ToolOriginType,
    get_current_span,
)
from agents import tool as sdk
from agents.function_schema import FuncSchema
from agents.tool_context import ToolContext
from agents.tracing import SpanError

from adjudge import AdjudgeError, GovernedCall
from adjudge.integration import (
    Effective,
    InvalidArguments,
    ProposedCall,
    canonical_json,
    parse_arguments,
)
from adjudge_openai_agents._arguments import ValidatedArguments
from adjudge_openai_agents._binding import Binding, Invoker
from adjudge_openai_agents._body import GovernedBody, govern_copy
from adjudge_openai_agents._output import GuardText, let_guard_texts_pass
from adjudge_openai_agents._owned import judged_values

__all__ = ["GovernedInvoker", "govern_function_tool"]

# Since 0.22.3 a decorated tool's own approval is asked about the arguments that the function gets.
_VERSION = re.findall(r"\d+", importlib.metadata.version("openai-agents"))
_ASKS_WHERE_CHANGED = tuple(map(int, _VERSION[:3])) >= (0, 22, 3)


class GovernedInvoker(GovernedBody):
    """The governed way to one function tool's body; a denial is the tool's output."""

    def __init__(
        self,
        tool: FunctionTool,
        binding: Binding,
        parameters: FuncSchema | None,
        original: FunctionTool,
    ) -> None:
        super().__init__(tool.name, binding)
        self._original = original
        self._schema = tool.params_json_schema
        self._has_output_schema = tool.output_json_schema is not None
        self._parameters = parameters
        origin = sdk.get_function_tool_origin(tool)
        self._namespace = origin.mcp_server_name if origin is not None else None
        if self._namespace is None and tool.qualified_name != tool.name:
            self._namespace = tool.qualified_name.removesuffix(f".{tool.name}")
        # Whether the SDK itself, and no handwritten invoker, reads the argument text.
        self._sdk_reads = self._parameters is not None or (
            origin is not None and origin.type is not ToolOriginType.FUNCTION and _is_sdks(tool)
        )
        self.nests = origin is not None and origin.type is ToolOriginType.AGENT_AS_TOOL
        self._body, self._answer = _around_failures(tool, self._judge)
        # The SDK reads off the signature which context object the invoker wants: the inner one's.
        self.__signature__ = inspect.signature(tool.on_invoke_tool)

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        """Judge one call, run the body if it may, and answer as the tool does where it fails."""
        await self._check_enabled(context)
        return await self._answer(context, arguments)

    async def _check_enabled(self, context: RunContextWrapper[Any]) -> None:
        """Raise as the SDK does for a tool that was enabled when it was offered, and is not now.

        The SDK looks for the tools that run among the agent's own, and does not find copies.
        """
        holder = None if self.binding.holder is None else self.binding.holder()
        if holder is None or not any(each is self._original for each in holder.tools):
            return
        enabled = self._original.is_enabled
        if callable(enabled):
            answer = enabled(context, getattr(context, "agent", None) or holder)
            enabled = bool(await answer if inspect.isawaitable(answer) else answer)
        if not enabled:
            raise ModelBehaviorError(
                f"Tool {self.name} is currently disabled for agent {holder.name}."
            )

    def proposal(
        self, arguments: str, call_id: str | None, validated: ValidatedArguments | None
    ) -> ProposedCall:
        """Say what is judged; `validated` holds the arguments of this call of a decorated tool."""
        return ProposedCall(
            self.name,
            arguments or "{}",  # the SDK reads an empty text as no arguments
            namespace=self._namespace,
            call_id=call_id,
            schema=self._schema,
            declared=self.binding.declared,
            shadow=self.binding.shadow,
            validate=None if validated is None else validated.validate,
            rejects_invalid_text=self._sdk_reads,
        )

    def proposed(self, raw: dict[str, Any], call_id: str) -> ProposedCall:
        """Say what is judged, of the arguments as the SDK has read them."""
        return self.proposal(json.dumps(raw), call_id, self._validated())

    def changes(self, raw: dict[str, Any]) -> bool:
        """Whether validation changes the arguments; the SDK then asks a person by itself."""
        validated = self._validated()
        if validated is None or not _ASKS_WHERE_CHANGED:
            return False
        try:
            sent = parse_arguments(json.dumps(raw))
            return canonical_json(validated.validate(sent).args) != canonical_json(sent)
        except (AdjudgeError, InvalidArguments):
            return True

    def _validated(self) -> ValidatedArguments | None:
        return None if self._parameters is None else ValidatedArguments(self._parameters)

    async def _judge(self, context: ToolContext[Any], arguments: str) -> Any:
        validated = self._validated()

        async def run(effective: Effective) -> Any:
            text = arguments
            if effective.changed:
                text = effective.text if validated is None else validated.text(effective.args)
                if isinstance(context, ToolContext):
                    context.tool_arguments = text  # a body may read its arguments there
            if validated is None or not self.binding.owned:
                return await self._body(context, text)
            with judged_values(validated.values_of(effective.args)):
                return await self._body(context, text)

        call = self.proposal(arguments, getattr(context, "tool_call_id", None), validated)
        return await self._mediate(call, run, context)

    def _said(self, call: GovernedCall) -> str | None:
        return GuardText(call.text) if self._has_output_schema else call.text


def govern_function_tool(tool: FunctionTool, binding: Binding) -> FunctionTool:
    """Give a governed copy of a function tool, or the tool itself where this guard has it."""
    parameters = binding.parameters_of(tool)
    governed = govern_copy(
        tool,
        "on_invoke_tool",
        binding,
        lambda made, binding: GovernedInvoker(made, binding, parameters, tool),
    )
    if governed is not tool and governed.output_json_schema is not None:
        let_guard_texts_pass(governed)
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
