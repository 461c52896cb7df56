"""Agents of `create_agent`, governed in place: their tools, and their requests to the model.

The tools of an agent's `ToolNode` become governed copies; where middleware stands around them, the
guard stands inside of all of it, next to the body. Requests to the model are looked at for tools at
the provider after all middleware.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from types import CellType, FunctionType
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, ToolCallRequest
from langchain_core.runnables import Runnable, RunnableSequence
from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode

from adjudge import GovernError
from adjudge_langchain._binding import Binding, check_same
from adjudge_langchain._hosted import allowed_tools, without_hosted
from adjudge_langchain._tools import Copies, binding_of, governed_tool

__all__ = [
    "asks_the_model",
    "binding_over",
    "govern_agent",
    "govern_model_node",
    "govern_tool_node",
    "governed_request",
    "runs_the_tool",
    "tool_nodes",
]

_TOOL_NODE = vars(inspect.getmodule(ToolNode))
_FACTORY = vars(inspect.getmodule(create_agent))
_EXECUTE = "_execute_model_sync"
_AEXECUTE = "_execute_model_async"
_OFFERED = "default_tools"


def govern_agent(agent: CompiledStateGraph[Any, Any, Any, Any], binding: Binding) -> None:
    """Put the tools and the model requests of an agent under a guard."""
    nodes = list(tool_nodes(agent))
    if not nodes:
        raise GovernError(
            "The graph has no ToolNode, so there is no tool to govern; give the tools to "
            "create_agent, or govern the tools themselves with govern(tools, guard)."
        )
    models = [each for each in map(_runnable, agent.nodes.values()) if _cell(each, _EXECUTE)]
    if not models:
        raise GovernError(
            "The graph is no agent of create_agent: nothing in it asks a model in the way known "
            "here. Govern its tools with govern(tools, guard), or the graph with adjudge-langgraph."
        )
    governed = [(node, _governed_tools(node, binding)) for node in nodes]
    for model in models:
        govern_model_node(model, binding)
    for node, tools in governed:
        _put(node, tools, binding)


def binding_over(graph: object) -> Binding | None:
    """Find what a graph's tools are governed by, None where they are not."""
    for node in tool_nodes(graph):
        for tool in node.tools_by_name.values():
            held = binding_of(tool)
            if held is not None:
                return held
    return None


def tool_nodes(graph: object) -> Iterator[ToolNode]:
    """Find the tool nodes of a compiled graph."""
    for node in getattr(graph, "nodes", {}).values():
        for runnable in _parts(_runnable(node)):
            if isinstance(runnable, ToolNode):
                yield runnable


def govern_tool_node(node: ToolNode, binding: Binding) -> None:
    """Put the tools of a node under a guard, inside of whatever wraps their calls."""
    _put(node, _governed_tools(node, binding), binding)


def _governed_tools(node: ToolNode, binding: Binding) -> dict[str, BaseTool]:
    return {name: governed_tool(tool, binding) for name, tool in node.tools_by_name.items()}


def _put(node: ToolNode, tools: dict[str, BaseTool], binding: Binding) -> None:
    node.tools_by_name.update(tools)
    # Only where middleware could bring a tool of its own. There is no public place inside of it,
    # and a test fails when this one moves.
    wrap, awrap = node._wrap_tool_call, node._awrap_tool_call
    if wrap is not None:
        node._wrap_tool_call = _innermost(wrap, binding)  # the same place
    if awrap is not None:
        node._awrap_tool_call = _ainnermost(awrap, binding)  # the same place


def govern_model_node(node: Runnable[Any, Any], binding: Binding) -> None:
    """Look at an agent's requests to its model, next to the model.

    What asks the model is held by the closure of the node's function alone; a test fails when it is
    called otherwise. Raises `GovernError` for tools at the provider that are there already.
    """
    offered = _cell(node, _OFFERED)
    asks, asks_async = _cell(node, _EXECUTE), _cell(node, _AEXECUTE)
    if offered is None or asks is None or asks_async is None:
        raise GovernError("This release of langchain keeps what asks the model elsewhere.")
    allowed_tools(offered.cell_contents, binding)
    if not isinstance(asks.cell_contents, _Asking):
        asks.cell_contents = _Asking(asks.cell_contents, binding)
        asks_async.cell_contents = _AsyncAsking(asks_async.cell_contents, binding)


class _Asking:
    """What asks the model, without the provider's tools."""

    def __init__(self, ask: Callable[[ModelRequest[Any]], Any], binding: Binding) -> None:
        self._ask, self._binding = ask, binding

    def __call__(self, request: ModelRequest[Any]) -> Any:
        return self._ask(without_hosted(request, self._binding))


class _AsyncAsking:
    """The same for runs on an event loop."""

    def __init__(
        self, ask: Callable[[ModelRequest[Any]], Awaitable[Any]], binding: Binding
    ) -> None:
        self._ask, self._binding = ask, binding

    async def __call__(self, request: ModelRequest[Any]) -> Any:
        return await self._ask(without_hosted(request, self._binding))


def governed_request(request: ToolCallRequest, copies: Copies) -> ToolCallRequest:
    """Give the request with a governed tool; an unknown one is for the node to answer."""
    if request.tool is None:
        return request
    governed = copies.of(request.tool)
    return request if governed is request.tool else request.override(tool=governed)


# How to tell that nothing stands between a middleware and what it wraps; tests fail when it moves.


def runs_the_tool(handler: Any) -> bool:
    """Whether a handler is the tool node's own."""
    return _made_in(handler, _TOOL_NODE) or _made_in(handler, globals())


def asks_the_model(handler: Any) -> bool:
    """Whether a handler is the agent's own."""
    return type(handler) in (_Asking, _AsyncAsking) or (
        _made_in(handler, _FACTORY) and handler.__name__ in (_EXECUTE, _AEXECUTE)
    )


def _made_in(handler: Any, module: dict[str, Any]) -> bool:
    """Whether a function is written in a module, whatever it says of itself."""
    return isinstance(handler, FunctionType) and handler.__globals__ is module


class _Innermost:
    """What stands around a node's tools, with the guard inside of it."""

    def __init__(self, outer: Callable[..., Any], binding: Binding) -> None:
        self.outer, self.copies, self._binding = outer, Copies(binding), binding

    def under(self, binding: Binding) -> _Innermost:
        """Give itself, if that is the same guard, asked with the same `context=`."""
        check_same(self._binding, binding, "agent")
        return self

    def __call__(self, request: ToolCallRequest, execute: Callable[..., Any]) -> Any:
        return self.outer(request, lambda final: execute(governed_request(final, self.copies)))


def _innermost(outer: Callable[..., Any], binding: Binding) -> Callable[..., Any]:
    return outer.under(binding) if isinstance(outer, _Innermost) else _Innermost(outer, binding)


class _AsyncInnermost(_Innermost):
    """The same for runs on an event loop."""

    async def __call__(self, request: ToolCallRequest, execute: Callable[..., Any]) -> Any:
        async def governed(final: ToolCallRequest) -> Any:
            return await execute(governed_request(final, self.copies))

        return await self.outer(request, governed)


def _ainnermost(outer: Callable[..., Any], binding: Binding) -> Callable[..., Any]:
    if isinstance(outer, _Innermost):
        return outer.under(binding)
    return _AsyncInnermost(outer, binding)


def _runnable(node: Any) -> Any:
    return getattr(node, "bound", node)


def _parts(runnable: Any) -> Iterator[Any]:
    if isinstance(runnable, RunnableSequence) or isinstance(getattr(runnable, "steps", None), list):
        for step in runnable.steps:
            yield from _parts(step)
    else:
        yield runnable


def _cell(runnable: Any, name: str) -> CellType | None:
    """Find a variable of the closures behind a node's two functions."""
    for function in (getattr(runnable, "func", None), getattr(runnable, "afunc", None)):
        code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
        if code is not None and closure is not None and name in code.co_freevars:
            found: CellType = closure[code.co_freevars.index(name)]
            return found
    return None
