"""A worker of its own process that goes on with a workflow of three nodes, and may be killed.

Arguments: the store's file, the file that the tool appends to, and the node in which to die.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from adjudge import SQLiteRunStore, ToolSet, compile_policy, tool
from adjudge_runtime import FinalAnswer, GraphNode, ToolCall, run_graph

_, store, written, deadly = sys.argv


@tool()
def write(text: str) -> str:
    """Append a line."""
    with Path(written).open("a") as file:
        file.write(text + "\n")
    return "written"


class Worker:
    """Writes once, then answers; in one node it dies before the answer."""

    def __init__(self, name):
        self.name = name

    async def step(self, conversation):
        """Choose the next action."""
        if len(conversation) == 1:
            return ToolCall("write", {"text": self.name})
        if self.name == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return FinalAnswer(self.name)


allow = compile_policy({"version": 1, "defaults": {"on_no_match": "allow"}})
result = asyncio.run(
    run_graph(
        {name: GraphNode(Worker(name), ToolSet([write]), allow) for name in "abc"},
        "Goal",
        router=lambda outcome: {"a": "b", "b": "c"}.get(outcome.node),
        start="a",
        max_transitions=3,
        store=SQLiteRunStore(store),
        run_id="w",
    )
)
sys.stdout.write(f"{result.code}|{'-'.join(each.node for each in result.path)}")
