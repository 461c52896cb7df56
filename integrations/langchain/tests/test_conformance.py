"""The shared suite on the real LangChain agent, its real client and its own loop."""

import asyncio
import importlib.metadata
import io
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any

from httpx import AsyncClient, Client
from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_core.load import dumpd
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from adjudge import ToolGuard
from adjudge_conformance import Agent as SuiteAgent
from adjudge_conformance import Conformance, Driver, Gap, GivenAnswer, Outcome, Scene, Style
from adjudge_langchain import (
    AdjudgeCallbackHandler,
    AdjudgeMiddleware,
    ToolRun,
    aresume,
    denial_for_model,
    govern,
    resume,
)

_LANGCHAIN = "https://github.com/langchain-ai/langchain"
_CALLBACKS = f"{_LANGCHAIN}/issues/15160"
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
        "Arguments that are no JSON become an invalid tool call, which no agent takes to a tool.",
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
_NO_REWRITING = Gap(
    "LangChain ignores what a callback returns, so nothing can be rewritten there.", _CALLBACKS
)
_NO_PREVIEW = Gap(
    "LangChain ignores what a callback returns, so it can give no result in place of a tool's.",
    _CALLBACKS,
)
_REWRITTEN = (
    "approve.edit-into-a-denial",
    "approve.edit-is-judged-again",
    "layers.transforms-compose",
    "obligation.sees-the-rewritten-call",
    "pause.edit-runs-edited",
    "pause.edit-into-a-denial",
    "transform.runs-rewritten",
    "transform.append",
    "transform.delete-gives-the-default",
    "transform.then-asks",
)
_PREVIEWED = ("dry-run.shows-the-preview", "transform.then-previews")
CALLBACK_GAPS = {
    **GAPS,
    **dict.fromkeys(_REWRITTEN, _NO_REWRITING),
    **dict.fromkeys(_PREVIEWED, _NO_PREVIEW),
}
THREAD: Any = {"configurable": {"thread_id": "the suite's thread"}}
_IDS = "made anew in each run, and never sent to the model"


class Target:
    """An agent, its saver, and the scene."""

    def __init__(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> None:
        self.saver = InMemorySaver(serde=Readable())
        self.scene, self.base_url, self.guard = scene, base_url, guard
        self.agent = self.make(scene.agent, checkpointer=self.saver)

    def make(self, made: SuiteAgent, **options: Any) -> Any:
        """Make an agent, governed if there is a guard."""
        tools = [_tool(each.function) for each in made.tools]
        tools += [_asking(helper.name, self.make(helper)) for helper in made.helpers]
        model = _model(made.name, self.scene, self.base_url)
        options = {"system_prompt": made.instructions, "name": made.name, **options}
        return self.put_together(model, tools, options)

    def put_together(self, model: ChatOpenAI, tools: list[Any], options: dict[str, Any]) -> Any:
        """Make an agent under `govern`."""
        agent = create_agent(model, tools, **options)
        return agent if self.guard is None else govern(agent, self.guard, context=self.context)

    @property
    def context(self) -> Callable[[ToolRun], Any] | None:
        """Who the run says is calling."""
        return None if self.scene.caller is None else lambda run: run.context

    @property
    def in_coroutines(self) -> bool:
        """Whether the tools are coroutine functions, which only `ainvoke` runs."""
        return any(iscoroutinefunction(each.function) for each in self.scene.agent.tools)

    @property
    def options(self) -> dict[str, Any]:
        """How each run is started."""
        return {"config": THREAD, "context": self.scene.caller}


class WithMiddleware(Target):
    """An agent with a middleware of ours in place of `govern`."""

    def put_together(self, model: ChatOpenAI, tools: list[Any], options: dict[str, Any]) -> Any:
        """Make an agent, the guard in its middleware."""
        if self.guard is None:
            return create_agent(model, tools, **options)
        last = AdjudgeMiddleware(self.guard, context=self.context)
        return create_agent(model, tools, middleware=[last], **options)


class WithCallbacks(Target):
    """An agent that nothing governs but a callback handler."""

    def __init__(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> None:
        self.tools: list[Any] = []
        super().__init__(scene, base_url, guard)
        if guard is not None:
            handler = AdjudgeCallbackHandler(guard, tools=self.tools, context=self.context)
            self.agent = self.agent.with_config(callbacks=[handler])

    def put_together(self, model: ChatOpenAI, tools: list[Any], options: dict[str, Any]) -> Any:
        """Make an agent whose model is told of denials."""
        self.tools += tools
        telling = ToolErrorMiddleware(denial_for_model)
        return create_agent(model, tools, middleware=[telling], **options)


class LangChainDriver(Driver[Target]):
    """How an agent of `create_agent` is built and run."""

    name = "langchain"
    target: type[Target] = Target
    version = importlib.metadata.version("langchain")
    styles = tuple(Style)
    apis = ("chat", "responses")
    gaps = GAPS
    scrubs: Mapping[str, str] = {
        "transcript.history.*.kwargs.id": _IDS,
        "transcript.history.*.kwargs.response_metadata.created_at": "the time of day",
    }

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Target:
        """Make the agents, governed if there is a guard."""
        return self.target(scene, base_url, guard)

    def run(self, target: Target, style: Style) -> Outcome:
        """Run the agent in the framework's own loop."""
        given: Any = {"messages": [{"role": "user", "content": target.scene.prompt}]}
        agent, options = target.agent, target.options
        if not style.streamed:
            if style.is_sync:
                return _outcome(target, agent.invoke(given, **options))
            return _outcome(target, asyncio.run(agent.ainvoke(given, **options)))
        modes: Any = {"stream_mode": ["updates", "messages", "values"], **options}
        if style.is_sync:
            return _streamed(target, list(agent.stream(given, **modes)))

        async def collect() -> list[Any]:
            return [each async for each in agent.astream(given, **modes)]

        return _streamed(target, asyncio.run(collect()))

    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give what the framework tells its user."""
        messages = outcome.native[1]["messages"]
        return {"history": json.loads(json.dumps(dumpd(messages), default=str))}

    def save(self, outcome: Outcome) -> bytes:
        """Give the thread's checkpoints, as text."""
        saver = outcome.native[0].saver
        kept = {thread: dict(spaces) for thread, spaces in saver.storage.items()}
        return pickle.dumps((kept, dict(saver.writes), dict(saver.blobs)), protocol=0)

    def resume(self, target: Target, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Go on with a saved run."""
        _load(target, saved)
        ids = _asked(target)
        given = {ids[answer.call_id]: answer.decision for answer in answers}
        caller = target.scene.caller
        if target.in_coroutines:
            going_on = aresume(target.agent, THREAD, given, guard=target.guard, context=caller)
            state = asyncio.run(going_on)
        else:
            state = resume(target.agent, THREAD, given, guard=target.guard, context=caller)
        return _outcome(target, state)

    def approve_natively(self, target: Target, saved: bytes) -> Outcome:
        """Go on with LangGraph's own resumption of all that waits."""
        _load(target, saved)
        waiting = target.agent.get_state(THREAD).interrupts
        approved = Command(resume={each.id: {"type": "approve"} for each in waiting})
        if target.in_coroutines:
            return _outcome(target, asyncio.run(target.agent.ainvoke(approved, **target.options)))
        return _outcome(target, target.agent.invoke(approved, **target.options))


def _load(target: Target, saved: bytes) -> None:
    kept, writes, blobs = pickle.loads(saved)
    for thread, spaces in kept.items():
        target.saver.storage[thread].update(spaces)
    target.saver.writes.update(writes)
    target.saver.blobs.update(blobs)


def _asked(target: Target) -> dict[str, str]:
    """The ids of what the saved run waited for, also once it no longer does."""
    values = [each.value for each in target.agent.get_state(THREAD).interrupts]
    return {value["tool_call_id"]: value["adjudge"]["pending"] for value in values}


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
    state = target.agent.get_state(THREAD)
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


class MiddlewareDriver(LangChainDriver):
    """The same agent with a middleware in place of `govern`; what it speaks is no difference."""

    name = "langchain-middleware"
    target = WithMiddleware
    apis = ("chat",)


class CallbackDriver(LangChainDriver):
    """The same agent with a handler of callbacks in place of `govern`."""

    name = "langchain-callbacks"
    target = WithCallbacks
    apis = ("chat",)
    gaps = CALLBACK_GAPS


class TestConformance(Conformance):
    """LangChain governs as core does."""

    driver = LangChainDriver


class TestMiddlewareConformance(Conformance):
    """A middleware governs as core does."""

    driver = MiddlewareDriver


class TestCallbackConformance(Conformance):
    """A callback handler governs as core does, as far as callbacks reach."""

    driver = CallbackDriver
