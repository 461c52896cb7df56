"""Agents as tools: a nested run inside of a tool's body, under the same guard, kill switch and run.

The nested agent's calls go through the same door and onto the same record. Where the run is kept in
a store so is the nested one, under a name of its own, and goes on where it was; where it pauses,
the body that asked it is left waiting and is entered again when the run goes on. Plain code that
asks an agent cannot be left, so that in there nobody is asked and what needs approval is denied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from adjudge import ToolDef, ToolDefinitionError, ToolMetadata, ToolSet
from adjudge_runtime._attempt import Attempt, name_of
from adjudge_runtime._claiming import AgentBody
from adjudge_runtime._compressors import Compressor
from adjudge_runtime._scope import SCOPE, CallScope
from adjudge_runtime._stops import Stop, Suspended
from adjudge_runtime._values import Agent, Budget, RunResult

__all__ = ["AgentToolError", "agent_tool"]

_FOR_ALL = frozenset({"superseded", "store_failed", "cancelled", "record_failed", "budget_failed"})
"""The codes with which a nested run ends the whole run."""


class AgentToolError(RuntimeError):
    """A nested run ended without an answer; `code` is that of its `RunResult`."""

    def __init__(self, name: str, result: RunResult) -> None:
        super().__init__(f"{name}: {result.error}")
        self.code = result.code


def agent_tool(
    agent: Agent,
    *,
    tools: ToolSet,
    name: str | None = None,
    description: str = "",
    budget: Budget = Budget(),  # noqa: B008  (a frozen value)
    compressor: Compressor | None = None,
    declared: ToolMetadata = ToolMetadata(),  # noqa: B008  (a frozen value)
) -> ToolDef:
    """Make a tool of an agent: it is given a `task` and gives the agent's answer.

    `name` is the agent's own by default. The calls of its `tools` are governed by the guard of the
    run that calls it, and what it uses counts towards that run's budget besides its own `budget`;
    that run's `Budget.cost` counts its money too, unless `budget` has a `cost` of its own.
    A nested run without an answer is a failure of the tool. The agent runs in this process: a tool
    that is `declared` to be isolated never runs, whatever the executor. Raises
    `ToolDefinitionError` for what is no agent or has no name.
    """
    called = name if name is not None else name_of(agent)
    if not called:
        raise ToolDefinitionError("The agent has no name; write agent_tool(agent, name=...).")
    if not callable(getattr(agent, "step", None)):
        raise ToolDefinitionError(f"{called} has no method step; give an agent.")
    body = _Body(agent, called, tools, budget, compressor)
    return ToolDef(called, description or f"Ask the agent {called}.", body, None, declared)


@dataclass(frozen=True, slots=True, eq=False)
class _Body(AgentBody):
    agent: Agent
    name: str
    tools: ToolSet
    budget: Budget
    compressor: Compressor | None

    async def __call__(self, task: str) -> str:
        """Run the nested agent, or go on with it where it was left."""
        scope = SCOPE.get()
        if scope is None:
            raise RuntimeError(
                f"{self.name} is an agent's tool, which runs inside of run_agent alone."
            )
        try:
            result = await self._attempt(task, scope)
        except Stop as stop:
            raise scope.desk.halt.set(stop) from stop
        scope.count(result.usage, result.denials)
        if result.code == "paused":
            raise Suspended
        if result.code in _FOR_ALL:
            raise scope.desk.halt.set(Stop(result.code, result.error or result.code))
        if result.error is not None:
            raise AgentToolError(self.name, result)
        return result.final_answer or ""

    async def _attempt(self, task: str, scope: CallScope) -> RunResult:
        outer, place = scope.desk, f"{scope.step}.{scope.index}"
        if scope.has_begun:
            place = f"{place}.{self.name}"  # plain code may ask several agents
        journal = await outer.journal.nested(place)
        past = journal.past
        if past.records and past.task != task:
            raise ValueError(
                f"{self.name} was begun with the task {past.task!r} in this call, and cannot go on "
                f"with {task!r}."
            )
        cost = self.budget.cost or outer.cost
        desk = replace(
            outer,
            journal=journal,
            cost=cost,
            parent=f"{outer.parent}/{scope.call.call_id}",
            may_pause=outer.may_pause and not scope.has_begun,
        )
        budget = replace(self.budget, cost=cost)
        about = {"parent": desk.parent}
        attempt = Attempt(
            desk, journal, self.agent, task, self.tools, budget, self.compressor, about=about
        )
        return await attempt.carry_out()
