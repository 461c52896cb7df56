"""Runs one call of a run through the guard, and says what came of it.

This is the loop's only way to a tool. It hands the model's words to `ToolGuard.check` and turns
what comes back into what the model is told; it decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from adjudge import (
    ArgumentsRefused,
    GovernedCall,
    Outcome,
    ToolDef,
    ToolDefinitionError,
    ToolGuard,
    ToolSet,
    Verdict,
    inline_executor,
)
from adjudge.integration import CallPlace, EntryState, LedgerEntry, freeze_object
from adjudge_runtime._answers import Answer, text_of_value
from adjudge_runtime._claiming import claiming_executor, claiming_tools, holds_agents
from adjudge_runtime._desk import Desk
from adjudge_runtime._schema import tool_schema
from adjudge_runtime._scope import SCOPE, CallScope
from adjudge_runtime._stops import Suspended
from adjudge_runtime._uncertain import EXTRA, before_asking, careful_executor
from adjudge_runtime._values import ToolCall

__all__ = ["CallTools", "GovernedCalls", "PlainCall"]

_COMPLETED = Outcome.COMPLETED

_UNDONE = frozenset({"failed", "denied", "cancelled"})
"""How calls end whose body brought nothing about, or raised: another try is a new attempt."""


PlainCall = Callable[[ToolCall], Awaitable[str | Answer]]
"""Runs one call and gives the text that the model is told, or all there is to say."""


class CallTools(Protocol):
    """All that the loop knows of tools."""

    async def run(self, step: int, index: int, call: ToolCall, *, uncertain: bool) -> Answer:
        """Run one call, if it may, and say what came of it.

        `uncertain` says that its body may have run before.
        """
        ...

    def tool(self, name: str) -> ToolDef | None:
        """Give the tool of that name, if there is one."""
        ...

    def waiting(self, call: ToolCall) -> str | None:
        """Give the id under which this call waits for a person since an earlier attempt."""
        ...

    def forget_unbegun(self, call: ToolCall) -> None:
        """Let a call whose body never began be a new one, unless somebody refused it."""
        ...


class GovernedCalls:
    """The tools of one agent's loop, behind the guard."""

    def __init__(self, desk: Desk, tools: ToolSet, *, agent: str | None) -> None:
        self._desk = desk
        self._tools = tools
        self._agent = agent
        nests = tools.derived(holds_agents)
        self._is_scoped = desk.journal.keeps or nests
        self._is_placed = desk.records or desk.run is not None or nests
        self._control_flow: tuple[type[BaseException], ...] = (Suspended,) if nests else ()
        executor = desk.executor
        held = tools
        if executor is not None and self._is_scoped:
            executor = claiming_executor(executor)
        elif desk.journal.keeps:
            held = tools.derived(claiming_tools)
        self._schemas = _schemas(tools)
        guard = desk.guard.with_tools(held, executor=executor, schemas=self._schemas)
        self._check = guard.check
        self._retrying: ToolGuard | None = None

    def tool(self, name: str) -> ToolDef | None:
        """Give the tool of that name, if there is one."""
        return self._tools.get(name) if name in self._tools else None

    def waiting(self, call: ToolCall) -> str | None:
        """Give the id under which this call waits for a person since an earlier attempt."""
        entry, run = self._entry_of(call), self._desk.run
        return (
            entry.id
            if entry is not None and run is not None and entry.id in run.unanswered
            else None
        )

    def forget_unbegun(self, call: ToolCall) -> None:
        """Let a call whose body never began be a new one, unless somebody refused it."""
        entry, run = self._entry_of(call), self._desk.run
        if entry is None or run is None or entry.state is not EntryState.FINISHED:
            return
        # Never what the ledger knows to be done, whatever a journal has lost since (law 6).
        if entry.outcome in _UNDONE and all(answer.granted for answer in entry.answers):
            run.take(entry.occurrence)

    def _entry_of(self, call: ToolCall) -> LedgerEntry | None:
        """Give what the ledger has of a call from an earlier attempt."""
        run = self._desk.run
        if run is None:
            return None
        parent = self._desk.parent or None
        return run.entry_at(call.tool, call.call_id, agent=self._agent, parent=parent)

    async def run(self, step: int, index: int, call: ToolCall, *, uncertain: bool) -> Answer:
        """Run one call through the guard."""
        if not self._is_scoped:
            return Answer.of(await self._governed(call, uncertain=False))
        scope = CallScope(self._desk, step, index, call, asyncio.get_running_loop())
        token = SCOPE.set(scope)
        try:
            answer = Answer.of(await self._governed(call, uncertain=uncertain))
        except Suspended:
            answer = Answer("", Verdict.ALLOW.value, Outcome.SUSPENDED.value, ok=False, waits="")
        finally:
            SCOPE.reset(token)
        answer.usage, answer.denials = scope.used, scope.denials
        return answer

    @property
    def plain(self) -> PlainCall | None:
        """What runs calls of which nothing is kept; None where something has to be."""
        return None if self._is_scoped else self._plainly

    async def _plainly(self, call: ToolCall) -> str | Answer:
        placed = self._place(call) if self._is_placed else None
        governed = await self._check(call.tool, call.args, context=self._desk.context, place=placed)
        if governed.outcome is _COMPLETED:
            return text_of_value(governed.result.value)
        return Answer.of(governed)

    def _governed(self, call: ToolCall, *, uncertain: bool) -> Awaitable[GovernedCall]:
        desk = self._desk
        if uncertain:
            policy = desk.guard.policy
            place = self._place(call, before_asking=partial(before_asking, policy))
            check = self._guard_of_retries().check
            return check(call.tool, call.args, extra=EXTRA, context=desk.context, place=place)
        placed = self._place(call) if self._is_placed else None
        return self._check(call.tool, call.args, context=desk.context, place=placed)

    def _place(self, call: ToolCall, **asking: Any) -> CallPlace:
        desk = self._desk
        return CallPlace(
            call.call_id,
            desk.run,
            self._agent,
            desk.parent or None,
            self._control_flow,
            desk.may_pause,
            **asking,
        )

    def _guard_of_retries(self) -> ToolGuard:
        if self._retrying is None:
            guard, executor = self._desk.guard, self._desk.executor
            claiming = claiming_executor(inline_executor() if executor is None else executor)
            careful = careful_executor(guard.policy, claiming, routes=executor is not None)
            self._retrying = guard.with_tools(self._tools, executor=careful, schemas=self._schemas)
        return self._retrying


def _schemas(tools: ToolSet) -> dict[str, dict[str, Any]]:
    """Give what a model is told of each tool, so that it is what is enforced."""
    found = tools.derived(_no_schemas)
    if len(found) == len(tools):
        return found
    for tool in tools:
        if tool.name in found:
            continue
        try:
            schema = tool_schema(tool)
        except ToolDefinitionError:
            # No model of ours can be told of it; the names of its arguments are held to anyway.
            continue
        with suppress(ArgumentsRefused):  # the default is no number, for one
            # What a guard reads of one that cannot change holds for each run.
            schema = freeze_object(schema)
        found[tool.name] = schema
    return found


def _no_schemas(tools: ToolSet) -> dict[str, dict[str, Any]]:
    """Give what the schemas are kept in; what cannot be resolved yet may be in a later run."""
    return {}
