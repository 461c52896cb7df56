"""Wherever a tool node is run: agents, functions, sends, loops, and with nothing to wait on."""

from typing import Any

import pytest
from graph_desk import (
    GO,
    GRANTED,
    ONE,
    REFUSED,
    answers_to,
    builder_of,
    run,
    told,
)
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.types import Send

import adjudge_langchain
from adjudge_langgraph import govern, governed_tool_node, pending, resume

MIXED = [("note", {"text": "x"}), ("pay", {"amount": 1}), ("pay", {"amount": 2})]


def by_amount(graph: Any) -> dict[int, str]:
    """The ids of the payments that wait."""
    return {each.request.args["amount"]: each.id for each in pending(graph, ONE)}


def _message(*calls: tuple[str, dict[str, Any]]) -> Any:
    made: Any = [
        {"type": "tool_call", "name": name, "args": args, "id": str(index)}
        for index, (name, args) in enumerate(calls)
    ]
    return {"messages": [HumanMessage("Go."), AIMessage("", tool_calls=made)]}


def _worker(tools: Any, *, sent: bool) -> Any:
    """Make a graph of one node, started by an edge or by a `Send`."""
    builder = StateGraph(MessagesState).add_node("worker", tools)
    if sent:
        builder.add_conditional_edges(START, lambda state: [Send("worker", state)], ["worker"])
    else:
        builder.add_edge(START, "worker")
    return builder.compile(checkpointer=InMemorySaver())


class TestPlaces:
    @pytest.mark.filterwarnings("ignore:create_react_agent")
    @pytest.mark.parametrize("version", ["v1", "v2"])
    def test_the_prebuilt_agent(self, pausing, note, pay, ran, version):
        """`create_react_agent` runs all calls in one task (v1) or in one each (v2)."""
        from langchain_core.runnables import RunnableLambda

        class Model(RunnableLambda):  # type: ignore[type-arg]
            def bind_tools(self, tools: Any) -> Any:
                return self

        def answer(messages: Any) -> AIMessage:
            asked = any(isinstance(each, AIMessage) for each in messages)
            return AIMessage("done") if asked else _message(*MIXED)["messages"][-1]

        agent: Any = create_react_agent(
            Model(answer), [note, pay], version=version, checkpointer=InMemorySaver()
        )
        graph = govern(agent, pausing())
        run(graph)
        ids = by_amount(graph)

        resume(graph, ONE, {ids[2]: GRANTED})
        resume(graph, ONE, {ids[1]: REFUSED})

        assert [("note", "x"), ("pay", 2)] == ran

    @pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
    @pytest.mark.parametrize("sent", [False, True], ids=["edge", "send"])
    def test_a_node_that_calls_a_tool_node(self, pausing, note, pay, ran, record, in_loop, sent):
        """A node of one's own may do otherwise when it is run anew, so nothing waits in it."""
        node = ToolNode([note, pay])

        def tools(state: MessagesState) -> Any:
            first = node.invoke(_message(("note", {"text": "x"})))["messages"]
            return {"messages": first + node.invoke(_message(("pay", {"amount": 1})))["messages"]}

        graph = govern(_worker(tools, sent=sent), pausing())
        state = run(graph, in_loop=in_loop)

        assert ([("note", "x")], ["cannot_pause"]) == (ran, record.codes())
        assert [] == pending(graph, ONE)
        assert "noted x" == told(state)[0]

    @pytest.mark.parametrize("sent", [False, True], ids=["edge", "send"])
    def test_a_node_that_holds_governed_tools(self, pausing, note, pay, ran, record, sent):
        """Nor does anything wait in a node that calls several governed tools by hand (law 6)."""
        guard = pausing()
        first, second = adjudge_langchain.govern([note, pay], guard)

        def tools(state: MessagesState) -> Any:
            text = first.invoke({"text": "x"}) + second.invoke({"amount": 1})
            return {"messages": [AIMessage(text)]}

        graph = govern(_worker(tools, sent=sent), guard)
        run(graph)

        assert ([("note", "x")], ["cannot_pause"]) == (ran, record.codes())
        assert [] == pending(graph, ONE)

    def test_a_body_that_calls_its_own_node(self, pausing, note, pay, ran, record):
        """What a body calls besides may not wait either: the body would do the rest again."""
        nodes: list[Any] = []

        @tool
        def both(text: str) -> str:
            """Take a note, and pay."""
            for call in (("note", {"text": text}), ("pay", {"amount": 1})):
                nodes[0].invoke(_message(call))
            return "both"

        nodes.append(ToolNode([note, pay, both]))
        for fan_out in (False, True):
            builder = builder_of(nodes[0], ("both", {"text": "x"}), fan_out=fan_out)
            graph = govern(builder.compile(checkpointer=InMemorySaver()), guard := pausing())
            run(graph)
            nodes[0] = ToolNode([note, pay, both])
            guard.close()

        assert ([("note", "x")] * 2, ["cannot_pause"] * 2) == (ran, record.codes())

    @pytest.mark.parametrize("fan_out", [False, True], ids=["one-task", "fan-out"])
    @pytest.mark.parametrize("deep", [False, True])
    def test_a_subgraph_that_keeps_nothing(self, pausing, note, pay, ran, record, fan_out, deep):
        """A subgraph without a checkpointer is begun anew when it goes on, so nothing waits."""
        builder = builder_of(ToolNode([note, pay]), *MIXED, fan_out=fan_out)
        inner = builder.compile(checkpointer=None if deep else False)
        if deep:
            middle = StateGraph(MessagesState).add_node("inner", inner)
            inner = middle.add_edge(START, "inner").compile(checkpointer=False)
        outer = StateGraph(MessagesState).add_node("middle", inner).add_edge(START, "middle")
        graph = govern(outer.compile(checkpointer=InMemorySaver()), pausing())

        run(graph)

        assert ([("note", "x")], ["cannot_pause"] * 2) == (ran, record.codes())

    def test_a_sync_call_on_the_loop_itself(self, pausing, note, pay, ran, record):
        """Where tasks could only be waited for by the loop that runs them, nothing waits."""
        node = ToolNode([note, pay])

        async def tools(state: MessagesState) -> Any:
            return node.invoke(state)

        graph = govern(builder_of(tools, *MIXED).compile(checkpointer=InMemorySaver()), pausing())

        state = run(graph, in_loop=True)

        assert ([("note", "x")], ["cannot_pause"] * 2) == (ran, record.codes())
        assert "done" == state["messages"][-1].content

    def test_several_calls_in_one_send(self, pausing, note, pay, ran):
        """A `Send` that carries several calls is divided as well."""
        builder = StateGraph(MessagesState).add_node("tools", ToolNode([note, pay]))
        sent = _message(*MIXED)["messages"][-1].tool_calls
        builder.add_conditional_edges(START, lambda _: [Send("tools", sent)], ["tools"])
        builder.add_edge("tools", END)
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing())
        run(graph)

        state = resume(graph, ONE, {by_amount(graph)[2]: GRANTED})

        assert [("note", "x"), ("pay", 2)] == ran
        assert [1] == [each.value["args"]["amount"] for each in state["__interrupt__"]]

    def test_a_node_made_governed(self, pausing, note, pay, ran):
        """`governed_tool_node` does the same without `govern`."""
        node = governed_tool_node([note, pay], pausing())
        graph = builder_of(node, *MIXED).compile(checkpointer=InMemorySaver())
        run(graph)

        resume(graph, ONE, answers_to(graph))

        assert [("note", "x"), ("pay", 1), ("pay", 2)] == [ran[0], *sorted(ran[1:])]

    def test_without_a_checkpointer(self, pausing, note, pay, ran, record):
        """A run that nobody could resume does not wait: what asks is denied."""
        graph = govern(builder_of(ToolNode([note, pay]), *MIXED).compile(), pausing())

        state = graph.invoke(GO)

        assert ([("note", "x")], ["cannot_pause"] * 2) == (ran, record.codes())
        assert "done" == state["messages"][-1].content

    def test_a_guard_that_does_not_pause(self, guard_of, note, pay):
        """The node is left to itself: its stream has the updates that it has ungoverned."""

        def updates(guard: Any) -> list[list[str]]:
            graph = builder_of(ToolNode([note, pay]), *MIXED).compile(checkpointer=InMemorySaver())
            governed = graph if guard is None else govern(graph, guard)
            return [list(each) for each in governed.stream(GO, ONE, stream_mode="updates")]

        assert updates(None) == updates(guard_of())
