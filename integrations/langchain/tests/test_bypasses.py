"""The ways around that are known for LangChain, each tried against what governs."""

import asyncio
import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import ConfigurableField
from langchain_core.tools import tool
from langgraph.func import entrypoint
from langgraph.prebuilt import ToolNode

from adjudge import GovernError
from adjudge_langchain import AdjudgeMiddleware, govern

DENIED = "[denied] not permitted by policy"
BIG = {"id": "big", "match": {"args.amount": {"gt": 100}}, "decision": "deny"}

in_any_style = pytest.mark.parametrize("in_loop", [False, True], ids=["sync", "async"])
by_either = pytest.mark.parametrize("by", ["govern", "middleware"])


@pytest.fixture
def pay(ran):
    """A tool that pays."""

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return f"paid {amount}"

    return pay


def agent_of(stage, guard, by, tools, *middleware, **options):
    """Make an agent that is governed one way or the other."""
    if by == "govern":
        return govern(stage.agent(tools, middleware=list(middleware), **options), guard)
    return stage.agent(tools, middleware=[*middleware, AdjudgeMiddleware(guard)], **options)


class Rewriting(AgentMiddleware):
    """Changes the arguments of each call, or its tool."""

    def __init__(self, **overrides: Any) -> None:
        super().__init__()
        self.overrides = overrides

    def _changed(self, request):
        made = dict(self.overrides)
        if "args" in made:
            made["tool_call"] = {**request.tool_call, "args": made.pop("args")}
        return request.override(**made)

    def wrap_tool_call(self, request, handler):
        """Change it."""
        return handler(self._changed(request))

    async def awrap_tool_call(self, request, handler):
        """Change it."""
        return await handler(self._changed(request))


@in_any_style
class TestOtherMiddleware:
    @by_either
    def test_rewrites_the_arguments(self, stage, guard_of, pay, ran, by, in_loop):
        """What was rewritten is what is judged."""
        stage.script(a=[("pay", '{"amount": 5}')])
        agent = agent_of(stage, guard_of(BIG), by, [pay], Rewriting(args={"amount": 1_000_000}))

        stage.run(agent, in_loop=in_loop)

        assert ([DENIED], []) == (stage.said, ran)

    @by_either
    def test_swaps_the_tool(self, stage, guard_of, pay, erase, ran, by, in_loop):
        """The tool that was swapped in is the one that is judged."""
        rule = {"id": "erase", "match": {"tool": "erase"}, "decision": "deny"}
        stage.script(a=[("pay", '{"amount": 5, "name": "a"}')])
        agent = agent_of(stage, guard_of(rule), by, [pay], Rewriting(tool=erase))

        stage.run(agent, in_loop=in_loop)

        assert ([DENIED], []) == (stage.said, ran)

    def test_cannot_stand_inside_of_the_guard(self, stage, guard_of, pay, ran, in_loop):
        """An AdjudgeMiddleware that is not listed last says so before anything runs."""
        middleware = [AdjudgeMiddleware(guard_of()), Rewriting(args={"amount": 1_000_000})]
        stage.script(a=[("pay", '{"amount": 5}')])

        with pytest.raises(GovernError, match="list it last"):
            stage.run(stage.agent([pay], middleware=middleware), in_loop=in_loop)

        assert [] == ran

    @by_either
    def test_repeats_a_call_that_raised(self, stage, guard_of, ran, record, by, in_loop):
        """Law 6: each attempt is judged, numbered and on record."""

        @tool
        def fail(name: str) -> str:
            """Fail."""
            ran.append(name)
            raise ValueError("no")

        retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
        stage.script(a=[("fail", '{"name": "a"}')])

        stage.run(agent_of(stage, guard_of(), by, [fail], retry), in_loop=in_loop)

        assert ["a"] * 3 == ran
        assert [1, 2, 3] == [body["attempt"] for body in record.bodies("step.proposed")]
        assert ["action.failed"] * 3 == record.ends

    @by_either
    def test_does_not_repeat_a_denial(self, stage, guard_of, pay, record, by, in_loop):
        """A denial is a value, which nothing retries."""
        retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
        stage.script(a=[("pay", '{"amount": 1000}')])

        stage.run(agent_of(stage, guard_of(BIG), by, [pay], retry), in_loop=in_loop)

        assert ["action.denied"] == record.ends


async def _passing_on(request: Any, execute: Any) -> Any:
    return await execute(request)


async def _all(parts: Any) -> list[Any]:
    return [part async for part in parts]


async def _given() -> Any:
    yield SENT


SENT = {"amount": 1000}
CALLS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda tool: tool.invoke(SENT),
    "run": lambda tool: tool.run(SENT),
    "_run": lambda tool: tool._run(**SENT, config={}),
    "batch": lambda tool: tool.batch([SENT])[0],
    "batch_as_completed": lambda tool: next(iter(tool.batch_as_completed([SENT])))[1],
    "stream": lambda tool: list(tool.stream(SENT))[-1],
    "transform": lambda tool: list(tool.transform(iter([SENT])))[-1],
    "bind": lambda tool: tool.bind().invoke(SENT),
    "map": lambda tool: tool.map().invoke([SENT])[0],
    "with_retry": lambda tool: tool.with_retry().invoke(SENT),
    "with_fallbacks": lambda tool: tool.with_fallbacks([tool]).invoke(SENT),
    "with_config": lambda tool: tool.with_config(tags=["x"]).invoke(SENT),
    "with_types": lambda tool: tool.with_types(input_type=dict).invoke(SENT),
    "with_listeners": lambda tool: tool.with_listeners().invoke(SENT),
    "pipe": lambda tool: (tool | str).invoke(SENT),
    "ainvoke": lambda tool: asyncio.run(tool.ainvoke(SENT)),
    "arun": lambda tool: asyncio.run(tool.arun(SENT)),
    "_arun": lambda tool: asyncio.run(tool._arun(**SENT, config={})),
    "abatch": lambda tool: asyncio.run(tool.abatch([SENT]))[0],
    "abatch_as_completed": lambda tool: asyncio.run(_all(tool.abatch_as_completed([SENT])))[0][1],
    "astream": lambda tool: asyncio.run(_all(tool.astream(SENT)))[-1],
    "atransform": lambda tool: asyncio.run(_all(tool.atransform(_given())))[-1],
    "astream_events": lambda tool: asyncio.run(_all(tool.astream_events(SENT)))[-1]["data"][
        "output"
    ],
    "model_copy": lambda tool: tool.model_copy().invoke(SENT),
    "deepcopy": lambda tool: copy.deepcopy(tool).invoke(SENT),
    "as_tool": lambda tool: tool.as_tool(name="x").invoke(SENT),
    "configurable_fields": lambda tool: (
        tool.configurable_fields(description=ConfigurableField(id="d"))
        .with_config(configurable={"d": "Other."})
        .invoke(SENT)
    ),
}
GO: Any = {"messages": [{"role": "user", "content": "Go."}]}
RUNS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda agent: agent.invoke(GO),
    "stream": lambda agent: list(agent.stream(GO)),
    "batch": lambda agent: agent.batch([GO]),
    "with_config": lambda agent: agent.with_config(tags=["x"]).invoke(GO),
    "with_retry": lambda agent: agent.with_retry().invoke(GO),
    "ainvoke": lambda agent: asyncio.run(agent.ainvoke(GO)),
    "astream": lambda agent: asyncio.run(_all(agent.astream(GO))),
    "astream_events": lambda agent: asyncio.run(_all(agent.astream_events(GO, version="v2"))),
    "abatch": lambda agent: asyncio.run(agent.abatch([GO])),
}


class TestOtherWays:
    @in_any_style
    @pytest.mark.parametrize("wrapped", ["wrap_tool_call", "awrap_tool_call", None])
    def test_a_node_of_ones_own(self, guard_of, pay, ran, in_loop, wrapped):
        """A tool node with governed copies governs, also where it skips what wraps its calls."""
        wrapping = {
            "wrap_tool_call": lambda request, execute: execute(request),
            "awrap_tool_call": _passing_on,
        }
        options = {} if wrapped is None else {wrapped: wrapping[wrapped]}
        node = ToolNode(govern([pay], guard_of(BIG)), **options)
        sent: Any = [{"type": "tool_call", "name": "pay", "id": "1", "args": {"amount": 1000}}]
        message = AIMessage("", tool_calls=sent)

        @entrypoint()
        def graph(message):
            return node.invoke([message])

        @entrypoint()
        async def agraph(message):
            return await node.ainvoke([message])

        told = asyncio.run(agraph.ainvoke(message)) if in_loop else graph.invoke(message)

        assert ([DENIED], []) == ([each.content for each in told], ran)

    def test_a_wrapper_for_one_style_alone(self, stage, guard_of, pay, ran):
        """Where a node skips its wrapper in a sync run, the tool is governed itself."""

        class Async(AgentMiddleware):
            async def awrap_tool_call(self, request, handler):
                return await handler(request)

        stage.script(a=[("pay", '{"amount": 1000}')])
        agent = govern(stage.agent([pay], middleware=[Async()]), guard_of(BIG))

        with pytest.raises(NotImplementedError):
            stage.run(agent)

        assert [] == ran

    def test_a_thread_without_context(self, guard_of, pay, ran):
        """A governed tool needs nothing of its surroundings."""
        made, told = govern(pay, guard_of(BIG)), []

        thread = threading.Thread(target=lambda: told.append(made.invoke({"amount": 1000})))
        thread.start()
        thread.join()

        assert ([DENIED], []) == (told, ran)

    @pytest.mark.filterwarnings("ignore:This API is in beta")
    @pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
    def test_a_call_of_the_tool_itself(self, guard_of, pay, ran, call):
        """Law 3: however a governed tool is called."""
        assert (DENIED, []) == (call(govern(pay, guard_of(BIG))), ran)

    @by_either
    @pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
    def test_a_run_of_the_agent(self, stage, guard_of, pay, ran, by, run):
        """Law 3: however a governed agent is run."""
        stage.script(a=[("pay", '{"amount": 1000}')])

        run(agent_of(stage, guard_of(BIG), by, [pay]))

        assert ([DENIED], []) == (stage.said, ran)

    def test_values_that_change_on_the_way(self, guard_of, ran):
        """What another callback does to nested arguments is not what was judged, and is."""
        from langchain_core.callbacks import BaseCallbackHandler

        class Evil(BaseCallbackHandler):
            run_inline = True

            def on_tool_start(self, serialized, input_str, *, inputs=None, **kwargs):
                inputs["options"]["amount"] = 1_000_000

        @tool
        def pay(options: dict[str, int]) -> str:
            """Pay."""
            ran.append(options)
            return "paid"

        rule = {"id": "big", "match": {"args.options.amount": {"gt": 100}}, "decision": "deny"}

        told = govern(pay, guard_of(rule)).invoke(
            {"options": {"amount": 5}}, {"callbacks": [Evil()]}
        )

        assert (DENIED, []) == (told, ran)

    def test_a_call_that_is_cancelled(self, stage, guard_of, record):
        """Law 7: what is cancelled in its body passes through, and is on record."""

        @tool
        async def wait(name: str) -> str:
            """Wait."""
            entered.set()
            await asyncio.Event().wait()
            return name

        async def cancelled() -> None:
            running = asyncio.ensure_future(agent.ainvoke(GO))
            await entered.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        entered = asyncio.Event()
        stage.script(a=[("wait", '{"name": "a"}')])
        agent = govern(stage.agent([wait]), guard_of())
        asyncio.run(cancelled())

        assert ["action.cancelled"] == record.ends

    def test_a_pickle(self, guard_of, erase):
        """A governed tool leaves the process in no form."""
        import pickle

        with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
            pickle.dumps(govern(erase, guard_of()))
