"""Realtime sessions, on a model of ours that calls a tool once and then ends."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.realtime import RealtimeModel
from pydantic_ai.realtime.codec import RealtimeConnection, ResponseDone, ToolCall, ToolResult

try:
    from pydantic_ai.realtime.lifecycle import InferredLifecycle
except ImportError:  # the oldest release takes the events as they are
    InferredLifecycle = None

from adjudge import ApprovalDecision, GovernError
from adjudge_pydantic_ai import AdjudgeCapability, govern

DENIED = "[denied] not permitted by policy"


class Connection(RealtimeConnection):
    """A connection over which a tool is called, and which ends when its result has come."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self._answered = asyncio.Event()
        self.results: list[str] = []
        self._lifecycle = InferredLifecycle() if InferredLifecycle is not None else None

    async def send(self, content: Any) -> Any:
        """Take the result."""
        if self._lifecycle is not None:
            with self._lifecycle.sending(content):
                self._take(content)
            return self._lifecycle.take_pending()
        self._take(content)
        return None

    def _take(self, content: Any) -> None:
        if isinstance(content, ToolResult):
            self.results.append(content.output)
            self._answered.set()

    async def _events(self) -> Any:
        yield self._call
        await self._answered.wait()
        yield ResponseDone()

    def __aiter__(self) -> Any:
        """Give the events."""
        return self._events()

    def frames(self) -> Any:
        """Give the events with what a newer session wants to know of them."""
        return self._lifecycle.frames(self._events())


class OneCall(RealtimeModel):
    """A model that calls a tool once."""

    def __init__(self, tool: str, args: str) -> None:
        super().__init__()
        self._call = ToolCall("call_1", tool_name=tool, args=args)
        self.connections: list[Connection] = []
        self.native_tools: list[str] = []

    @asynccontextmanager
    async def connect(self, *, messages: Any, model_settings: Any, model_request_parameters: Any):
        """Open a connection."""
        self.native_tools = [tool.kind for tool in model_request_parameters.native_tools]
        self.connections.append(Connection(self._call))
        yield self.connections[-1]

    @property
    def profile(self) -> Any:
        """What it can do."""
        return {**super().profile, "supported_native_tools": frozenset({WebSearchTool})}

    @property
    def model_name(self) -> str:
        """Its name."""
        return "one-call"

    @property
    def system(self) -> str:
        """Its provider's name."""
        return "test"

    @property
    def results(self) -> list[str]:
        """What it was told."""
        return [result for connection in self.connections for result in connection.results]


@pytest.fixture
def wipe(ran):
    """A tool whose every start is seen."""

    def wipe(disk: str = "a") -> str:
        """Wipe a disk."""
        ran.append(disk)
        return "wiped"

    return wipe


def listen(agent: Any, model: OneCall, **options: Any) -> None:
    """Hold a session to its end."""

    async def run() -> None:
        async with agent.realtime(model, **options).session() as session:
            async for _ in session:
                pass

    asyncio.run(run())


@pytest.mark.parametrize("wrap", [False, True], ids=["agent", "wrapper"])
def test_a_session_goes_through_the_guard(wrap, guard_of, wipe, ran, record):
    """Law 3: a session is governed, whoever opens it."""
    model = OneCall("wipe", "{}")
    agent: Any = govern(Agent(tools=[wipe]), guard_of(rest="deny"))

    listen(WrapperAgent(agent) if wrap else agent, model)

    assert ([DENIED], []) == (model.results, ran)
    assert ["action.denied"] == record.ends


@pytest.mark.parametrize("way", ["agent", "session"])
def test_the_capability_alone_is_refused(way, guard_of, wipe, ran):
    """Law 3: a session shows a capability no tools at the provider, so it does not open."""
    model = OneCall("wipe", "{}")
    ours = {"capabilities": [AdjudgeCapability(guard_of())]}
    agent = Agent(tools=[wipe], **(ours if way == "agent" else {}))

    with pytest.raises(GovernError, match="with govern"):
        listen(agent, model, **(ours if way == "session" else {}))

    assert ([], []) == (model.connections, ran)


def test_an_allowed_call_runs(guard_of, wipe, ran, record):
    """Law 1: a call that the policy allows runs as ungoverned."""
    model = OneCall("wipe", '{"disk": "b"}')

    listen(govern(Agent(tools=[wipe]), guard_of()), model)

    assert (["wiped"], ["b"]) == (model.results, ran)
    assert ["action.completed"] == record.ends


def test_refused_arguments_run_nothing(guard_of, wipe, ran, record):
    """Clause 2: the model's text is read strictly here, too."""
    model = OneCall("wipe", '{"disk": "a", "disk": "b"}')

    listen(govern(Agent(tools=[wipe]), guard_of()), model)

    assert model.results[0].startswith("[denied] args")
    assert ([], ["action.denied"]) == (ran, record.ends)


def test_a_person_is_asked_while_the_session_waits(guard_of, wipe, ran):
    """approve_required: a handler answers in place."""

    async def grant(_: object) -> ApprovalDecision:
        return ApprovalDecision(True, "ana")

    model = OneCall("wipe", "{}")

    listen(govern(Agent(tools=[wipe]), guard_of(rest="approve_required", on_approval=grant)), model)

    assert (["wiped"], ["a"]) == (model.results, ran)


def test_a_session_cannot_wait_for_an_answer_that_comes_later(pausing, wipe, ran, record):
    """A session has nothing that would outlive it: what would need a pause is denied."""
    model = OneCall("wipe", "{}")

    listen(govern(Agent(tools=[wipe]), pausing()), model)

    assert model.results[0].startswith("[denied] ")
    assert ([], ["cannot_pause"]) == (
        ran,
        [each["code"] for each in record.bodies("action.denied")],
    )


@pytest.mark.parametrize("hosted", ["refuse", "strip"])
def test_tools_at_the_provider_stay_out(hosted, guard_of):
    """Law 3: a session with one is refused before it connects, or opened without it."""
    model = OneCall("wipe", "{}")
    agent = govern(Agent(), guard_of(), hosted=hosted)

    async def run() -> None:
        search = [NativeTool(WebSearchTool())]
        async with agent.realtime(model, capabilities=search).session():
            pass

    if hosted == "refuse":
        with pytest.raises(GovernError, match="runs at the provider"):
            asyncio.run(run())
    else:
        asyncio.run(run())

    assert [] == model.native_tools
    assert (hosted == "strip") == bool(model.connections)


def test_the_private_door_is_where_it_was():
    """The one way to a session that a wrapper around the agent takes, too, is not public."""
    assert callable(Agent._resolve_realtime_session)
    assert callable(WrapperAgent._resolve_realtime_session)
