"""Executors: where and how a tool of a `ToolSet` runs once it may.

Here in the process, in a process of its own, or where the tool's `isolation` says. Containers and
virtual machines are the caller's to plug in; none of ours is a security boundary.
"""

from __future__ import annotations

from collections.abc import Mapping

from adjudge._enforcement.tools import ToolDef
from adjudge._executors.inline import Executor, inline_executor
from adjudge._executors.spawning import subprocess_executor
from adjudge._types import ActionRequest, ActionResult

__all__ = ["Executor", "inline_executor", "route_executor", "subprocess_executor"]


def route_executor(routes: Mapping[str | None, Executor]) -> Executor:
    """Make an executor that picks one by what the tool declares as its `isolation`.

    The route None serves tools that declare none. A tool without a route fails (`no_route`): it is
    never run somewhere else than it asked for.
    """
    table = _checked(routes)

    async def execute(request: ActionRequest, tool: ToolDef) -> ActionResult:
        isolation = tool.metadata.isolation
        chosen = table.get(isolation)
        if chosen is None:
            known = ", ".join(sorted(str(route) for route in table)) or "none"
            error = f"there is no executor for isolation {isolation!r}; the routes are {known}"
            return ActionResult(False, error=error, code="no_route")
        return await chosen(request, tool)

    return execute


def _checked(routes: object) -> dict[str | None, Executor]:
    if not isinstance(routes, Mapping) or not all(map(callable, routes.values())):
        raise TypeError(
            f"routes is {routes!r}; give a mapping of isolations to executors, "
            "such as {None: inline_executor()}."
        )
    return dict(routes)
