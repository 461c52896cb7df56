"""The SDK's function tools made out of a `ToolSet`, each with its function's real parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from agents import FunctionTool, function_tool
from agents.exceptions import UserError

from adjudge import GovernError, ToolGuard, ToolSet
from adjudge_openai_agents._invoker import Binding, ContextSource, Declared, govern_function_tool

__all__ = ["governed_function_tools"]


def governed_function_tools(
    tools: ToolSet,
    *,
    policy: Any = None,
    guard: ToolGuard | None = None,
    context: ContextSource | None = None,
    **options: Any,
) -> list[FunctionTool]:
    """Make a governed function tool out of each tool of a set, for `Agent(tools=...)`.

    Give a `guard`, or a `policy` with whatever else `ToolGuard` takes. Metadata and shadows are the
    set's own.
    """
    if (guard is None) == (policy is None) or (guard is not None and options):
        raise GovernError("Give either a guard, or a policy with the options of a ToolGuard.")
    if guard is None:
        guard = ToolGuard(policy=policy, tools=tools, **options)
    binding = Binding(guard, recursive=True, hosted="refuse", context=context)
    return [
        govern_function_tool(
            _function_tool(definition.fn, definition.name, definition.description),
            binding,
            Declared(definition.metadata, definition.shadow_fn),
        )
        for definition in tools
    ]


def _function_tool(function: Callable[..., Any], name: str, description: str) -> FunctionTool:
    """Give the SDK's tool; in its strict schema mode where the parameters allow that."""
    make = functools.partial(
        function_tool, function, name_override=name, description_override=description
    )
    try:
        return make()
    except UserError:
        return make(strict_mode=False)
