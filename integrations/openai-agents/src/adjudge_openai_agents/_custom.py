"""Custom tools: the model writes one raw text, which is judged as the argument `input`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agents import CustomTool
from agents.tool_context import ToolContext

from adjudge.integration import Effective, ProposedCall
from adjudge_openai_agents._binding import Binding
from adjudge_openai_agents._body import TypedBody, govern_copy

__all__ = ["GovernedCustomTool", "govern_custom_tool"]


class GovernedCustomTool(TypedBody):
    """The governed way to a custom tool's body; a denial is the tool's output."""

    schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    }

    def __init__(self, tool: CustomTool, binding: Binding) -> None:
        super().__init__(tool.name, binding)
        self._invoke = tool.on_invoke_tool

    def proposal(self, text: str, call_id: str | None) -> ProposedCall:
        """Say what is judged."""
        return self._proposed({"input": text}, call_id)

    def proposed(self, raw: str, call_id: str) -> ProposedCall:
        """Say what is judged of the raw text."""
        return self.proposal(raw, call_id)

    async def __call__(self, context: ToolContext[Any], text: str) -> Any:
        """Judge one call, and run the body with the input that may run."""

        def run(effective: Effective) -> Any:
            if effective.changed:
                context.tool_arguments = effective.args["input"]  # a body may read it there
            return self._invoke(context, effective.args["input"])

        return await self._mediate(self.proposal(text, context.tool_call_id), run, context)


def govern_custom_tool(tool: CustomTool, binding: Binding) -> CustomTool:
    """Give a governed copy of a custom tool."""
    return govern_copy(tool, "on_invoke_tool", binding, GovernedCustomTool)
