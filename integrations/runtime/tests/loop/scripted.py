"""What the tests of the loop have in common: an agent's script, its tools, a store that dies."""

from __future__ import annotations

from adjudge import MemoryRunStore, ToolSet, compile_policy, shadow, tool
from adjudge.testing import RecordingSink
from adjudge_runtime import Budget, FinalAnswer, ToolCall, run_agent

RULES = [
    {"id": "never", "match": {"tool": "erase"}, "decision": "deny", "reason": "never erase"},
    {"id": "ask", "match": {"tool": "pay"}, "decision": "approve_required"},
    {"id": "look", "match": {"tool": "write"}, "decision": "dry_run"},
    {
        "id": "cap",
        "match": {"tool": "order", "args.count.gt": 5},
        "decision": "transform",
        "transform": {"jsonpath": "$.args.count", "set": 5},
    },
    {"id": "all", "match": "always", "decision": "allow"},
]
DONE = FinalAnswer("done")


def policy(*first):
    """Give the usual rules, after some of a test's own."""
    rules = [{"priority": 10, "id": f"own-{number}", **rule} for number, rule in enumerate(first)]
    return compile_policy({"version": 1, "rules": [*rules, *RULES]})


class Script:
    """An agent that goes through a list of actions, chosen by the conversation alone."""

    def __init__(self, *actions, name=None):
        self.actions = actions or (DONE,)
        self.seen = []
        if name is not None:
            self.name = name

    async def step(self, conversation):
        """Give the next action, raise it, or call it for one."""
        self.seen.append(conversation)
        done = sum(message.role == "assistant" for message in conversation)
        action = self.actions[min(done, len(self.actions) - 1)]
        if isinstance(action, BaseException):
            raise action
        return await action() if callable(action) else action

    @property
    def told(self):
        """What the tools said, as the last question to the agent had it."""
        return [message.content for message in self.seen[-1] if message.role == "tool"]


class World:
    """Tools that put down what they did, and a run of them."""

    def __init__(self):
        self.ran = []
        self.sink = RecordingSink()
        ran = self.ran

        @tool()
        async def echo(text: str = "hi") -> str:
            """Say it again."""
            ran.append(("echo", text))
            return text

        @tool()
        async def order(count: int) -> dict[str, int]:
            """Order things."""
            ran.append(("order", count))
            return {"ordered": count}

        @tool()
        def pay(amount: int) -> int:
            """Pay, from plain code."""
            ran.append(("pay", amount))
            return amount

        @tool()
        async def erase() -> None:
            """Erase everything."""
            ran.append(("erase",))

        @tool()
        async def write(path: str) -> None:
            """Write a file."""
            ran.append(("write", path))

        @shadow(write)
        async def preview(path: str) -> dict[str, str]:
            return {"would_write": path}

        @tool()
        async def fail() -> None:
            """Fail."""
            ran.append(("fail",))
            raise ValueError("bang")

        self.tools = ToolSet([echo, order, pay, erase, write, fail])

    async def run(self, agent, **options):
        """Run an agent on the task, with a sink unless a test has its own way."""
        settings = {"tools": self.tools, "policy": policy(), "budget": Budget(steps=20)}
        if "guard" in options:
            del settings["policy"]
        else:
            settings["sinks"] = (self.sink,)
        return await run_agent(agent, "the task", **(settings | options))

    @property
    def events(self):
        """The kinds of what was recorded, in order."""
        return [event.kind for event in self.sink.events]

    def bodies(self, kind):
        """The bodies of the events of a kind."""
        return [event.body for event in self.sink.events if event.kind == kind]


class Died(BaseException):
    """The worker is gone; nothing handles it."""


class DyingStore(MemoryRunStore):
    """A store at which a worker dies: after so many records, before or after the next one."""

    def __init__(self, records, survive):
        super().__init__()
        self.survive = survive
        for record in records:
            self._runs.setdefault(record.run_id, {})[record.seq] = record

    async def append(self, record):
        """Keep a record, or die instead."""
        if self.survive == 0:
            raise Died
        self.survive -= 1
        await super().append(record)


def call(name, /, **args):
    """Propose one call."""
    return ToolCall(name, args)
