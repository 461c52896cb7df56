"""Which of the SDK's tools can be governed, which run at the provider, and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import agents
from agents import Tool

from adjudge import GovernError
from adjudge_openai_agents._binding import Binding
from adjudge_openai_agents._custom import govern_custom_tool
from adjudge_openai_agents._invoker import govern_function_tool
from adjudge_openai_agents._patch import govern_apply_patch_tool
from adjudge_openai_agents._shell import govern_local_shell_tool, govern_shell_tool

__all__ = ["GOVERNABLE", "govern_tools"]

_KINDS: tuple[tuple[type[Any], Callable[[Any, Binding], Tool]], ...] = (
    (agents.FunctionTool, govern_function_tool),
    (agents.CustomTool, govern_custom_tool),
    (agents.ShellTool, govern_shell_tool),
    (agents.LocalShellTool, govern_local_shell_tool),
    (agents.ApplyPatchTool, govern_apply_patch_tool),
)
GOVERNABLE = tuple(kind for kind, _ in _KINDS)
"""The classes of tools that have a body here which a guard can stand before."""

_HOSTED = (
    agents.CodeInterpreterTool,
    agents.FileSearchTool,
    agents.HostedMCPTool,
    agents.ImageGenerationTool,
    agents.ProgrammaticToolCallingTool,
    agents.WebSearchTool,
)


def govern_tools(tools: Iterable[Tool], binding: Binding) -> list[Tool]:
    """Give governed copies, what cannot be governed left out or kept as was said; or raise."""
    governed = (_governed(tool, binding) for tool in tools)
    return [tool for tool in governed if tool is not None]


def _governed(tool: Tool, binding: Binding) -> Tool | None:
    name = _listed_name(tool)
    if isinstance(tool, agents.ToolSearchTool):  # it only makes other tools known
        return tool
    hosted = isinstance(tool, _HOSTED) or _is_hosted_shell(tool)
    govern = None if hosted else next((how for kind, how in _KINDS if isinstance(tool, kind)), None)
    if name in binding.ungoverned:
        if govern is None:
            return tool
        raise GovernError(
            f"The tool {name!r} is listed in ungoverned, and it can be governed; take it off the "
            "list, and allow it by a rule."
        )
    if govern is not None:
        return govern(tool, binding)
    if hosted and binding.hosted != "refuse":
        return tool if binding.hosted == "allow" else None
    raise GovernError(f"The tool {name!r} {_why_not(tool, hosted=hosted)}")


def _listed_name(tool: Tool) -> str:
    """Name a tool as `ungoverned` does: a server of hosted MCP tools by its label."""
    name = str(getattr(tool, "name", type(tool).__name__))
    if isinstance(tool, agents.HostedMCPTool):
        return f"{name}.{tool.tool_config.get('server_label')}"
    return name


def _is_hosted_shell(tool: Tool) -> bool:
    return isinstance(tool, agents.ShellTool) and tool.executor is None


def _why_not(tool: Tool, *, hosted: bool) -> str:
    name = _listed_name(tool)
    if hosted:
        return (
            "runs at the provider, where no guard can stand; remove it, say hosted='strip' to "
            f"leave such tools out, or let it run ungoverned: ungoverned=[{name!r}] for this one, "
            "hosted='allow' for all."
        )
    if isinstance(tool, agents.ComputerTool):
        return (
            "drives a computer, and the SDK has no way to tell the model of a denial: it would "
            f"end the run. Remove it, or let it run ungoverned: ungoverned=[{name!r}]."
        )
    return (
        f"is a {type(tool).__name__}, which cannot be governed; remove it, or do what it does in "
        "a function tool."
    )
