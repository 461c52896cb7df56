"""Tools that run at the provider, where no guard can stand: refused, left out, or let through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.runnables import RunnableBinding, RunnableWithFallbacks
from langchain_core.tools import BaseTool

from adjudge import GovernError
from adjudge_langchain._binding import Binding

__all__ = ["allowed_tools", "without_hosted"]


# Settings that have the provider run something, beside `tools`.
_AT_PROVIDER = ("web_search_options", "mcp_servers")


def without_hosted(request: ModelRequest[Any], binding: Binding) -> ModelRequest[Any]:
    """Give a request to the model without the provider's tools, or raise `GovernError`."""
    allowed = allowed_tools(request.tools, binding)
    # Middleware can name tools in the settings as well, and they would take the place of the
    # others; what a model was bound to is sent, too.
    settings = _without(request.model_settings, binding)
    if settings != request.model_settings:
        request = request.override(model_settings=settings)
    model = _bound_without(request.model, binding)
    if model is not request.model:
        request = request.override(model=model)
    return request if len(allowed) == len(request.tools) else request.override(tools=allowed)


def _bound_without(model: Any, binding: Binding) -> Any:
    if isinstance(model, RunnableWithFallbacks):
        tried = [_bound_without(each, binding) for each in model.runnables]
        if all(map(is_, tried, model.runnables)):
            return model
        return model.model_copy(update={"runnable": tried[0], "fallbacks": tried[1:]})
    if not isinstance(model, RunnableBinding):
        return model
    inner, kwargs = _bound_without(model.bound, binding), _without(model.kwargs, binding)
    if inner is model.bound and kwargs == model.kwargs:
        return model
    return model.model_copy(update={"bound": inner, "kwargs": kwargs})


def _without(settings: Mapping[str, Any], binding: Binding) -> dict[str, Any]:
    kept = dict(settings)
    if kept.get("tools") is not None:
        kept["tools"] = allowed_tools(kept["tools"], binding)
    for name in _AT_PROVIDER:
        # An empty list of servers starts none; empty options still search.
        wanted = kept.get(name)
        if wanted is not None and wanted != [] and not allowed_tools([{"type": name}], binding):
            del kept[name]
    return kept


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
        # A schema or a function; of another object only a provider can make something.
        known = isinstance(tool, BaseTool | type) or callable(tool)
        return None if known else type(tool).__name__
    kind = tool.get("type")
    if kind in ("function", "custom"):
        return None
    if kind is None and {"parameters", "input_schema", "function"} & tool.keys():
        return None
    return str(kind if kind is not None else next(iter(tool), "unnamed"))
