"""Graphs for the tests here, whose models are scripts: what they are made of, and their runs."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from adjudge import ApprovalDecision, ToolGuard
from adjudge_langgraph import fan_out_tool_calls, govern, pending

GRANTED = ApprovalDecision(True, "ana")
REFUSED = ApprovalDecision(False, "ana", "no")
ONE: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": [{"role": "user", "content": "Go."}]}


def model_of(*calls: tuple[str, dict[str, Any]], ids: Sequence[str] = ()) -> Callable[[Any], Any]:
    """Give a node that makes calls, all in one message, and is done once they have answers."""
    made: Any = [
        {"type": "tool_call", "name": name, "args": args, "id": call_id}
        for (name, args), call_id in zip(calls, ids or map(str, range(len(calls))), strict=True)
    ]

    def model(state: MessagesState) -> Any:
        asked = any(isinstance(each, AIMessage) for each in state["messages"])
        return {"messages": [AIMessage("done") if asked else AIMessage("", tool_calls=made)]}

    return model


def builder_of(node: Any, *calls: tuple[str, dict[str, Any]], **options: Any) -> Any:
    """Build a graph of a model and one node for all its tools' calls, or of one task each."""
    route = fan_out_tool_calls() if options.pop("fan_out", False) else tools_condition
    builder = StateGraph(MessagesState).add_node("model", model_of(*calls, **options))
    builder.add_node("tools", node)
    builder.add_edge(START, "model").add_conditional_edges("model", route)
    return builder.add_edge("tools", "model")


def graph_of(tools: Any, guard: ToolGuard, *calls: Any, saver: Any = None, **options: Any) -> Any:
    """Compile such a graph on a saver in memory, governed."""
    builder = builder_of(ToolNode(tools), *calls, **options)
    return govern(builder.compile(checkpointer=saver or InMemorySaver()), guard)


def run(
    graph: Any, given: Any = GO, *, in_loop: bool = False, config: Any = ONE, **options: Any
) -> Any:
    """Run a graph until it ends or waits."""
    if in_loop:
        return asyncio.run(graph.ainvoke(given, config, **options))
    return graph.invoke(given, config, **options)


def told(state: Any) -> list[str]:
    """Give the tools' answers in a state, in order."""
    return [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]


def answers_to(graph: Any, config: Any = ONE, answer: ApprovalDecision = GRANTED) -> Any:
    """Answer everything that waits with the same words."""
    return {each.id: answer for each in pending(graph, config)}
