"""An approval that outlives the process, on a LangGraph graph of one's own.

Shows: a run that waits for a person lies in LangGraph's checkpointer, its process ends, and another
one goes on with the answer; whatever is resumed a second time runs nothing. Needs:
`adjudge-langgraph`, `langchain-openai`, `langgraph-checkpoint-sqlite`, and `adjudge-conformance`
for the scripted model; no key, no network.

    python on_langgraph.py start FOLDER
    python on_langgraph.py resume FOLDER --grant      (or --refuse)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from desk import MODEL, TASK, Desk, run
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import SecretStr

import adjudge_langgraph as governed
from adjudge import ApprovalDecision, PendingApproval

THREAD: Any = {"configurable": {"thread_id": "order 7"}}


@contextmanager
def graph_of(desk: Desk, base_url: str) -> Iterator[Any]:
    """Build the graph on its checkpoints, the same in each process."""
    tools = [StructuredTool.from_function(desk.tool())]
    model = ChatOpenAI(
        model=MODEL, base_url=base_url, api_key=SecretStr("not-needed"), use_responses_api=True
    ).bind_tools(tools)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState).add_node("model", ask).add_node("tools", ToolNode(tools))
    builder.add_edge(START, "model").add_edge("tools", "model")
    builder.add_conditional_edges("model", governed.fan_out_tool_calls("tools"))
    with SqliteSaver.from_conn_string(str(desk.folder / "checkpoints.db")) as saver:
        yield governed.govern(builder.compile(checkpointer=saver), desk.guard())


def start(desk: Desk, base_url: str) -> tuple[bytes, Sequence[PendingApproval]]:
    """Run until the policy has a person asked; give where the run waits, and the questions."""
    with graph_of(desk, base_url) as graph:
        graph.invoke({"messages": [{"role": "user", "content": TASK}]}, THREAD)
        # The thread, and the checkpoint at which it waits.
        saved = graph.get_state(THREAD).config
        return json.dumps(saved).encode(), governed.pending(graph, THREAD)


def resume(desk: Desk, base_url: str, saved: bytes, answers: Mapping[str, ApprovalDecision]) -> str:
    """Go on where the run waits."""
    with graph_of(desk, base_url) as graph:
        state = governed.resume(graph, json.loads(saved), answers)
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    run(start, resume)
