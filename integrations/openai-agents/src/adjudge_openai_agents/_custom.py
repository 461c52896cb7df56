"""Custom tools: the model writes one raw text, which is judged as the argument `input`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agents import CustomTool
from agents.tool_context import ToolContext

from adjudge.integration import Effective, ProposedCall
from adjudge_openai_agents._approval import Approval
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
    governed = govern_copy(tool, "on_invoke_tool", binding, GovernedCustomTool)
    body, approval = governed.on_invoke_tool, governed.needs_approval
    if (
        governed is not tool
        and isinstance(body, GovernedCustomTool)
        and isinstance(approval, Approval)
        and type(tool).runtime_needs_approval is not CustomTool.runtime_needs_approval
    ):
        # The editor of a sandbox asks its own setting about something else than the raw text.
        governed.needs_approval = tool.needs_approval
        whole = Approval(body, tool.runtime_needs_approval())
        governed.runtime_needs_approval = lambda: whole  # type: ignore[method-assign]
    return governed
