"""The shared suite on real graphs: a task for each call, and one task for all calls."""

import asyncio
import importlib.metadata
import io
import json
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import aiosqlite
from httpx import AsyncClient, Client
from langchain_core.load import dumpd
from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from adjudge import ToolGuard
from adjudge_conformance import Agent as SuiteAgent
from adjudge_conformance import Conformance, Driver, Gap, GivenAnswer, Outcome, Scene, Style
from adjudge_langgraph import (
    aresume,
    fan_out_tool_calls,
    govern,
    governed_tool_node,
    resume,
)

_LANGCHAIN = "https://github.com/langchain-ai/langchain"
_REPAIRED = Gap(
    "A stream's arguments are repaired: what is no JSON runs as far as it was read.",
    f"{_LANGCHAIN}/blob/master/libs/core/langchain_core/utils/json.py",
)
GAPS = {
    "arguments.duplicate-keys": Gap(
        "LangChain parses the arguments before anybody sees them, and keeps the last of two keys.",
        f"{_LANGCHAIN}/blob/master/libs/core/langchain_core/output_parsers/openai_tools.py",
    ),
    "arguments.no-json-*stream*": _REPAIRED,
    "arguments.no-json": Gap(
        "Arguments that are no JSON become an invalid tool call, which no tool node takes.",
        f"{_LANGCHAIN}/issues/33504",
    ),
    "arguments.no-object": Gap(
        "Arguments that are no object end the run while the model's message is made.",
        f"{_LANGCHAIN}/issues/35990",
    ),
    "transparent.no-json-*stream*": _REPAIRED,
    "arguments.lone-surrogate-*chat*": Gap(
        "The call is denied, but the client cannot send the model what the model had sent.",
        "https://github.com/openai/openai-python/blob/main/src/openai/_utils/_json.py",
    ),
}
THREAD: Any = {"configurable": {"thread_id": "the suite's thread"}}
_IDS = "made anew in each run, and never sent to the model"


class Target:
    """A graph, the file of its checkpoints, and the scene."""

    def __init__(self, driver: Any, scene: Scene, base_url: str, guard: ToolGuard | None) -> None:
        self.driver, self.scene, self.base_url, self.guard = driver, scene, base_url, guard
        folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.file = Path(folder, "checkpoints.sqlite")
        self.builder = self.build(scene.agent)

    def build(self, made: SuiteAgent) -> Any:
        """Build the graph of an agent: its model, and its tools."""
        tools = [_tool(each.function) for each in made.tools]
        tools += [_asking(each.name, self.governed(self.build(each))) for each in made.helpers]
        model: Any = _model(made.name, self.scene, self.base_url)
        model = model.bind_tools(tools) if tools else model
        builder = StateGraph(MessagesState)
        builder.add_node("model", _asking_model(model, SystemMessage(made.instructions)))
        builder.add_edge(START, "model")
        if tools:
            builder.add_node("tools", self.node(tools))
            builder.add_conditional_edges("model", self.driver.route)
            builder.add_edge("tools", "model")
        return builder

    def node(self, tools: list[Any]) -> ToolNode:
        """Make the node of an agent's tools."""
        if self.guard is None or not self.driver.governs_nodes:
            return ToolNode(tools)
        return governed_tool_node(tools, self.guard, context=self.context)

    def governed(self, builder: Any, saver: Any = None) -> Any:
        """Compile a graph, governed if there is a guard and there are tools."""
        graph = builder.compile(checkpointer=saver)
        if self.guard is None or self.driver.governs_nodes or "tools" not in graph.nodes:
            return graph
        return govern(graph, self.guard, context=self.context)

    @property
    def context(self) -> Callable[[Any], Any] | None:
        """Who the run says is calling."""
        return None if self.scene.caller is None else _caller

    @property
    def in_coroutines(self) -> bool:
        """Whether the tools are coroutine functions, which only `ainvoke` runs."""
        return any(iscoroutinefunction(each.function) for each in self.scene.agent.tools)

    def use(self, act: Callable[[Any], Any]) -> Any:
        """Do something with the graph on its checkpoints."""
        with SqliteSaver.from_conn_string(str(self.file)) as saver:
            saver.serde = Readable()
            return act(self.governed(self.builder, saver))

    def ause(self, act: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do something with the graph on an event loop."""

        async def within() -> Any:
            async with aiosqlite.connect(self.file) as opened:
                saver = AsyncSqliteSaver(opened, serde=Readable())
                return await act(self.governed(self.builder, saver))

        return asyncio.run(within())


class GraphDriver(Driver[Target]):
    """A graph in which each call has a task of its own."""

    name = "langgraph"
    version = importlib.metadata.version("langgraph")
    styles = tuple(Style)
    apis: Sequence[Any] = ("chat", "responses")
    gaps = GAPS
    governs_nodes = False
    route = staticmethod(fan_out_tool_calls())
    scrubs: Mapping[str, str] = {
        "transcript.history.*.kwargs.id": _IDS,
        "transcript.history.*.kwargs.response_metadata.created_at": "the time of day",
    }

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Target:
        """Build the graphs, governed if there is a guard."""
        return Target(self, scene, base_url, guard)

    def run(self, target: Target, style: Style) -> Outcome:
        """Run the graph in the framework's own loop."""
        given: Any = {"messages": [{"role": "user", "content": target.scene.prompt}]}
        options: Any = {"config": THREAD, "context": target.scene.caller}
        if not style.streamed:
            if style.is_sync:
                return _outcome(target, target.use(lambda graph: graph.invoke(given, **options)))
            return _outcome(target, target.ause(lambda graph: graph.ainvoke(given, **options)))
        options["stream_mode"] = ["updates", "messages", "values"]
        if style.is_sync:
            return _streamed(target, target.use(lambda graph: list(graph.stream(given, **options))))

        async def collect(graph: Any) -> list[Any]:
            return [each async for each in graph.astream(given, **options)]

        return _streamed(target, target.ause(collect))

    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give what the framework tells its user."""
        messages = outcome.native[1]["messages"]
        return {"history": json.loads(json.dumps(dumpd(messages), default=str))}

    def save(self, outcome: Outcome) -> bytes:
        """Give the file of checkpoints."""
        return bytes(outcome.native[0].file.read_bytes())

    def resume(self, target: Target, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Go on with a saved run."""
        target.file.write_bytes(saved)
        ids = {
            each.value["tool_call_id"]: each.value["adjudge"]["pending"] for each in _waits(target)
        }
        given = {ids[answer.call_id]: answer.decision for answer in answers}
        options: Any = {"guard": target.guard, "context": target.scene.caller}
        if target.in_coroutines:
            state = target.ause(lambda graph: aresume(graph, THREAD, given, **options))
        else:
            state = target.use(lambda graph: resume(graph, THREAD, given, **options))
        return _outcome(target, state)

    def approve_natively(self, target: Target, saved: bytes) -> Outcome:
        """Go on with LangGraph's own resumption of all that waits."""
        target.file.write_bytes(saved)
        approved = Command(resume={each.id: {"type": "approve"} for each in _waits(target)})
        options: Any = {"config": THREAD, "context": target.scene.caller}
        if target.in_coroutines:
            return _outcome(target, target.ause(lambda graph: graph.ainvoke(approved, **options)))
        return _outcome(target, target.use(lambda graph: graph.invoke(approved, **options)))


class OneTaskDriver(GraphDriver):
    """A graph whose tool node runs all calls of a message; what it speaks is no difference."""

    name = "langgraph-one-task"
    apis = ("chat",)
    governs_nodes = True
    route = staticmethod(tools_condition)


def _waits(target: Target) -> Any:
    return target.use(lambda graph: graph.get_state(THREAD).interrupts)


def _asking_model(model: Any, instructions: SystemMessage) -> Any:
    def ask(state: MessagesState) -> Any:
        return {"messages": [model.invoke([instructions, *state["messages"]])]}

    async def aask(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke([instructions, *state["messages"]])]}

    return RunnableLambda(ask, aask)


def _model(name: str, scene: Scene, base_url: str) -> ChatOpenAI:
    # No connection outlives its request, so each run may have an event loop of its own.
    headers = {"Connection": "close"}
    return ChatOpenAI(
        model=name,
        api_key="none",
        base_url=base_url,
        max_retries=0,
        use_responses_api=scene.api == "responses",
        http_client=Client(verify=False, headers=headers),
        http_async_client=AsyncClient(verify=False, headers=headers),
    )


def _caller(run: Any) -> Any:
    """Who is calling: the context of the graph's run."""
    return run.context


def _tool(function: Callable[..., Any]) -> StructuredTool:
    if iscoroutinefunction(function):
        return StructuredTool.from_function(coroutine=function)
    return StructuredTool.from_function(function)


def _asking(name: str, helper: Any) -> StructuredTool:
    def ask(input: str) -> str:
        """Ask the helper."""
        return _final(helper.invoke({"messages": [{"role": "user", "content": input}]}))

    async def aask(input: str) -> str:
        """Ask the helper."""
        return _final(await helper.ainvoke({"messages": [{"role": "user", "content": input}]}))

    return StructuredTool.from_function(ask, aask, name=name)


def _final(state: Any) -> str:
    return str(state["messages"][-1].text)


def _outcome(target: Target, state: Any, stream: tuple[str, ...] = ()) -> Outcome:
    if state.get("__interrupt__"):
        return Outcome(None, (target, state), True, stream)
    return Outcome(_final(state), (target, state), stream=stream)


def _streamed(target: Target, parts: list[Any]) -> Outcome:
    state = target.use(lambda graph: graph.get_state(THREAD))
    # In no order: parallel calls end as their threads do.
    kinds = tuple(sorted(f"{mode}:{_kind(mode, part)}" for mode, part in parts))
    return _outcome(target, {**state.values, "__interrupt__": state.interrupts}, kinds)


def _kind(mode: str, part: Any) -> str:
    return type(part[0]).__name__ if mode == "messages" else ",".join(part)


class _TextPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Take classes with slots as well, which the protocol that is text does not."""
        if isinstance(value, type) or callable(value):
            return NotImplemented
        return value.__reduce_ex__(2)


class Readable:
    """Writes checkpoints so that the suite finds the arguments in them as text."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        """Write a value."""
        written = io.BytesIO()
        _TextPickler(written, 0).dump(value)
        return "pickle", written.getvalue()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a value."""
        return pickle.loads(data[1])


class TestConformance(Conformance):
    """Graphs whose calls have tasks of their own govern as core does."""

    driver = GraphDriver


class TestOneTaskConformance(Conformance):
    """Graphs that run all calls of a message in one task govern as core does."""

    driver = OneTaskDriver
