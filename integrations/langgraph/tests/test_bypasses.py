"""The ways around that are known for LangGraph, each tried against what governs."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from graph_desk import GO, GRANTED, ONE, builder_of, graph_of, run, told
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, hook_config
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, StateUpdate

import adjudge_langchain
from adjudge import GovernError
from adjudge_langchain import vouching_for_pauses
from adjudge_langgraph import govern, governed_tool_node, pending, resume

DENIED = "[denied] not permitted by policy"
BIG = {"id": "big", "match": {"args.amount": {"gt": 100}}, "decision": "deny"}
PAY = ("pay", {"amount": 1000})

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
by_either = pytest.mark.parametrize("made", [False, True], ids=["govern", "governed_tool_node"])


def graph_with(made: bool, tools: Any, guard: Any, *calls: Any, **options: Any) -> Any:
    """Make a graph that is governed one way or the other."""
    if made:
        return builder_of(governed_tool_node(tools, guard, **options), *calls).compile()
    return govern(builder_of(ToolNode(tools, **options), *calls).compile(), guard)


@in_any_style
@by_either
class TestWrappers:
    """What wraps the calls of a tool node stands outside of the guard."""

    def test_that_rewrite_arguments(self, guard_of, pay, ran, made, in_loop):
        """What was rewritten is what is judged."""

        def changed(request: Any) -> Any:
            return request.override(tool_call={**request.tool_call, "args": PAY[1]})

        async def awrap(request: Any, execute: Any) -> Any:
            return await execute(changed(request))

        graph = graph_with(
            made,
            [pay],
            guard_of(BIG),
            ("pay", {"amount": 5}),
            wrap_tool_call=lambda request, execute: execute(changed(request)),
            awrap_tool_call=awrap,
        )

        assert ([DENIED], []) == (told(run(graph, in_loop=in_loop)), ran)

    @pytest.mark.parametrize("given", ["wrap_tool_call", "awrap_tool_call"])
    def test_for_one_style_alone(self, guard_of, pay, ran, made, in_loop, given):
        """A wrapper that the node skips in the other style is not what governs.

        https://github.com/langchain-ai/langgraph/issues/8217
        """

        async def awrap(request: Any, execute: Any) -> Any:
            return await execute(request)

        wrapper = awrap if given == "awrap_tool_call" else lambda request, execute: execute(request)

        graph = graph_with(made, [pay], guard_of(BIG), PAY, **{given: wrapper})

        assert ([DENIED], []) == (told(run(graph, in_loop=in_loop)), ran)

    @pytest.mark.parametrize("handling", [True, False, "failed", (ValueError,), lambda e: "failed"])
    def test_however_errors_are_handled(self, pausing, pay, ran, made, in_loop, handling):
        """No setting for errors takes a pause for one, nor a denial for a result.

        https://github.com/langchain-ai/langgraph/issues/8217
        """

        async def awrap(request: Any, execute: Any) -> Any:
            return await execute(request)

        options = {
            "handle_tool_errors": handling,
            "wrap_tool_call": lambda request, execute: execute(request),
            "awrap_tool_call": awrap,
        }
        guard = pausing(BIG)
        node = governed_tool_node([pay], guard, **options) if made else ToolNode([pay], **options)
        graph = builder_of(node, PAY, ("pay", {"amount": 1})).compile(checkpointer=InMemorySaver())
        govern(graph, guard)

        state = run(graph, in_loop=in_loop)
        assert [{"amount": 1}] == [each.value["args"] for each in state["__interrupt__"]]
        (asked,) = pending(graph, ONE)
        state = resume(graph, ONE, {asked.id: GRANTED})

        assert ([DENIED, "paid 1"], [("pay", 1)]) == (told(state), ran)

    def test_that_swallow_everything(self, pausing, pay, ran, made, in_loop):
        """A wrapper that takes the interrupt for an error loses the question; nothing runs."""

        def swallow(request: Any, execute: Any) -> Any:
            try:
                return execute(request)
            except Exception:
                return ToolMessage("failed", tool_call_id=request.tool_call["id"])

        async def aswallow(request: Any, execute: Any) -> Any:
            try:
                return await execute(request)
            except Exception:
                return ToolMessage("failed", tool_call_id=request.tool_call["id"])

        options = {"wrap_tool_call": swallow, "awrap_tool_call": aswallow}
        guard = pausing()
        node = governed_tool_node([pay], guard, **options) if made else ToolNode([pay], **options)
        graph = builder_of(node, PAY).compile(checkpointer=InMemorySaver())

        state = run(govern(graph, guard), in_loop=in_loop)

        assert (["failed"], []) == (told(state), ran)


class Jumping(AgentMiddleware):
    """Jumps to the tools after each answer of the model, and so past other middleware."""

    @hook_config(can_jump_to=["tools"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        """Jump."""
        last = state["messages"][-1]
        return {"jump_to": "tools"} if isinstance(last, AIMessage) and last.tool_calls else None


class Scripted(GenericFakeChatModel):
    """A model that takes tools, and says what it was told to."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """Know of them."""
        return self


class TestAgents:
    @pytest.mark.parametrize("jumping_first", [True, False])
    def test_a_rejected_call_that_runs_all_the_same(self, guard_of, pay, ran, jumping_first):
        """A jump past the human in the loop does not pass the guard.

        https://github.com/langchain-ai/langchain/issues/40492
        """
        calls: Any = [{"type": "tool_call", "name": "pay", "args": PAY[1], "id": "1"}]
        model = Scripted(messages=iter([AIMessage("", tool_calls=calls), AIMessage("done")]))
        middleware: list[Any] = [HumanInTheLoopMiddleware({"pay": True}), Jumping()]
        agent: Any = create_agent(
            model,
            [pay],
            middleware=middleware[::-1] if jumping_first else middleware,
            checkpointer=InMemorySaver(),
        )
        graph = govern(agent, guard_of(BIG))

        state = run(graph)
        if state.get("__interrupt__"):
            run(graph, Command(resume={"decisions": [{"type": "reject"}]}))

        assert [] == ran


@in_any_style
class TestFunctionalApi:
    """Tasks run tools by hand, so the tools themselves are governed."""

    def graph(self, tool: Any, *, saver: Any = None) -> Any:
        """Make an entrypoint with a task that runs a tool."""

        @task
        def paid(amount: int) -> str:
            return str(tool.invoke({"amount": amount}))

        @task
        async def apaid(amount: int) -> str:
            return str(await tool.ainvoke({"amount": amount}))

        @entrypoint(checkpointer=saver)
        def graph(amount: int) -> str:
            return paid(amount).result()

        @entrypoint(checkpointer=saver)
        async def agraph(amount: int) -> str:
            return await apaid(amount)

        return graph, agraph

    def test_a_governed_tool_in_a_task(self, guard_of, pay, ran, in_loop):
        """Its calls are judged, running and stopped."""
        tool = adjudge_langchain.govern(pay, guard_of(BIG))
        graph = self.graph(tool)[in_loop]

        assert DENIED == run(graph, 1000, in_loop=in_loop)
        assert "paid 5" == run(graph, 5, in_loop=in_loop)
        assert [("pay", 5)] == ran

    def test_a_tool_that_is_not(self, guard_of, pay, in_loop):
        """`govern` sees that a task holds a tool that nobody governs."""
        with pytest.raises(GovernError, match="'pay' for itself"):
            govern(self.graph(pay)[in_loop], guard_of())

    def test_what_needs_a_person(self, pausing, pay, ran, in_loop, record):
        """A task could run more than the call, so nothing waits there unless somebody vouches."""
        guard = pausing()
        tool = adjudge_langchain.govern(pay, guard)
        graph = self.graph(tool, saver=InMemorySaver())[in_loop]
        govern(graph, guard)

        assert run(graph, 1, in_loop=in_loop).startswith("[denied]")
        assert ["cannot_pause"] == record.codes()
        with vouching_for_pauses():
            run(graph, 1, in_loop=in_loop)
            (asked,) = pending(graph, ONE)

        assert (("pay", []), {"amount": 1}) == ((asked.request.tool, ran), asked.request.args)


# Everything by which a node or a graph can be run


async def _all(parts: Any) -> list[Any]:
    return [part async for part in parts]


async def _given(value: Any) -> Any:
    yield value


NODES: dict[str, Callable[[Any, Any], Any]] = {
    "invoke": lambda node, given: node.invoke(given),
    "batch": lambda node, given: node.batch([given])[0],
    "batch_as_completed": lambda node, given: next(iter(node.batch_as_completed([given])))[1],
    "stream": lambda node, given: list(node.stream(given))[-1],
    "transform": lambda node, given: list(node.transform(iter([given])))[-1],
    "bind": lambda node, given: node.bind().invoke(given),
    "map": lambda node, given: node.map().invoke([given])[0],
    "pipe": lambda node, given: (node | dict).invoke(given),
    "with_config": lambda node, given: node.with_config(tags=["x"]).invoke(given),
    "with_fallbacks": lambda node, given: node.with_fallbacks([node]).invoke(given),
    "with_listeners": lambda node, given: node.with_listeners().invoke(given),
    "with_retry": lambda node, given: node.with_retry().invoke(given),
    "with_types": lambda node, given: node.with_types(input_type=dict).invoke(given),
}
ANODES: dict[str, Callable[[Any, Any], Any]] = {
    "ainvoke": lambda node, given: node.ainvoke(given),
    "abatch": lambda node, given: node.abatch([given]),
    "abatch_as_completed": lambda node, given: _all(node.abatch_as_completed([given])),
    "astream": lambda node, given: _all(node.astream(given)),
    "astream_events": lambda node, given: _all(node.astream_events(given, version="v2")),
    "atransform": lambda node, given: _all(node.atransform(_given(given))),
}
GRAPHS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda graph: graph.invoke(GO, ONE),
    "stream": lambda graph: list(graph.stream(GO, ONE)),
    "stream_events": lambda graph: list(graph.stream_events(GO, ONE, version="v3")),
    "batch": lambda graph: graph.batch([GO], ONE),
    "batch_as_completed": lambda graph: list(graph.batch_as_completed([GO], ONE)),
    "transform": lambda graph: list(graph.transform(iter([GO]), ONE)),
    "bind": lambda graph: graph.bind().invoke(GO, ONE),
    "map": lambda graph: graph.map().invoke([GO], ONE),
    "pipe": lambda graph: (graph | dict).invoke(GO, ONE),
    "with_config": lambda graph: graph.with_config(tags=["x"]).invoke(GO, ONE),
    "with_fallbacks": lambda graph: graph.with_fallbacks([graph]).invoke(GO, ONE),
    "with_listeners": lambda graph: graph.with_listeners().invoke(GO, ONE),
    "with_retry": lambda graph: graph.with_retry().invoke(GO, ONE),
    "with_types": lambda graph: graph.with_types(input_type=dict).invoke(GO, ONE),
    "copy": lambda graph: graph.copy().invoke(GO, ONE),
    "as_tool": lambda graph: graph.as_tool(
        name="x", arg_types={"messages": list[Any]}, description="x"
    ).invoke(GO, ONE),
    "ainvoke": lambda graph: asyncio.run(graph.ainvoke(GO, ONE)),
    "astream": lambda graph: asyncio.run(_all(graph.astream(GO, ONE))),
    "astream_events": lambda graph: asyncio.run(_all(graph.astream_events(GO, ONE, version="v2"))),
    "abatch": lambda graph: asyncio.run(graph.abatch([GO], ONE)),
    "abatch_as_completed": lambda graph: asyncio.run(_all(graph.abatch_as_completed([GO], ONE))),
    "atransform": lambda graph: asyncio.run(_all(graph.atransform(_given(GO), ONE))),
}


@pytest.mark.filterwarnings("ignore:This API is in beta", "ignore:The v3 streaming protocol")
class TestEveryEntrance:
    @pytest.mark.parametrize("way", NODES.values(), ids=NODES)
    def test_a_run_of_the_node(self, pausing, pay, ran, record, way):
        """Law 3: however a node of a function calls a tool node."""
        node = governed_tool_node([pay], pausing(BIG))

        def tools(state: MessagesState) -> None:
            way(node, state)

        run(builder_of(tools, PAY).compile(checkpointer=InMemorySaver()))

        assert ([], ["denied"]) == (ran, record.codes())

    @pytest.mark.parametrize("way", ANODES.values(), ids=ANODES)
    def test_a_run_of_the_node_in_coroutines(self, pausing, pay, ran, record, way):
        """Law 3: the same on an event loop."""
        node = governed_tool_node([pay], pausing(BIG))

        async def tools(state: MessagesState) -> None:
            await way(node, state)

        run(builder_of(tools, PAY).compile(checkpointer=InMemorySaver()), in_loop=True)

        assert ([], ["denied"]) == (ran, record.codes())

    @pytest.mark.parametrize("way", GRAPHS.values(), ids=GRAPHS)
    def test_a_run_of_the_graph(self, pausing, pay, ran, record, way):
        """Law 3: however a governed graph is run."""
        graph = graph_of([pay], pausing(BIG), PAY)

        way(graph)

        assert ([], ["denied"]) == (ran, record.codes())

    @pytest.mark.parametrize("way", ["update_state", "bulk_update_state"])
    def test_a_state_that_is_written(self, pausing, pay, ran, record, way):
        """A call that somebody writes into the state is judged like a model's own."""
        builder = StateGraph(MessagesState).add_node("tools", ToolNode([pay]))
        builder.add_node("model", lambda state: {}).add_edge(START, "model")
        builder.add_edge("model", "tools")
        graph = govern(builder.compile(checkpointer=InMemorySaver()), pausing(BIG))
        calls: Any = [{"type": "tool_call", "name": "pay", "args": PAY[1], "id": "1"}]
        values = {"messages": [AIMessage("", tool_calls=calls)]}

        if way == "update_state":
            graph.update_state(ONE, values, as_node="model")
        else:
            graph.bulk_update_state(ONE, [[StateUpdate(values, "model")]])
        run(graph, None)

        assert ([], ["denied"]) == (ran, record.codes())
