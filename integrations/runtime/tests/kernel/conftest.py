"""What the tests of the kernel have in common: a kernel, its model's script, and its clock."""

from datetime import UTC, datetime, timedelta

import pytest

from adjudge import (
    MemoryRunStore,
    MemorySessionStore,
    ToolGuard,
    ToolSet,
    callback_sink,
    compile_policy,
    tool,
)
from adjudge_runtime.kernel import AgentKernel, Decision

RULES = [
    {"id": "no", "match": {"tool": "erase"}, "decision": "deny", "reason": "never erase"},
    {"id": "ask", "match": {"tool": "pay"}, "decision": "approve_required"},
    {"id": "all", "match": "always", "decision": "allow"},
]


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self):
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        """Give the time."""
        return self.time

    def pass_seconds(self, seconds):
        """Go on."""
        self.time += timedelta(seconds=seconds)


class Desk:
    """A kernel with a model that follows a script, and all that stands around it."""

    def __init__(self, *moves, rules=RULES, guard=None, **settings):
        self.moves = list(moves)
        self.read = []
        self.ran = []
        self.events = []
        self.clock = Clock()
        self.store = settings.pop("store", None) or MemorySessionStore()
        self.chain = settings.pop("chain", None) or MemoryRunStore()
        policy = compile_policy({"version": 1, "rules": rules})
        self.guard = ToolGuard(policy=policy, sinks=[callback_sink(self._record)], **(guard or {}))
        self.kernel = AgentKernel(
            self.model,
            guard=self.guard,
            tools=self.tools(),
            store=self.store,
            chain=self.chain,
            now=self.clock,
            **settings,
        )

    async def _record(self, event):
        self.events.append(event)

    def model(self, text):
        """Choose the next move of the script; an exception in it is raised."""
        self.read.append(text)
        move = self.moves.pop(0)
        if isinstance(move, BaseException):
            raise move
        return move

    def tools(self):
        """Give the tools, which put down that they ran."""
        ran = self.ran

        @tool()
        async def look(what: str) -> str:
            """Look at something."""
            ran.append(("look", what))
            return f"saw {what}"

        @tool()
        def erase(what: str) -> str:
            """Erase something."""
            ran.append(("erase", what))
            return "gone"

        @tool()
        def fail() -> str:
            """Fail."""
            ran.append(("fail",))
            raise ValueError("broken")

        @tool()
        def pay(amount: int) -> str:
            """Pay an amount."""
            ran.append(("pay", amount))
            return "paid"

        return ToolSet.from_functions(look, erase, fail, pay)

    async def create(self, session_id="s", **fields):
        """Make a session."""
        whole = {"tenant": "t", "user_id": "ana", "goal": "find out", **fields}
        return await self.kernel.create_session(session_id=session_id, **whole)

    async def run(self, session_id="s", **named):
        """Run a session, made if need be."""
        if not await self.store.exists(session_id):
            await self.create(session_id)
        return await self.kernel.run(session_id, **named)


def act(tool, used=(0, 0), cost=0, **arguments):
    """Propose a call."""
    return Decision(
        "act",
        "on",
        tool=tool,
        arguments=arguments,
        tokens_in=used[0],
        tokens_out=used[1],
        cost_micros=cost,
    )


@pytest.fixture
def desk():
    """Give what makes desks."""
    return Desk


@pytest.fixture
def look():
    """Give what proposes to look at something."""
    return lambda what="a", **named: act("look", what=what, **named)


@pytest.fixture
def propose():
    """Give what proposes a call."""
    return act


@pytest.fixture
def done():
    """Give the move that ends a session."""
    return Decision("finish", "enough", answer="the answer")


@pytest.fixture
def question():
    """Give the move that asks a person."""
    return Decision("ask", "unsure", question="may I?")
