"""Tools that run at the provider, where no guard can stand: refused, left out, or let through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain.agents.middleware import ModelRequest

from adjudge import GovernError
from adjudge_langchain._binding import Binding

__all__ = ["allowed_tools", "without_hosted"]


def without_hosted(request: ModelRequest[Any], binding: Binding) -> ModelRequest[Any]:
    """Give a request to the model without the provider's tools, or raise `GovernError`."""
    allowed = allowed_tools(request.tools, binding)
    settings = request.model_settings
    # Middleware can name tools here as well, and they would take the place of the others.
    named = settings.get("tools")
    if named is not None:
        kept = allowed_tools(named, binding)
        if len(kept) != len(named):
            request = request.override(model_settings={**settings, "tools": kept})
    return request if len(allowed) == len(request.tools) else request.override(tools=allowed)


def allowed_tools(tools: Iterable[Any], binding: Binding) -> list[Any]:
    """Give the tools that may be offered to the model."""
    allowed = []
    for tool in tools:
        name = _hosted_name(tool)
        if name is None or name in binding.ungoverned or binding.hosted == "allow":
            allowed.append(tool)
        elif binding.hosted == "refuse":
            raise GovernError(
                f"The tool {name!r} runs at the provider, where no guard can stand; remove it, or "
                "say hosted='strip' to leave it out, hosted='allow' to let all such tools run "
                f"ungoverned, or ungoverned=[{name!r}] for this one."
            )
    return allowed


def _hosted_name(tool: object) -> str | None:
    """Name a tool that the provider runs, None for one that comes back as a call."""
    if not isinstance(tool, Mapping):
        return None
    kind = tool.get("type")
    if kind in ("function", "custom"):
        return None
    if kind is None and {"parameters", "input_schema", "function"} & tool.keys():
        return None
    return str(kind if kind is not None else next(iter(tool), "unnamed"))
