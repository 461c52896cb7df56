"""A node that runs all calls of a message in one task: none runs twice, no answer goes astray."""

import asyncio
import threading
from typing import Annotated, Any

import pytest
from graph_desk import (
    GRANTED,
    ONE,
    REFUSED,
    answers_to,
    builder_of,
    graph_of,
    run,
    told,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, RetryPolicy, Send, interrupt

from adjudge_langgraph import aresume, govern, pending, resume

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
MIXED = [("note", {"text": "x"}), ("pay", {"amount": 1}), ("pay", {"amount": 2})]


def go_on(graph: Any, answers: Any, *, in_loop: bool) -> Any:
    """Resume in either style."""
    return asyncio.run(aresume(graph, ONE, answers)) if in_loop else resume(graph, ONE, answers)


def by_amount(graph: Any) -> dict[int, str]:
    """The ids of the payments that wait."""
    return {each.request.args["amount"]: each.id for each in pending(graph, ONE)}


@in_any_style
class TestAnswers:
    def test_all_questions_are_asked_at_once(self, pausing, note, pay, in_loop):
        """Every call that waits is asked about in the first pass."""
        graph = graph_of([note, pay], pausing(), *MIXED)

        state = run(graph, in_loop=in_loop)

        assert [1, 2] == sorted(each.value["args"]["amount"] for each in state["__interrupt__"])
        assert [1, 2] == sorted(by_amount(graph))

    def test_siblings_run_once(self, pausing, note, pay, ran, record, in_loop):
        """Finished siblings do not run again however often the node is resumed (law 6)."""
        graph = graph_of([note, pay], pausing(), *MIXED)
        run(graph, in_loop=in_loop)
        ids = by_amount(graph)

        go_on(graph, {ids[1]: GRANTED}, in_loop=in_loop)
        state = go_on(graph, {ids[2]: GRANTED}, in_loop=in_loop)

        assert [("note", "x"), ("pay", 1), ("pay", 2)] == ran
        assert ["noted x", "paid 1", "paid 2"] == told(state)
        assert ["action.completed"] * 3 == record.ends

    @pytest.mark.parametrize("granted", [1, 2])
    def test_reach_the_call_that_asked(self, pausing, note, pay, ran, in_loop, granted):
        """A grant for one payment pays that one, whichever is resumed or comes first."""
        graph = graph_of([note, pay], pausing(), *MIXED)
        run(graph, in_loop=in_loop)
        ids = by_amount(graph)
        refused = 3 - granted

        state = go_on(graph, {ids[granted]: GRANTED, ids[refused]: REFUSED}, in_loop=in_loop)

        assert [("note", "x"), ("pay", granted)] == ran
        assert told(state)[granted] == f"paid {granted}"
        assert told(state)[refused].startswith("[denied]")

    def test_do_not_depend_on_who_comes_first(self, pausing, ran, in_loop):
        """The mis-delivery of LangGraph's issue 6533: another call first takes no approval.

        https://github.com/langchain-ai/langgraph/issues/6533
        """
        first = threading.Event()

        @tool
        def pay(amount: int) -> str:
            """Pay."""
            ran.append(amount)
            return f"paid {amount}"

        calls = [("pay", {"amount": 1}), ("pay", {"amount": 999_999})]
        node = ToolNode([pay], wrap_tool_call=_late(first), awrap_tool_call=_alate())
        graph = govern(builder_of(node, *calls).compile(checkpointer=InMemorySaver()), pausing())
        run(graph, in_loop=in_loop)

        go_on(graph, {by_amount(graph)[1]: GRANTED}, in_loop=in_loop)

        assert [1] == ran
        assert [999_999] == list(by_amount(graph))

    def test_with_the_same_id_twice(self, pausing, pay, ran, in_loop):
        """Calls that share an id, even with equal arguments, are approved one by one."""
        calls = [("pay", {"amount": 1}), ("pay", {"amount": 1})]
        graph = graph_of([pay], pausing(), *calls, ids=["same", "same"])
        run(graph, in_loop=in_loop)
        first, second = (each.id for each in pending(graph, ONE))

        go_on(graph, {first: GRANTED}, in_loop=in_loop)
        assert [("pay", 1)] == ran
        state = go_on(graph, {second: REFUSED}, in_loop=in_loop)

        assert [("pay", 1)] == ran
        assert ["paid 1"] == [each for each in told(state) if not each.startswith("[denied]")]

    @pytest.mark.parametrize("value", ["yes", True, {"type": "approve"}, {"approved": True}])
    def test_of_the_graph_alone_grant_nothing(self, pausing, note, pay, ran, in_loop, value):
        """A value for the whole node, or for each interrupt, is no answer."""
        graph = graph_of([note, pay], pausing(), *MIXED)
        state = run(graph, in_loop=in_loop)

        each = {asked.id: value for asked in state["__interrupt__"]}
        run(graph, Command(resume=each), in_loop=in_loop)
        assert [("note", "x")] == ran
        go_on(graph, answers_to(graph), in_loop=in_loop)

        assert [("note", "x"), ("pay", 1), ("pay", 2)] == [ran[0], *sorted(ran[1:])]


def _late(first: threading.Event) -> Any:
    """Let the great payment through first, and the small one after it."""

    def wrap(request: Any, execute: Any) -> Any:
        if request.tool_call["args"]["amount"] == 1:
            assert first.wait(10)
            return execute(request)
        try:
            return execute(request)
        finally:
            first.set()

    return wrap


def _alate() -> Any:
    async def wrap(request: Any, execute: Any) -> Any:
        for _ in range(50 if request.tool_call["args"]["amount"] == 1 else 0):
            await asyncio.sleep(0)
        return await execute(request)

    return wrap


@in_any_style
class TestRunAgain:
    def test_after_a_sibling_that_raised(self, pausing, note, ran, in_loop):
        """What had ended when a sibling raised does not run again when the graph goes on."""
        fails = [True]

        @tool
        def flaky(text: str) -> str:
            """Fail once."""
            ran.append(("flaky", text))
            if fails.pop():
                raise ValueError("no")
            return "ok"  # pragma: no cover

        calls = [("note", {"text": "x"}), ("flaky", {"text": "y"})]
        fails.insert(0, False)
        graph = graph_of([note, flaky], pausing(), *calls)
        with pytest.raises(ValueError, match="no"):
            run(graph, in_loop=in_loop)

        state = run(graph, None, in_loop=in_loop)

        assert 1 == ran.count(("note", "x"))
        assert (2, "done") == (ran.count(("flaky", "y")), state["messages"][-1].content)

    def test_by_a_policy_of_retries(self, pausing, note, ran, in_loop):
        """A node's retries are for the call that raised, and for no other."""
        fails = [False, True, True]

        @tool
        def flaky(text: str) -> str:
            """Fail twice."""
            ran.append(("flaky", text))
            if fails.pop():
                raise ValueError("no")
            return "ok"

        calls = [("note", {"text": "x"}), ("flaky", {"text": "y"})]
        policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
        builder = StateGraph(MessagesState)
        builder.add_node("tools", ToolNode([note, flaky]), retry_policy=policy)
        builder.add_edge(START, "tools")
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing())

        state = run(graph, _message(*calls), in_loop=in_loop)

        assert ["noted x", "ok"] == told(state)
        assert (1, 3) == (ran.count(("note", "x")), ran.count(("flaky", "y")))

    def test_retries_come_to_an_end(self, pausing, note, ran, in_loop):
        """A call that goes on raising is tried as often as the policy says, not more."""

        @tool
        def flaky(text: str) -> str:
            """Fail."""
            ran.append(("flaky", text))
            raise ValueError("no")

        calls = [("note", {"text": "x"}), ("flaky", {"text": "y"})]
        policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
        builder = StateGraph(MessagesState)
        builder.add_node("tools", ToolNode([note, flaky]), retry_policy=policy)
        builder.add_edge(START, "tools")
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing())

        with pytest.raises(ValueError, match="no"):
            run(graph, _message(*calls), in_loop=in_loop)

        assert (1, 3) == (ran.count(("note", "x")), ran.count(("flaky", "y")))

    def test_by_bodies_that_wait_themselves(self, pausing, note, pay, ran, record, in_loop):
        """Each body gets its own answer, and siblings that had ended do not run again."""

        @tool
        def choose(of: str) -> str:
            """Choose."""
            return f"chose {interrupt(f'which {of}?')} of {of}"

        calls = [("choose", {"of": "a"}), ("note", {"text": "x"}), ("choose", {"of": "b"})]
        graph = graph_of([note, choose], pausing(), *calls)
        state = run(graph, in_loop=in_loop)
        ids = {each.value: each.id for each in state["__interrupt__"]}

        run(graph, Command(resume={ids["which b?"]: "2"}), in_loop=in_loop)
        state = run(graph, Command(resume={ids["which a?"]: "1"}), in_loop=in_loop)

        assert ["chose 1 of a", "noted x", "chose 2 of b"] == told(state)
        assert [("note", "x")] == ran
        assert 3 == record.ends.count("action.completed")

    def test_for_calls_that_have_answers(self, pausing, note, pay, ran, in_loop):
        """A node that is entered again with answered calls has new calls, which ask anew."""
        node = ToolNode([note, pay])
        builder = StateGraph(MessagesState).add_node("first", node).add_node("again", node)
        builder.add_edge(START, "first").add_edge("first", "again")
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing())
        run(graph, _message(("pay", {"amount": 1})), in_loop=in_loop)
        given = answers_to(graph)

        go_on(graph, given, in_loop=in_loop)
        assert [("pay", 1)] == ran
        (asked,) = pending(graph, ONE)
        assert asked.id not in given
        go_on(graph, {asked.id: REFUSED}, in_loop=in_loop)

        assert [("pay", 1)] == ran


def _with_a_clerk(tools: ToolNode) -> Any:
    """Put a graph of one node into another, which has a clerk besides."""
    inner = StateGraph(MessagesState).add_node("tools", tools).add_edge(START, "tools")
    outer = StateGraph(MessagesState).add_node("inner", inner.compile()).add_edge(START, "inner")
    return outer.add_node("clerk", lambda state: {"messages": [AIMessage("the clerk's")]})


def _message(*calls: tuple[str, dict[str, Any]]) -> Any:
    made: Any = [
        {"type": "tool_call", "name": name, "args": args, "id": str(index)}
        for index, (name, args) in enumerate(calls)
    ]
    return {"messages": [HumanMessage("Go."), AIMessage("", tool_calls=made)]}


@in_any_style
class TestResults:
    """What the node gives is what it gives ungoverned, though its calls ran apart."""

    def test_of_every_kind(self, guard_of, pausing, in_loop):
        """Messages, artifacts, commands, errors and unknown tools come out in the same order."""

        @tool(response_format="content_and_artifact")
        def made(name: str) -> tuple[str, dict[str, Any]]:
            """Make."""
            return f"made {name}", {"name": name}

        @tool
        def told_by_command(
            text: str,
            call_id: Annotated[str, InjectedToolCallId],
            state: Annotated[Any, InjectedState],
        ) -> Command[Any]:
            """Answer with a command."""
            seen = len(state["messages"])
            return Command(
                update={"messages": [ToolMessage(f"{text} {seen}", tool_call_id=call_id)]}
            )

        calls = [
            ("made", {"name": "a"}),
            ("told_by_command", {"text": "b"}),
            ("nobody", {}),
            ("made", {"nome": "c"}),
        ]

        def shown(guard: Any) -> list[Any]:
            node = ToolNode([made, told_by_command], handle_tool_errors=True)
            graph = builder_of(node, *calls).compile(checkpointer=InMemorySaver())
            state = run(graph if guard is None else govern(graph, guard), in_loop=in_loop)
            return [
                (each.content, each.tool_call_id, each.name, each.status, each.artifact)
                for each in state["messages"]
                if isinstance(each, ToolMessage)
            ]

        assert shown(None) == shown(guard_of()) == shown(pausing())

    def test_of_a_list_of_messages(self, pausing, note, in_loop):
        """A graph whose state is a list gets a list."""
        builder = StateGraph(Annotated[list[Any], lambda old, new: [*old, *new]])
        builder.add_node("tools", ToolNode([note])).add_edge(START, "tools")
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing())

        state = run(graph, _message(("note", {"text": "x"}))["messages"], in_loop=in_loop)

        assert "noted x" == state[-1].content

    def test_that_leave_the_graph(self, pausing, ran, in_loop):
        """A tool of a subgraph that hands over to the graph around does so."""

        @tool
        def hand_over(to: str) -> Command[Any]:
            """Hand over."""
            ran.append(to)
            return Command(graph=Command.PARENT, goto=[Send(to, {"messages": []})])

        inner = StateGraph(MessagesState).add_node("tools", ToolNode([hand_over]))
        outer = StateGraph(MessagesState).add_node(
            "inner", inner.add_edge(START, "tools").compile()
        )
        outer.add_node("clerk", lambda state: {"messages": [AIMessage("the clerk's")]})
        outer.add_edge(START, "inner")
        graph = govern(outer.compile(checkpointer=InMemorySaver()), pausing())

        state = run(graph, _message(("hand_over", {"to": "clerk"})), in_loop=in_loop)

        assert (["clerk"], "the clerk's") == (ran, state["messages"][-1].content)

    def test_raised_towards_the_graph_around(self, pausing, ran, in_loop):
        """A tool that leaves by an exception leaves for the same graph as ungoverned."""
        from langgraph.errors import ParentCommand

        @tool
        def hand_over(to: str) -> str:
            """Hand over."""
            ran.append(to)
            raise ParentCommand(Command(graph=Command.PARENT, goto=to))

        inner = StateGraph(MessagesState).add_node("tools", ToolNode([hand_over]))
        outer = StateGraph(MessagesState).add_node(
            "inner", inner.add_edge(START, "tools").compile()
        )
        outer.add_node("clerk", lambda state: {"messages": [AIMessage("the clerk's")]})
        outer.add_edge(START, "inner")

        def ended(guard: Any) -> Any:
            graph = outer.compile(checkpointer=InMemorySaver())
            graph = graph if guard is None else govern(graph, guard)
            state = run(graph, _message(("hand_over", {"to": "clerk"})), in_loop=in_loop)
            return state["messages"][-1].content

        assert ended(None) == ended(pausing()) == "the clerk's"
