"""What the tests here share: a scripted model service, and guards of a few rules."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient, Client
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from adjudge import AuditEvent, SQLiteLedger, ToolGuard, compile_policy, pause_approval
from adjudge_conformance.wire import Api, Exchange, Script, ScriptedCall, ScriptedServer, Turn

ERASE_ALL = {"tool": "erase", "args": {}}


class Stage:
    """Agents on scripted models: `said` is what the models were told of each call, in order."""

    def __init__(self, server: ScriptedServer, log: Path) -> None:
        self._server = server
        self._log = log
        self._exchange: Exchange | None = None

    def script(self, api: Api = "chat", **turns: list[Any]) -> None:
        """Say which calls the model of each name makes before it is done.

        A call is a pair of tool and argument text, and a turn is one call or a list of them.
        """
        script = {
            name: [
                *(
                    Turn(tuple(ScriptedCall(*call) for call in turn))
                    if isinstance(turn, list)
                    else Turn((ScriptedCall(*turn),))
                    for turn in made
                ),
                Turn(text=f"{name} is done."),
            ]
            for name, made in turns.items()
        }
        self._api = api
        self._exchange = self._server.open(Script(script), api=api, log=self._log)

    def agent(self, tools: Any = (), name: str = "a", **fields: Any) -> Any:
        """Make an agent whose model is the script of that name."""
        return create_agent(self.model(name), list(tools), name=name, **fields)

    def model(self, name: str = "a") -> ChatOpenAI:
        """Give the framework's own model on its real client."""
        assert self._exchange is not None
        headers = {"Connection": "close"}
        return ChatOpenAI(
            model=name,
            api_key="none",
            base_url=self._exchange.base_url,
            max_retries=0,
            use_responses_api=self._api == "responses",
            http_client=Client(verify=False, headers=headers),
            http_async_client=AsyncClient(verify=False, headers=headers),
        )

    def run(self, agent: Any, *, in_loop: bool = False, **options: Any) -> Any:
        """Run an agent to its end."""
        given = {"messages": [{"role": "user", "content": "Go."}]}
        if in_loop:
            return asyncio.run(agent.ainvoke(given, **options))
        return agent.invoke(given, **options)

    @property
    def said(self) -> list[str]:
        """The tools' answers as the models got them, each once, in order."""
        outputs: dict[str, str] = {}
        for request in self.requests:
            outputs |= request.outputs
        return list(outputs.values())

    @property
    def requests(self) -> list[Any]:
        """What was sent to the models."""
        assert self._exchange is not None
        return self._exchange.requests

    @property
    def offered(self) -> list[list[str]]:
        """The names of the tools that each request offered."""
        return [
            [
                tool.get("function", tool).get("name", tool["type"])
                for tool in request.body.get("tools", [])
            ]
            for request in self.requests
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

    @property
    def ends(self) -> list[str]:
        """The kinds of the events that end a call or suspend it, in order."""
        return [kind for kind in self.kinds if kind.startswith("action.")]

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of the events of one kind, as plain JSON."""
        return [
            json.loads(json.dumps(dict(event.body), default=str))
            for event in self.events
            if event.kind == kind
        ]


@pytest.fixture(scope="session")
def server():
    """The model service."""
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def stage(server, tmp_path) -> Stage:
    """A stage of one's own."""
    return Stage(server, tmp_path / "requests.jsonl")


@pytest.fixture
def record() -> Record:
    """A record of one's own."""
    return Record()


@pytest.fixture
def ran() -> list[Any]:
    """Where bodies leave their traces."""
    return []


@pytest.fixture
def erase(ran):
    """A tool whose every start is seen."""

    @tool
    def erase(name: str, hard: bool = False) -> str:
        """Erase a note."""
        ran.append((name, hard))
        return f"erased {name}"

    return erase


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
def pausing(guard_of, tmp_path) -> Callable[..., ToolGuard]:
    """Make a guard that has a person asked about everything but what its rules say."""

    def make(*rules: dict[str, Any], rest: str = "approve_required") -> ToolGuard:
        ledger = SQLiteLedger(tmp_path / "ledger.sqlite")
        return guard_of(*rules, rest=rest, on_approval=pause_approval(ledger))

    return make
