"""The shared suite on the reference loop, through the official OpenAI client."""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from adjudge import MemoryRunStore, StepRecord, ToolDef, ToolGuard, ToolSet
from adjudge import step_record_from_json as read_record
from adjudge import step_record_to_json as write_record
from adjudge.errors import NotAnObject
from adjudge.integration import normalise, parse_arguments, thaw
from adjudge_conformance import Agent as SuiteAgent
from adjudge_conformance import Conformance, Driver, GivenAnswer, Outcome, Scene, Style
from adjudge_runtime import Budget, Message, RunResult, agent_tool, run_agent
from adjudge_runtime._answers import Answer, failed_text, text_of_value
from adjudge_runtime._journal import NoJournal
from adjudge_runtime._loop import Loop
from adjudge_runtime._schema import tool_schema
from adjudge_runtime._stops import Halt, Stop
from adjudge_runtime.models import OpenAIAgent, OpenAIChatAgent

RUN = "the-run"


class Remembering:
    """An agent that keeps what it was told last, and the pieces of text that it wrote."""

    def __init__(self, made: SuiteAgent, tools: ToolSet, scene: Scene, base_url: str) -> None:
        # No connection outlives its request, so each run may have an event loop of its own.
        client = AsyncOpenAI(
            api_key="none",
            base_url=base_url,
            max_retries=0,
            default_headers={"Connection": "close"},
            http_client=DefaultAsyncHttpxClient(verify=False),  # nothing to verify on loopback
        )
        kind = OpenAIChatAgent if scene.api == "chat" else OpenAIAgent
        self.name = made.name
        self.model = kind(tools=tools, model=made.name, client=client)
        self.told: Sequence[Message] = ()
        self.pieces: list[str] = []
        self.streamed = False

    async def step(self, conversation: Sequence[Message]) -> Any:
        """Ask the model, as a stream where the run is one."""
        self.told = conversation
        if self.streamed:
            return await self.model.stream(conversation, self.pieces.append)
        return await self.model.step(conversation)


class PlainCalls:
    """The tools of the loop with no guard before them, for the runs that law 1 compares with."""

    def __init__(self, tools: ToolSet) -> None:
        self._tools = tools

    def tool(self, name: str) -> ToolDef | None:
        """Give the tool of that name, if there is one."""
        return self._tools.get(name) if name in self._tools else None

    async def run(self, step: int, index: int, call: Any, *, uncertain: bool) -> Answer:
        """Run the body."""
        message = await self._said(call)
        return Answer(message, "allow", "completed", ok=True)

    async def _said(self, call: Any) -> str:
        tool = self.tool(call.tool)
        if tool is None:
            return f"[denied] unknown tool: {call.tool!r}"
        try:
            sent = parse_arguments(call.args)
        except NotAnObject as error:
            return failed_text(str(error))
        found = normalise(tool_schema(tool), sent, coerce=True)
        if found.problems:
            return failed_text(found.problems[0])
        args = thaw(found.args)
        try:
            if inspect.iscoroutinefunction(tool.fn):
                return text_of_value(await tool.fn(**args))
            return text_of_value(await asyncio.to_thread(tool.fn, **args))
        except Exception as error:
            return failed_text(f"{type(error).__name__}: {error}")


class Shelf(MemoryRunStore):
    """A store that knows which runs it has."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: set[str] = set()

    async def append(self, record: StepRecord) -> None:
        """Keep a record."""
        await super().append(record)
        self.runs.add(record.run_id)

    async def all(self) -> list[StepRecord]:
        """Give every record of every run."""
        return [record for run in sorted(self.runs) for record in await self.load(run)]


class Host:
    """An agent with its tools, and maybe a guard at its door."""

    def __init__(
        self, made: SuiteAgent, scene: Scene, base_url: str, guard: ToolGuard | None
    ) -> None:
        self.scene, self.guard = scene, guard
        helpers = [Host(helper, scene, base_url, guard) for helper in made.helpers]
        self.tools = ToolSet(
            [
                *(_definition(each.function) for each in made.tools),
                *(helper.as_tool() for helper in helpers),
            ]
        )
        self.agents = [Remembering(made, self.tools, scene, base_url)]
        self.agents += [agent for helper in helpers for agent in helper.agents]
        self.store = Shelf()

    @property
    def agent(self) -> Remembering:
        """The agent itself; those after it are its helpers'."""
        return self.agents[0]

    def as_tool(self) -> ToolDef:
        """Give it as a tool of another."""
        if self.guard is not None:
            return agent_tool(self.agent, tools=self.tools, description="Ask the helper.")

        async def ask(task: str) -> str:
            """Ask the helper."""
            return await self.plain(task)

        return ToolDef(self.agent.name, "Ask the helper.", ask)

    async def plain(self, task: str) -> str:
        """Run the loop without a guard."""
        loop = Loop(
            self.agent,
            task,
            calls=PlainCalls(self.tools),
            budget=Budget(),
            journal=NoJournal(),
            halt=Halt(),
            cancelled=lambda: None,
        )
        try:
            return await loop.run()
        except Stop as stop:
            raise RuntimeError(stop.error) from None

    async def run(self, answers: Mapping[str, Any] | None = None) -> Outcome:
        """Run the loop to its end or to a pause."""
        if self.guard is None:
            return self.outcome(RunResult("", "", await self.plain(self.scene.prompt)))
        caller = self.scene.caller
        kept = {"store": self.store, "run_id": RUN} if self.guard.pauses else {}
        result = await run_agent(
            self.agent,
            self.scene.prompt,
            tools=self.tools,
            guard=self.guard,
            answers=answers,
            context=None if caller is None else lambda: caller,
            **kept,
        )
        return self.outcome(result)

    def outcome(self, result: RunResult) -> Outcome:
        """Give what came of a run; one that failed has no outcome."""
        if result.code not in ("", "paused"):
            raise RuntimeError(result.error)
        stream = tuple(piece for agent in self.agents for piece in agent.pieces)
        return Outcome(result.final_answer, (self, result), result.code == "paused", stream)


def _definition(function: Any) -> ToolDef:
    return ToolDef(function.__name__, inspect.getdoc(function) or "", function)


class RuntimeDriver(Driver[Host]):
    """How an agent of the reference loop is built and run."""

    name = "runtime"
    version = importlib.metadata.version("openai")
    styles = (Style.ASYNC, Style.ASYNC_STREAM)
    apis = ("chat", "responses")
    helper_argument = "task"

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Host:
        """Make the agents, governed if there is a guard."""
        return Host(scene.agent, scene, base_url, guard)

    def run(self, target: Host, style: Style) -> Outcome:
        """Run the agent in the loop."""
        for agent in target.agents:
            agent.streamed = style.streamed
        return asyncio.run(target.run())

    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give what the agents were told last, and the answer."""
        host, result = outcome.native
        history = [[asdict(message) for message in agent.told] for agent in host.agents]
        return {"answer": result.final_answer, "history": json.loads(json.dumps(history))}

    def save(self, outcome: Outcome) -> bytes:
        """Give the journal, and the ids of what waits."""
        host, result = outcome.native
        records = [write_record(record) for record in asyncio.run(host.store.all())]
        ids = {each.call_id: each.id for each in result.pending}
        return json.dumps([records, ids]).encode()

    def resume(self, target: Host, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Go on with a saved run."""
        _, ids = json.loads(saved)
        return self._go_on(
            target, saved, {ids[answer.call_id]: answer.decision for answer in answers}
        )

    def approve_natively(self, target: Host, saved: bytes) -> Outcome:
        """Go on with a journal out of which somebody took that calls wait, and under which run."""
        texts, ids = json.loads(saved)
        kept: list[str] = []
        seqs: Counter[str] = Counter()
        for record in map(read_record, texts):
            if record.kind != "action.pending":
                body = {name: value for name, value in record.body.items() if name != "run"}
                again = replace(record, seq=seqs[record.run_id], body=body)
                kept.append(write_record(again))
                seqs[record.run_id] += 1
        return self._go_on(target, json.dumps([kept, ids]).encode(), None)

    def _go_on(self, target: Host, saved: bytes, answers: Mapping[str, Any] | None) -> Outcome:
        async def go_on() -> Outcome:
            for text in json.loads(saved)[0]:
                await target.store.append(read_record(text))
            return await target.run(answers)

        return asyncio.run(go_on())


class TestConformance(Conformance):
    """The reference loop governs as core does."""

    driver = RuntimeDriver
