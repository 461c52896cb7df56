"""Agents that follow a script, and the tools and policies that the tests of graphs share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from adjudge import PolicyBundle, ToolSet, compile_policy, tool
from adjudge_runtime import AgentAction, Budget, FinalAnswer, Message, ToolCall
from adjudge_runtime.graph import GraphNode, NodeOutcome

READ_ONLY = compile_policy(
    {
        "version": 1,
        "defaults": {"on_no_match": "deny"},
        "rules": [{"id": "reads", "match": {"tool": "read"}, "verdict": "allow"}],
    }
)
CAN_WRITE = compile_policy({"version": 1, "defaults": {"on_no_match": "allow"}})
DRY = compile_policy({"version": 1, "defaults": {"on_no_match": "dry_run"}})
ASKS = compile_policy({"version": 1, "defaults": {"on_no_match": "approve_required"}})


class Crash(BaseException):
    """What ends a worker as a killed process would: nothing may take it for a failure."""


class Script:
    """An agent that does one thing after the other; what is called is asked for the action.

    Which is next is read off the conversation, so that a resumed run goes on where it was. `tasks`
    are what it was asked, `steps` how often it was asked for an action.
    """

    def __init__(self, *actions: AgentAction | BaseException | Callable[[], AgentAction]) -> None:
        self._actions = actions
        self.tasks: list[str] = []
        self.steps = 0

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Give the next action of the script, the last one again after its end."""
        done = sum(message.role == "assistant" for message in conversation)
        if done == 0:
            self.tasks.append(conversation[0].content)
        self.steps += 1
        await asyncio.sleep(0)
        action = self._actions[min(done, len(self._actions) - 1)]
        if isinstance(action, BaseException):
            raise action
        return action() if callable(action) else action


class Meeting:
    """An agent that answers once all others of its meeting are asked as well."""

    def __init__(self, barrier: asyncio.Barrier, answer: str) -> None:
        self._barrier = barrier
        self._answer = answer

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Wait for the others, then answer."""
        await self._barrier.wait()
        return FinalAnswer(self._answer)


def answers(text: str) -> Script:
    """Make an agent that answers at once."""
    return Script(FinalAnswer(text))


def node(
    agent: Any,
    policy: PolicyBundle = CAN_WRITE,
    *,
    written: list[str] | None = None,
    on_approval: Any = None,
) -> GraphNode:
    """Make a node whose tool `write` appends to a list, and `read` gives "text"."""
    kept = [] if written is None else written

    @tool()
    def read() -> str:
        """Read."""
        return "text"

    @tool()
    def write(text: str) -> str:
        """Write."""
        kept.append(text)
        return "written"

    tools = ToolSet([read, write])
    return GraphNode(agent, tools, policy, Budget(steps=9), on_approval)


def writes(text: str) -> ToolCall:
    """Propose to write."""
    return ToolCall("write", {"text": text})


def after(**ways: str) -> Callable[[NodeOutcome], str | None]:
    """Make a router of a table from each node to the next."""
    return lambda outcome: ways.get(outcome.node)
