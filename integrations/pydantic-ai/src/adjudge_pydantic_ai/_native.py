"""Tools that run at the provider, where no guard can stand: refused, left out, or let through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_ai.native_tools import AbstractNativeTool

from adjudge import GovernError
from adjudge_pydantic_ai._binding import Binding

__all__ = ["allowed_native_tools"]

# It only makes other tools known to the model.
_HARMLESS = frozenset({"tool_search"})


def allowed_native_tools(tools: Iterable[Any], binding: Binding) -> list[Any]:
    """Give the provider's tools that may be offered; or raise `GovernError`.

    They are the framework's objects, or mappings in the provider's own words. A function that
    makes such a tool in each run is looked at when it has made it.
    """
    return [tool for tool in tools if _is_allowed(tool, binding)]


def _is_allowed(tool: Any, binding: Binding) -> bool:
    if isinstance(tool, AbstractNativeTool):
        kind, names = tool.kind, {tool.kind, tool.unique_id}
    elif isinstance(tool, Mapping):
        kind = str(tool.get("type"))
        names = {kind}
    else:
        return True
    if binding.hosted == "allow" or names & (binding.ungoverned | _HARMLESS):
        return True
    if binding.hosted == "strip":
        return False
    raise GovernError(
        f"The tool {kind!r} runs at the provider, where no guard can stand; remove it, or say "
        "hosted='strip' to leave it out, hosted='allow' to let all such tools run ungoverned, or "
        f"ungoverned=[{kind!r}] for this one."
    )
