"""The tasks of calls: whose workers they need, how often they are tried, and what is seen."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
from graph_desk import GO, ONE, answers_to, builder_of, graph_of, run, told
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send

import adjudge_langchain
from adjudge import CallContext, Principal
from adjudge_langgraph import govern, governed_tool_node, pending, resume

CROWDED = Path(__file__).with_name("crowded_process.py")
NOTE = ("note", {"text": "x"})
PAY = ("pay", {"amount": 1})

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])


@pytest.fixture(scope="module")
def crowded() -> list[str]:
    """Give the graphs that came to their end, each before the next began."""
    with subprocess.Popen([sys.executable, CROWDED], stdout=subprocess.PIPE, text=True) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(240)
        process.kill()
        return process.stdout.read().splitlines()


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("layout", ["two_nodes", "many_sends", "one_node"])
def test_more_to_do_than_workers(crowded, layout, style):
    """Law 1: a call's task takes no worker for which the node's own task could be waiting."""
    assert f"{layout} {style}" in crowded


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

    @pytest.mark.parametrize("fan_out", [False, True], ids=["one-task", "fan-out"])
    def test_in_a_graph_that_keeps_nothing(self, pausing, note, pay, ran, record, fan_out):
        """A graph that is also elsewhere waits nowhere inside of one that is begun anew."""
        desk = builder_of(ToolNode([note, pay]), NOTE, PAY, fan_out=fan_out).compile()
        begun_anew = StateGraph(MessagesState).add_node("desk", desk).add_edge(START, "desk")
        builder = StateGraph(MessagesState).add_node("elsewhere", desk)
        builder.add_node("anew", begun_anew.compile(checkpointer=False)).add_edge(START, "anew")
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing())
        run(graph)

        assert ([("note", "x")], ["cannot_pause"]) == (ran, record.codes())

    def test_by_a_second_node_with_the_same_tools(self, pausing, note, pay, ran, record):
        """Each node that runs governed tools by hand is known, though all hold one mapping."""
        guard = pausing()
        tools = {each.name: adjudge_langchain.govern(each, guard) for each in (note, pay)}

        def first(state: MessagesState) -> Any:
            return {"messages": [tools["note"].invoke(_call(*NOTE))]}

        def second(state: MessagesState) -> Any:
            return {
                "messages": [tools[name].invoke(_call(name, args)) for name, args in (NOTE, PAY)]
            }

        builder = StateGraph(MessagesState).add_node("first", first).add_node("second", second)
        builder.add_edge(START, "first")
        builder.add_conditional_edges("first", lambda state: [Send("second", state)], ["second"])
        graph = govern(builder.compile(checkpointer=InMemorySaver()), guard)
        run(graph)

        assert ([NOTE_RAN, NOTE_RAN], ["cannot_pause"]) == (ran, record.codes())


@pytest.mark.parametrize("workers", [1, 2])
def test_no_call_begins_after_one_that_raised(pausing, ran, workers):
    """Law 1: of calls that wait for a thread none begins, as in the pool of the node itself."""
    never = threading.Event()

    @tool
    def bad(text: str) -> str:
        """Raise."""
        ran.append(text)
        raise ValueError(text)

    @tool
    def slow(text: str) -> str:
        """Take a while."""
        ran.append(text)
        never.wait(0.2)
        return text

    def count(guard: Any) -> int:
        ran.clear()
        node = ToolNode([bad, slow])
        calls = [("slow", {"text": str(number)}) for number in range(1, 6)]
        builder = builder_of(node, ("bad", {"text": "0"}), *calls)
        graph = builder.compile(checkpointer=InMemorySaver())
        graph = graph if guard is None else govern(graph, guard)
        with pytest.raises(ValueError, match="0"):
            run(graph, config={**ONE, "max_concurrency": workers})
        return len(ran)

    assert count(None) in range(1, 6)
    assert count(pausing()) in range(1, 6)


class Connection:
    """Something that cannot be kept."""

    def __reduce__(self) -> Any:
        """Refuse."""
        raise TypeError

    def __deepcopy__(self, memo: Any) -> Any:
        """Stay the same."""
        return self


class Connected(MessagesState):
    """A state with something in it that is not kept."""

    connection: Annotated[Any, UntrackedValue]


@in_any_style
def test_what_no_checkpointer_keeps(pausing, in_loop):
    """Law 1: a tool may put into an untracked channel what cannot be serialised."""

    @tool
    def connect(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Connect."""
        answer = ToolMessage("connected", tool_call_id=call_id)
        return Command(update={"connection": Connection(), "messages": [answer]})

    builder: Any = StateGraph(Connected).add_node("tools", ToolNode([connect]))
    builder.add_node("model", lambda state: {"messages": [_asking(("connect", {}))]})
    builder.add_node("end", lambda state: {"messages": [type(state["connection"]).__name__]})
    builder.add_edge(START, "model").add_edge("model", "tools").add_edge("tools", "end")
    graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing())

    assert "Connection" == run(graph, in_loop=in_loop)["messages"][-1].content


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
    return AIMessage("", tool_calls=[_call(*each, str(index)) for index, each in enumerate(calls)])


def _call(name: str, args: Any, call_id: str = "0") -> Any:
    return {"type": "tool_call", "name": name, "args": args, "id": call_id}


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

    def test_of_a_model_that_is_told_of_tools(self, pausing, note):
        """What a stream says of the node that asks the model is as ungoverned."""
        tools = [note]

        def seen(guard: Any) -> Any:
            model = GenericFakeChatModel(messages=iter([AIMessage("hello")]))

            def ask(state: MessagesState) -> Any:
                return {"messages": [model.bind(told_of=len(tools)).invoke(state["messages"])]}

            builder = StateGraph(MessagesState).add_node("model", ask).add_edge(START, "model")
            graph = builder.add_node("tools", ToolNode(tools)).compile(checkpointer=InMemorySaver())
            graph = graph if guard is None else govern(graph, guard)
            streamed = graph.stream(GO, ONE, stream_mode="messages")
            return [told_of["langgraph_path"] for _, told_of in streamed]

        assert seen(None) == seen(pausing()) != []

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
