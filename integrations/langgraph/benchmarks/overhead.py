"""What governing costs in LangGraph: a graph that is a tool node, and one that asks a model.

    python integrations/langgraph/benchmarks/overhead.py --json docs/reference/speed.json

The model is a node that is scripted, so a run is the framework's own work and the tool's.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from adjudge import ToolGuard
from adjudge_conformance.overhead import ANSWER, ARGUMENTS, TOOL, Way, Ways, main
from adjudge_langgraph import govern

CALL: Any = {"name": TOOL, "args": dict(ARGUMENTS), "id": "call_1", "type": "tool_call"}


@tool
def refund(order: int, amount: float, to: str) -> str:
    """Refund an order."""
    return ANSWER


def model(state: MessagesState) -> dict[str, Any]:
    """Call the tool once, and then say what the tool said."""
    last = state["messages"][-1]
    if isinstance(last, HumanMessage):
        return {"messages": [AIMessage("", tool_calls=[CALL])]}
    return {"messages": [AIMessage(last.text)]}


def ways(guard: ToolGuard | None) -> Ways:
    """Make both ways, governed if there is a guard."""
    node = StateGraph(MessagesState).add_node("tools", ToolNode([refund]))
    alone: Any = node.add_edge(START, "tools").compile()
    loop = StateGraph(MessagesState).add_node("model", model).add_node("tools", ToolNode([refund]))
    loop.add_edge(START, "model").add_conditional_edges("model", tools_condition)
    graph: Any = loop.add_edge("tools", "model").compile()
    if guard is not None:
        govern(alone, guard)
        govern(graph, guard)
    called = {"messages": [AIMessage("", tool_calls=[CALL])]}
    go = {"messages": [HumanMessage("Go.")]}
    return {
        "call": Way(
            "`invoke` of a graph that is a `ToolNode`",
            lambda: alone.invoke(called)["messages"][-1].text,
        ),
        "run": Way(
            "`invoke` of a graph with a node that asks the model besides",
            lambda: graph.invoke(go)["messages"][-1].text,
        ),
    }


if __name__ == "__main__":
    main("langgraph", "langgraph", ways)
