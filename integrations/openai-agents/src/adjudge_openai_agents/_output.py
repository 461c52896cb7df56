"""Output schemas: how a denial passes a tool that promised to answer with an object.

The SDK holds a tool's answer to its schema, but for what an output guardrail puts in its place. So
a tool with a schema gets one guardrail, first in line, that hands on the guard's own texts.
"""

from __future__ import annotations

from typing import Any

from agents import (
    FunctionTool,
    ToolGuardrailFunctionOutput,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
)

__all__ = ["GuardText", "let_guard_texts_pass"]


class GuardText(str):
    """A text of the guard's, and no answer of the tool."""

    __slots__ = ()


def _hand_on(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
    if isinstance(data.output, GuardText):
        return ToolGuardrailFunctionOutput.reject_content(str(data.output))
    return ToolGuardrailFunctionOutput.allow()


def let_guard_texts_pass(tool: FunctionTool) -> None:
    """Give a governed tool that has an output schema the guardrail."""
    guardrail: ToolOutputGuardrail[Any] = ToolOutputGuardrail(_hand_on, name="adjudge")
    tool.tool_output_guardrails = [guardrail, *(tool.tool_output_guardrails or ())]
