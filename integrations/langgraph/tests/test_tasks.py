"""The tasks of calls: whose workers they need, how often they are tried, and what is seen."""

import asyncio
import gc
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from graph_desk import GO, ONE, answers_to, builder_of, graph_of, run, told
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from adjudge import CallContext, Principal
from adjudge_langgraph import govern, governed_tool_node, pending, resume

CROWDED = Path(__file__).with_name("crowded_process.py")
NOTE = ("note", {"text": "x"})
PAY = ("pay", {"amount": 1})

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("layout", ["two_nodes", "many_sends", "one_node"])
def test_more_to_do_than_workers(style, layout):
    """Law 1: a call's task takes no worker for which the node's own task could be waiting."""
    subprocess.run([sys.executable, CROWDED, style, layout], check=True, timeout=120)


class TestRunAnew:
    def test_by_plain_code_on_a_loops_thread(self, pausing, note, pay, ran):
        """A run that is gone on with by `resume` inside of a coroutine runs nothing twice."""
        graph = graph_of([note, pay], pausing(), NOTE, PAY)
        run(graph)
        given = answers_to(graph)

        async def web() -> Any:
            return resume(graph, ONE, given)

        state = asyncio.run(web())

        assert ["noted x", "paid 1"] == told(state)
        assert [("note", "x"), ("pay", 1)] == ran

    def test_with_other_calls(self, pausing, pay, ran, record):
        """A node that does otherwise when it is run anew takes no result for another call's."""
        made: list[str] = []

        @tool
        def small(amount: int) -> str:
            """Pay a little."""
            ran.append(("small", amount))
            return f"small paid {amount}"

        node = ToolNode([small, pay])

        def tools(state: MessagesState) -> Any:
            made.append("")
            names = ["small", "pay"] if len(made) == 1 else ["pay", "small"]
            told_of: list[Any] = []
            for name in names:
                call: Any = {"type": "tool_call", "name": name, "args": {"amount": 1}, "id": name}
                told_of += node.invoke({"messages": [AIMessage("", tool_calls=[call])]})["messages"]
            return {"messages": told_of}

        builder = StateGraph(MessagesState).add_node("tools", tools).add_edge(START, "tools")
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing())
        run(graph)
        resume(graph, ONE, answers_to(graph))

        assert ([("small", 1)], ["cannot_pause"]) == (ran, record.codes())
        assert [] == pending(graph, ONE)


@in_any_style
class TestTrials:
    @pytest.mark.parametrize("made", ["govern", "governed_tool_node", "shared"])
    def test_of_each_call(self, pausing, note, ran, made, in_loop):
        """A node's retries are for the call that raised, however the node was made."""
        fails = [True, True]

        @tool
        def flaky(text: str) -> str:
            """Fail twice."""
            ran.append(("flaky", text))
            if fails:
                fails.pop()
                raise ValueError("no")
            return "ok"

        guard = pausing()
        tools = [note, flaky]
        node = governed_tool_node(tools, guard) if made == "governed_tool_node" else ToolNode(tools)
        policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
        builder = StateGraph(MessagesState)
        if made == "shared":
            builder.add_node("a first one", node)
        builder.add_node("model", lambda state: {"messages": [_asking(NOTE, ("flaky", NOTE[1]))]})
        builder.add_node("tools", node, retry_policy=policy)
        builder.add_edge(START, "model").add_edge("model", "tools")
        graph = builder.compile(checkpointer=InMemorySaver())

        state = run(
            graph if made == "governed_tool_node" else govern(graph, guard), in_loop=in_loop
        )

        assert ["noted x", "ok"] == told(state)
        assert (1, 3) == (ran.count(NOTE_RAN), ran.count(("flaky", "x")))

    def test_keep_no_results(self, pausing, in_loop):
        """What a body gave is not held once the node has it."""
        held = []

        class Large:
            """Something that is not to be held."""

        @tool(response_format="content_and_artifact")
        def load(text: str) -> Any:
            """Load."""
            large = Large()
            held.append(weakref.ref(large))
            return text, large

        class Keeping(InMemorySaver):
            """A saver that holds nothing itself."""

            def put_writes(self, *given: Any, **named: Any) -> None:
                """Hold nothing."""

            async def aput_writes(self, *given: Any, **named: Any) -> None:
                """Hold nothing."""

            def put(self, config: Any, checkpoint: Any, *rest: Any) -> Any:
                """Hold nothing."""
                return {
                    "configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}
                }

            async def aput(self, config: Any, checkpoint: Any, *rest: Any) -> Any:
                """Hold nothing."""
                return self.put(config, checkpoint)

        graph = graph_of([load], pausing(), ("load", {"text": "x"}), saver=Keeping())
        run(graph, in_loop=in_loop)
        gc.collect()

        assert [None] == [each() for each in held]


NOTE_RAN = ("note", "x")


def _asking(*calls: Any) -> AIMessage:
    made: Any = [
        {"type": "tool_call", "name": name, "args": args, "id": str(index)}
        for index, (name, args) in enumerate(calls)
    ]
    return AIMessage("", tool_calls=made)


class TestWhatIsSeen:
    def test_of_where_a_body_runs(self, pausing, ran):
        """A body and `context=` see the graph's node, as where nothing can wait."""
        seen: list[Any] = []

        @tool
        def where(text: str, config: RunnableConfig) -> str:
            """See."""
            seen.append(config["metadata"]["langgraph_node"])
            return text

        def who(given: Any) -> CallContext:
            seen.append(given.config["metadata"]["langgraph_node"])
            return CallContext(Principal("user", "bo"))

        builder = builder_of(ToolNode([where]), ("where", {"text": "x"}))
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing(), context=who)
        run(graph)

        assert ["tools", "tools"] == seen

    @pytest.mark.parametrize("fan_out", [False, True], ids=["one-task", "fan-out"])
    def test_of_tools_in_streams(self, pausing, note, fan_out):
        """The events of tools come at the graph's own place in a stream."""

        def events(guard: Any) -> list[Any]:
            builder = builder_of(ToolNode([note]), NOTE, NOTE, fan_out=fan_out)
            graph = builder.compile(checkpointer=InMemorySaver())
            graph = graph if guard is None else govern(graph, guard)
            return sorted(each["event"] for each in graph.stream(GO, ONE, stream_mode="tools"))

        assert events(None)
        assert events(None) == events(pausing())
