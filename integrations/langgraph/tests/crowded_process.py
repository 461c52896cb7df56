"""Runs graphs that have more to do than workers, in a process that can be ended if it hangs.

It says of each that it is done: its layout, and whether it ran as plain code or in a loop.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graph_desk import builder_of, run, told
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send

from adjudge import SQLiteLedger, ToolGuard, compile_policy, pause_approval
from adjudge_langgraph import govern

CALLS: Any = [
    {"type": "tool_call", "name": "note", "args": {"text": each}, "id": each} for each in "xy"
]
LIMITED: Any = {"configurable": {"thread_id": "1"}, "max_concurrency": 1}
FREE: Any = {"configurable": {"thread_id": "1"}}
SENDS = 40


@tool
def note(text: str) -> str:
    """Take a note."""
    return f"noted {text}"


def two_nodes() -> tuple[Any, Any, int]:
    """Two tool nodes at once, and one worker."""
    builder = StateGraph(MessagesState).add_node("model", lambda state: {"messages": _asked()})
    for name in ("one", "two"):
        builder.add_node(name, ToolNode([note])).add_edge("model", name)
    return builder.add_edge(START, "model"), LIMITED, 4


def many_sends() -> tuple[Any, Any, int]:
    """More tasks at once than there are workers."""
    builder = StateGraph(MessagesState).add_node("tools", ToolNode([note]))
    builder.add_conditional_edges(START, lambda _: [Send("tools", CALLS)] * SENDS, ["tools"])
    return builder, FREE, 2 * SENDS


def one_node() -> tuple[Any, Any, int]:
    """One tool node and one worker, with a limit of time, so that the node has a worker."""
    return builder_of(ToolNode([note]), ("note", {"text": "x"})), LIMITED, 1


def _asked() -> Any:
    from langchain_core.messages import AIMessage

    return [AIMessage("", tool_calls=CALLS)]


def main(layout: Any, in_loop: bool, folder: Path) -> None:
    """Run one, and see that all calls were made."""
    builder, config, calls = layout()
    rules = [{"id": "all", "match": "always", "decision": "allow"}]
    ledger = pause_approval(SQLiteLedger(folder / "ledger.sqlite"))
    guard = ToolGuard(policy=compile_policy({"version": 1, "rules": rules}), on_approval=ledger)
    graph = govern(builder.compile(checkpointer=InMemorySaver()), guard)
    graph.step_timeout = 30
    given = {"messages": [HumanMessage("Go.")]}
    state = run(graph, given, in_loop=in_loop, config=config)
    assert calls == len(told(state)), told(state)
    guard.close()


if __name__ == "__main__":
    for layout in (two_nodes, many_sends, one_node):
        for in_loop in (False, True):
            with TemporaryDirectory() as folder:
                main(layout, in_loop, Path(folder))
            print(layout.__name__, "async" if in_loop else "sync", flush=True)
