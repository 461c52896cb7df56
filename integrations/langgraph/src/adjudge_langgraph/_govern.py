"""`govern` for compiled graphs, and the parts of which governed graphs are made by hand."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.constants import END
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.types import Send

from adjudge import GovernError, ToolGuard
from adjudge_langchain.integration import (
    Binding,
    ContextSource,
    Hosted,
    binding_of,
    govern_model_node,
    govern_tool_node,
    governed_tool,
)
from adjudge_langgraph._batches import separate_calls
from adjudge_langgraph._hosted import check_bindings
from adjudge_langgraph._walk import Parts, Path, walk

__all__ = ["GovernedNode", "fan_out_tool_calls", "found", "govern", "governed_tool_node"]

G = TypeVar("G", bound=Pregel[Any, Any, Any, Any])
_LOG = logging.getLogger("adjudge_langgraph")


@dataclass(frozen=True, slots=True)
class GovernedNode:
    """A tool node of a graph that is governed.

    `path` names the nodes that lead to it, through subgraphs; `tools` are the names of its tools.
    """

    path: Path
    tools: tuple[str, ...]


def govern(
    graph: G,
    guard: ToolGuard,
    *,
    context: ContextSource | None = None,
    hosted: Hosted = "refuse",
    ungoverned: Collection[str] = (),
) -> G:
    """Put every tool node of a compiled graph under a guard, in place, and give the graph back.

    Found are the nodes themselves, those of subgraphs and of agents, and what the functions of
    nodes refer to; `found` says what that is, and so does the log. `context` gets the `ToolRun` of
    each call and answers who is calling; None or an exception denies. `hosted` says what becomes of
    tools that run at the provider. `ungoverned` names those of them that may run, the tools that a
    node may run by itself, and the nodes that may be graphs run elsewhere. The same guard again
    changes nothing. Raises `GovernError` where there is nothing to govern, for another guard, and
    for what cannot be governed; nothing has changed then.
    """
    binding = Binding.of(guard, hosted, ungoverned, context)
    if not isinstance(graph, Pregel):
        raise GovernError(
            f"A {type(graph).__name__} cannot be governed as a graph; give a compiled one "
            "(builder.compile()), or govern tools and lists of them with adjudge_langchain.govern."
        )
    parts = walk(graph)
    _check(parts, binding)
    check_bindings(parts.bindings, binding)
    for model in parts.models:
        govern_model_node(model, binding)
    for held in parts.tool_nodes:
        govern_tool_node(held.node, binding)
        separate_calls(held.node, binding, lasting=held.lasting)
    if guard.pauses and any(binding_of(loose.tool) is not None for loose in parts.tools):
        for node in parts.others:
            _runs_several(node)
    for each in _found(parts):
        _LOG.info("Governed tools of %s: %s", " > ".join(each.path), ", ".join(each.tools))
    return graph


def found(graph: Pregel[Any, Any, Any, Any]) -> tuple[GovernedNode, ...]:
    """Say which tool nodes of a graph are governed, and the tools in them."""
    return _found(walk(graph))


def governed_tool_node(
    tools: Sequence[BaseTool | Callable[..., Any]],
    guard: ToolGuard,
    *,
    context: ContextSource | None = None,
    **options: Any,
) -> ToolNode:
    """Make a `ToolNode` that is governed, for a graph of one's own.

    `options` are those of `ToolNode`; what wraps calls there stays outside of the guard. Raises
    `GovernError` for tools that cannot be governed.
    """
    binding = Binding.of(guard, context=context)
    node = ToolNode(tools, **options)
    govern_tool_node(node, binding)
    separate_calls(node, binding)
    return node


def fan_out_tool_calls(
    node: str = "tools", *, otherwise: str = END, messages_key: str = "messages"
) -> Callable[[Any], list[Send] | str]:
    """Make a router for `add_conditional_edges` that gives each tool call a task of its own.

    It sends every call of the last model message that has no answer yet to `node`, and goes to
    `otherwise` where there is none.
    """

    def route(state: Any) -> list[Send] | str:
        answered: set[str] = set()
        for message in reversed(_messages(state, messages_key)):
            if isinstance(message, ToolMessage):
                answered.add(message.tool_call_id)
            elif isinstance(message, AIMessage):
                calls = [call for call in message.tool_calls if call["id"] not in answered]
                return [Send(node, [call]) for call in calls] or otherwise
        return otherwise

    return route


def _messages(state: Any, key: str) -> list[Any]:
    if isinstance(state, list):
        return state
    held = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    return list(held or ())


def _runs_several(node: Any) -> None:
    """Say of a node that runs tools by itself that its tasks are for more than one call.

    LangGraph says so only of those that no `Send` has started.
    """
    node.metadata = {**(node.metadata or {}), "langgraph_path": ()}


# What was found


def _found(parts: Parts) -> tuple[GovernedNode, ...]:
    nodes = []
    for each in parts.tool_nodes:
        tools = each.node.tools_by_name
        governed = tuple(name for name, tool in tools.items() if binding_of(tool) is not None)
        if governed:
            nodes.append(GovernedNode(each.path, governed))
    return tuple(nodes)


def _check(parts: Parts, binding: Binding) -> None:
    """Refuse what cannot be governed, before anything is."""
    for path in parts.remote:
        if path[-1] not in binding.ungoverned:
            raise GovernError(
                f"The node {_shown(path)} is a graph that runs elsewhere, where no guard of this "
                f"process can stand; govern it there, and say ungoverned=[{path[-1]!r}] here."
            )
    in_nodes = {name for each in parts.tool_nodes for name in each.node.tools_by_name}
    for loose in parts.tools:
        name = loose.tool.name
        # The tools of a tool node are told to models in lists; a mapping is for calling them, and
        # so is a chain.
        told = name in in_nodes and not loose.run
        if told or name in binding.ungoverned:
            continue
        held = binding_of(loose.tool)
        if held is None:
            raise GovernError(
                f"The node {_shown(loose.path)} holds the tool {name!r} for itself, where no guard "
                f"can stand; give it a governed copy (adjudge_langchain.govern({name}, guard)) or "
                f"put it in a ToolNode; if it does not run it, say ungoverned=[{name!r}]."
            )
        governed_tool(loose.tool, binding)  # raises for another guard
    for each in parts.tool_nodes:
        for tool in each.node.tools_by_name.values():
            governed_tool(tool, binding)
    if not parts.tool_nodes and not parts.tools:
        raise GovernError(
            "The graph has no ToolNode, so there is no tool to govern. A node that runs tools by "
            "itself is given governed ones: adjudge_langchain.govern(tools, guard); or let it be "
            "governed_tool_node(tools, guard)."
        )


def _shown(path: Path) -> str:
    return repr(" > ".join(path))
