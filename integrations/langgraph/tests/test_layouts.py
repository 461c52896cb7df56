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
)
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.types import Send

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

    def test_a_node_that_a_function_calls(self, pausing, note, pay, ran):
        """A tool node inside of a node of one's own is as safe to be run again."""
        node = ToolNode([note, pay])

        def tools(state: MessagesState) -> Any:
            ran.append("entered")
            return node.invoke(state)

        graph = govern(builder_of(tools, *MIXED).compile(checkpointer=InMemorySaver()), pausing())
        run(graph)

        resume(graph, ONE, answers_to(graph))

        assert 1 == ran.count(("note", "x"))
        assert [("pay", 1), ("pay", 2)] == sorted(each for each in ran if each[0] == "pay")

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
