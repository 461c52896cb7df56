"""What the tests here share: a scripted model service, crews on it, and guards of a few rules."""

import json
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Before CrewAI is imported: it would report to its makers, and keep files in the home directory.
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TESTING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "HOME": tempfile.mkdtemp(prefix="crewai-home-"),
    # Nothing here speaks TLS, and each client would read all certificates there are.
    "SSL_CERT_DIR": tempfile.gettempdir(),
    "SSL_CERT_FILE": "",
}
with warnings.catch_warnings():
    # CrewAI and what it needs warn while they are imported.
    warnings.simplefilter("ignore")
    from crewai import LLM, Agent, Crew, Task
    from crewai.llms.providers.openai.completion import OpenAICompletion

from adjudge import AuditEvent, SQLiteLedger, ToolGuard, compile_policy, pause_approval
from adjudge_conformance.wire import Exchange, Script, ScriptedCall, ScriptedServer, Turn

ERASE = ("erase", '{"name": "a"}')


def pytest_configure(config):
    """Leave to CrewAI what CrewAI warns of; whatever this package does is an error still."""
    config.addinivalue_line("filterwarnings", "ignore:::crewai")
    # Which CrewAI calls, from where the warning does not say.
    message = "ignore:Use `streamable_http_client` instead:DeprecationWarning"
    config.addinivalue_line("filterwarnings", message)
    # Its models hold clients that nothing closes.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


class TextLLM(OpenAICompletion):
    """A model that cannot call functions, with which CrewAI speaks in ReAct's words."""

    def supports_function_calling(self) -> bool:
        """It does not."""
        return False


class Stage:
    """Crews on scripted models: `said` is what the models were told of each call, in order."""

    def __init__(self, server: ScriptedServer, log: Path, api: str = "chat") -> None:
        self._server = server
        self._log = log
        self.api = api
        self._exchange: Exchange | None = None

    def script(self, **turns: list[Any]) -> None:
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
        self._exchange = self._server.open(Script(script), api=self.api, log=self._log)

    def agent(self, name: str = "a", **fields: Any) -> Agent:
        """Make an agent whose model is the script of that name."""
        assert self._exchange is not None
        given = {"base_url": self._exchange.base_url, "api_key": "none"}
        react = self.api == "react"
        llm = TextLLM(model=name, **given) if react else LLM(model=f"openai/{name}", **given)
        return Agent(role=name, goal="Keep notes.", backstory="A clerk.", llm=llm, **fields)

    def crew(self, agent: Agent, *, fields: dict[str, Any] | None = None, **task: Any) -> Crew:
        """Make a crew of one agent and one task."""
        return Crew(agents=[agent], tasks=[self.task(agent, **task)], **(fields or {}))

    def task(self, agent: Agent, **fields: Any) -> Task:
        """Make a task."""
        given = {"description": "Go.", "expected_output": "A word."} | fields
        return Task(agent=agent, **given)

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


class Record:
    """A sink that keeps the events, each at once."""

    never_blocks = True

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def __call__(self, event: AuditEvent) -> None:
        """Keep one."""
        self.events.append(event)

    @property
    def ends(self) -> list[str]:
        """The kinds of the events that end a call or suspend it, in order."""
        return [event.kind for event in self.events if event.kind.startswith("action.")]

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
    """A stage on which models call functions."""
    return Stage(server, tmp_path / "requests.jsonl")


@pytest.fixture(params=["chat", "react"])
def both(server, tmp_path, request) -> Stage:
    """A stage for each of CrewAI's two paths."""
    return Stage(server, tmp_path / "requests.jsonl", request.param)


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
    """A function whose every start is seen."""

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
    """Make a guard that has a person asked about `erase`, but for what its rules say."""

    def make(*rules: dict[str, Any], rest: str = "allow") -> ToolGuard:
        ledger = SQLiteLedger(tmp_path / "ledger.sqlite")
        ask = {"id": "ask", "match": {"tool": "erase"}, "decision": "approve_required"}
        return guard_of(*rules, ask, rest=rest, on_approval=pause_approval(ledger))

    return make
