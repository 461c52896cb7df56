"""Which of the SDK's tools can be governed, which are left to the provider, and which are refused."""

from __future__ import annotations

from collections.abc import Iterable

from agents import (
    CodeInterpreterTool,
    FileSearchTool,
    FunctionTool,
    HostedMCPTool,
    ImageGenerationTool,
    ProgrammaticToolCallingTool,
    ShellTool,
    Tool,
    ToolSearchTool,
    WebSearchTool,
)

from adjudge import GovernError
from adjudge_openai_agents._invoker import Binding, govern_function_tool

__all__ = ["check_tool", "govern_tools"]

_HOSTED = (
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ImageGenerationTool,
    ProgrammaticToolCallingTool,
    WebSearchTool,
)


def check_tool(tool: Tool, binding: Binding) -> None:
    """Raise `GovernError` for a tool that cannot stay under this guard."""
    if isinstance(tool, FunctionTool):
        govern_function_tool(tool, binding)
    elif _is_hosted(tool):
        if binding.hosted == "refuse":
            raise GovernError(
                f"The tool {_name(tool)} runs at the provider, where no guard can stand; remove it, or say "
                "hosted='strip' to leave it out or hosted='allow' to let it run ungoverned."
            )
    elif not isinstance(tool, ToolSearchTool):  # it only makes other tools known
        raise GovernError(
            f"The tool {_name(tool)} is a {type(tool).__name__}, which cannot be governed yet, only function "
            "tools can; remove it, or do what it does in a function tool."
        )


def govern_tools(tools: Iterable[Tool], binding: Binding) -> list[Tool]:
    """Give the governed copies of tools, hosted ones left out or kept as the caller said."""
    governed: list[Tool] = []
    for tool in tools:
        check_tool(tool, binding)
        if isinstance(tool, FunctionTool):
            governed.append(govern_function_tool(tool, binding))
        elif not _is_hosted(tool) or binding.hosted == "allow":
            governed.append(tool)
    return governed


def _is_hosted(tool: Tool) -> bool:
    return isinstance(tool, _HOSTED) or (isinstance(tool, ShellTool) and tool.executor is None)


def _name(tool: Tool) -> str:
    return repr(getattr(tool, "name", type(tool).__name__))
