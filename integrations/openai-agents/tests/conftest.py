"""What the tests here share: a scripted model service, spied-on tools, and guards of one rule."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunResult,
    RunResultStreaming,
)
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from adjudge import AuditEvent, ToolGuard, compile_policy
from adjudge_conformance.wire import Api, Exchange, Script, ScriptedCall, ScriptedServer, Turn

# What several test files share, by its plain name.
sys.path.insert(0, str(Path(__file__).parent))

from pausing_desk import Desk

Calls: TypeAlias = tuple[str, str] | ScriptedCall | tuple[ScriptedCall, ...]
"""A turn's calls: a tool with its argument text, a scripted call, or several."""


def turn_of(calls: Calls) -> Turn:
    """Make a turn of calls."""
    if isinstance(calls, ScriptedCall):
        return Turn((calls,))
    if isinstance(calls[0], str):
        return Turn((ScriptedCall(*calls),))
    return Turn(calls)


class Stage:
    """Agents on scripted models: `said` is what the models were told of each call, in order."""

    def __init__(self, server: ScriptedServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._scripts = 0
        self._exchange: Exchange | None = None

    def script(self, api: Api = "chat", **calls: Sequence[Calls]) -> None:
        """Say which calls the model of each name makes, turn by turn, before it is done."""
        turns = {
            name: [*map(turn_of, made), Turn(text=f"{name} is done.")]
            for name, made in calls.items()
        }
        self._scripts += 1
        log = self._folder / f"requests-{self._scripts}.jsonl"
        self._exchange = self._server.open(Script(turns), api=api, log=log)

    def agent(self, name: str, **fields: Any) -> Agent[Any]:
        """Make an agent whose model is the script of that name."""
        return Agent(name=name, model=self.model(name), **fields)

    def model(self, name: str) -> OpenAIChatCompletionsModel | OpenAIResponsesModel:
        """Give the SDK's own model on its own client."""
        assert self._exchange is not None
        client = AsyncOpenAI(
            api_key="none",
            base_url=self._exchange.base_url,
            max_retries=0,
            default_headers={"Connection": "close"},
            http_client=DefaultAsyncHttpxClient(verify=False),
        )
        if self._exchange.api == "responses":
            return OpenAIResponsesModel(name, client)
        return OpenAIChatCompletionsModel(name, client)

    def run(self, agent: Agent[Any], **options: Any) -> RunResult:
        """Run an agent to its end."""
        config = RunConfig(tracing_disabled=True)
        return asyncio.run(Runner.run(agent, "Go.", run_config=config, **options))

    def run_streamed(self, agent: Agent[Any]) -> RunResultStreaming:
        """Run an agent to its end, and read what it streams."""

        async def run() -> RunResultStreaming:
            config = RunConfig(tracing_disabled=True)
            result = Runner.run_streamed(agent, "Go.", run_config=config)
            async for _ in result.stream_events():
                pass
            return result

        return asyncio.run(run())

    @property
    def said(self) -> list[str]:
        """The tools' answers as the models got them, each once, in order."""
        return list(self._outputs.values())

    @property
    def ids(self) -> list[str]:
        """The ids of the calls that were answered, in order."""
        return list(self._outputs)

    @property
    def _outputs(self) -> dict[str, str]:
        assert self._exchange is not None
        outputs: dict[str, str] = {}
        for request in self._exchange.requests:
            outputs |= request.outputs
        return outputs

    @property
    def sent(self) -> list[bytes]:
        """The bodies of the requests, to the byte."""
        assert self._exchange is not None
        return [request.raw for request in self._exchange.requests]

    @property
    def offered(self) -> list[bytes]:
        """The tools that each request offered, as JSON."""
        assert self._exchange is not None
        return [
            json.dumps(request.body.get("tools"), sort_keys=True).encode()
            for request in self._exchange.requests
        ]


class Record:
    """A sink that keeps the events, each at once."""

    never_blocks = True

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def __call__(self, event: AuditEvent) -> None:
        """Keep one."""
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events, in order."""
        return [event.kind for event in self.events]

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of the events of one kind."""
        return [dict(event.body) for event in self.events if event.kind == kind]


@pytest.fixture(scope="session")
def server():
    """The model service."""
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def stage(server, tmp_path) -> Stage:
    """A stage of one's own."""
    return Stage(server, tmp_path)


@pytest.fixture
def record() -> Record:
    """A record of one's own."""
    return Record()


@pytest.fixture
def guard_of(record) -> Callable[..., ToolGuard]:
    """Make a guard of rules, the last of which allows everything unless told otherwise."""
    guards = []

    def make(*rules: dict[str, Any], rest: str = "allow", **options: Any) -> ToolGuard:
        every = [*rules, {"id": "rest", "match": "always", "decision": rest}]
        policy = compile_policy({"version": 1, "rules": every})
        guards.append(ToolGuard(policy=policy, sinks=[record], **options))
        return guards[-1]

    yield make
    for guard in guards:
        guard.close()


@pytest.fixture
def desk(stage, guard_of, tmp_path) -> Desk:
    """A desk that pauses."""
    return Desk(stage, guard_of, tmp_path)
