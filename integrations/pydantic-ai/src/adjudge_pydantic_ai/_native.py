"""Tools that run at the provider, where no guard can stand: refused, left out, or let through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_ai.native_tools import AbstractNativeTool

from adjudge import GovernError
from adjudge_pydantic_ai._binding import Binding

__all__ = ["allowed_native_tools"]

# It only makes other tools known to the model.
_HARMLESS = frozenset({"tool_search"})


def allowed_native_tools(tools: Iterable[Any], binding: Binding) -> list[Any]:
    """Give the provider's tools that may be offered; or raise `GovernError`.

    A function that makes such a tool in each run is looked at when it has made it.
    """
    allowed = []
    for tool in tools:
        is_native = isinstance(tool, AbstractNativeTool)
        listed = {tool.kind, tool.unique_id} & (binding.ungoverned | _HARMLESS) if is_native else ()
        if not is_native or listed or binding.hosted == "allow":
            allowed.append(tool)
        elif binding.hosted == "refuse":
            raise GovernError(
                f"The tool {tool.unique_id!r} runs at the provider, where no guard can stand; "
                "remove it, or say hosted='strip' to leave it out, hosted='allow' to let all such "
                f"tools run ungoverned, or ungoverned=[{tool.kind!r}] for this one."
            )
    return allowed
