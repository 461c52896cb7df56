"""Which of the SDK's tools can be governed, which run at the provider, and which are refused."""

from __future__ import annotations

from collections.abc import Iterable

import agents
from agents import FunctionTool, ShellTool, Tool, ToolSearchTool

from adjudge import GovernError
from adjudge_openai_agents._invoker import Binding, govern_function_tool

__all__ = ["govern_tools"]

_HOSTED = (
    agents.CodeInterpreterTool,
    agents.FileSearchTool,
    agents.HostedMCPTool,
    agents.ImageGenerationTool,
    agents.ProgrammaticToolCallingTool,
    agents.WebSearchTool,
)


def govern_tools(tools: Iterable[Tool], binding: Binding) -> list[Tool]:
    """Give governed copies, hosted tools left out or kept as was said; or raise `GovernError`."""
    governed: list[Tool] = []
    for tool in tools:
        name = f"The tool {getattr(tool, 'name', type(tool).__name__)!r}"
        if isinstance(tool, FunctionTool):
            governed.append(govern_function_tool(tool, binding))
        elif isinstance(tool, _HOSTED) or (isinstance(tool, ShellTool) and tool.executor is None):
            if binding.hosted == "refuse":
                raise GovernError(
                    f"{name} runs at the provider, where no guard can stand; remove it, or say "
                    "hosted='strip' to leave it out or hosted='allow' to let it run ungoverned."
                )
            if binding.hosted == "allow":
                governed.append(tool)
        elif isinstance(tool, ToolSearchTool):  # it only makes other tools known
            governed.append(tool)
        else:
            raise GovernError(
                f"{name} is a {type(tool).__name__}, and only function tools can be governed yet; "
                "remove it, or do what it does in a function tool."
            )
    return governed
