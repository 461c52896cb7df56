"""By which name a policy knows a tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crewai.tools import BaseTool
from crewai.tools.mcp_native_tool import MCPNativeTool
from crewai.tools.mcp_tool_wrapper import MCPToolWrapper
from crewai.utilities.string_utils import sanitize_tool_name

from adjudge import GovernError

__all__ = ["check_names", "identity_of"]


def identity_of(tool: Any) -> tuple[str, str | None]:
    """Give a tool's name and namespace: the name that the model knows it by.

    A tool of an MCP server has its own name there, and the server's as its namespace.
    """
    if isinstance(tool, MCPNativeTool | MCPToolWrapper):
        return tool.original_tool_name, tool.server_name
    return sanitize_tool_name(tool.name), None


def check_names(tools: Iterable[BaseTool]) -> None:
    """Raise `GovernError` for two tools that a model could not tell apart by name."""
    seen: dict[str, BaseTool] = {}
    for tool in tools:
        name = sanitize_tool_name(tool.name)
        other = seen.setdefault(name, tool)
        if other is not tool:
            raise GovernError(
                f"The tools {other.name!r} and {tool.name!r} are both {name!r} to the model, and "
                "CrewAI would run one for the other; give one of them another name."
            )
