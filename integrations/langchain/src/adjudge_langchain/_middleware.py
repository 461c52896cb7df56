"""`AdjudgeMiddleware`: the guard as a middleware of `create_agent`, next to the tools' bodies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from langchain.agents.middleware import (
    AgentMiddleware,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from adjudge import GovernError, ToolGuard
from adjudge_langchain._agents import asks_the_model, governed_request, runs_the_tool
from adjudge_langchain._binding import Binding, ContextSource, Hosted
from adjudge_langchain._hosted import without_hosted
from adjudge_langchain._tools import Copies

__all__ = ["AdjudgeMiddleware"]


class AdjudgeMiddleware(AgentMiddleware[Any, Any, Any]):
    """Governs every call of an agent's tools; list it last.

    It hands a governed copy of the tool down, so a call is judged at its body, with the arguments
    that the body gets, whatever other middleware has made of it. Listed before other middleware
    that wraps calls, it could be handed a tool and another one be run: that raises `GovernError`
    at the first call. `hosted` says what becomes of tools that run at the provider; `ungoverned`
    names those of them that may run. `context` gets the `ToolRun` of each call and answers who is
    calling; None or an exception denies.
    """

    def __init__(
        self,
        guard: ToolGuard,
        *,
        hosted: Hosted = "refuse",
        ungoverned: Collection[str] = (),
        context: ContextSource | None = None,
    ) -> None:
        super().__init__()
        self._binding = Binding.of(guard, hosted, ungoverned, context)
        self._copies = Copies(self._binding)

    @property
    def guard(self) -> ToolGuard:
        """The guard that judges."""
        return self._binding.guard

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Hand a governed tool down."""
        _check_innermost(runs_the_tool(handler))
        return handler(governed_request(request, self._copies))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Hand a governed tool down."""
        _check_innermost(runs_the_tool(handler))
        return await handler(governed_request(request, self._copies))

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Keep tools at the provider out of the request."""
        _check_innermost(asks_the_model(handler))
        return handler(without_hosted(request, self._binding))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Keep tools at the provider out of the request."""
        _check_innermost(asks_the_model(handler))
        return await handler(without_hosted(request, self._binding))


def _check_innermost(innermost: bool) -> None:
    if not innermost:
        raise GovernError(
            "AdjudgeMiddleware stands outside of other middleware, which could change the call "
            "after it; list it last, or govern the agent with govern(agent, guard)."
        )
