"""`GovernedToolset`: the last gate before the tools of a toolset."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from adjudge import GovernError, ToolGuard
from adjudge_pydantic_ai._binding import Binding, ContextSource, RunState
from adjudge_pydantic_ai._calls import judge_call, judge_deferred, was_judged

__all__ = ["GovernedToolset", "StoppedCall"]


class StoppedCall(ToolFailed):
    """A call that is stopped before it would be handed out of the run."""


@dataclass
class GovernedToolset(WrapperToolset[AgentDepsT]):
    """A toolset each of whose calls goes through a guard before it reaches its tool.

    Tools that are registered on the agent itself, or in other toolsets, are not governed by this
    one: `govern` reaches them all. `context` gets the run context of each call and answers who is
    calling; None or an exception denies. What it leaves waiting can be resumed only where the agent
    is governed, too.
    """

    guard: ToolGuard
    _: KW_ONLY
    context: ContextSource | None = None
    state: RunState | None = field(default=None, repr=False, compare=False)
    """The state of the run, where it has begun."""
    placed: bool = field(default=False, repr=False, compare=False)
    """Whether a capability has put it before all tools of a run."""

    def __post_init__(self) -> None:
        self._binding = Binding.of(self.guard, context=self.context)
        self._state = self.state or RunState.begin(self.guard)

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Start a run with nothing known of its calls."""
        return replace(self, wrapped=await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Go on to the next step of the same run."""
        wrapped = await self.wrapped.for_run_step(ctx)
        if wrapped is self.wrapped:
            return self
        return replace(self, wrapped=wrapped, state=self._state)

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Give the tools, each with a validator that cannot hand out a call unjudged."""
        tools = await super().get_tools(ctx)
        self._state.tools.update(tools)
        return {name: self._held(name, tool) for name, tool in tools.items()}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        """Judge a call, and run it if it may; raises `GovernError` for another tool's name."""
        if tool.tool_def.name != name:
            raise GovernError(
                f"The tool {tool.tool_def.name!r} was called as {name!r}; a toolset that calls "
                "another tool must call it by its own name."
            )
        known = self._state.tools.get(name)
        if known is not None:
            tool = replace(tool, args_validator_func=known.args_validator_func)
        if was_judged(self, self.guard, name, tool_args, ctx):
            return await super().call_tool(name, tool_args, ctx, tool)
        body = partial(_call, super().call_tool, name, ctx, tool)
        return await judge_call(
            self._binding,
            self._state,
            name,
            tool_args,
            ctx,
            tool,
            body,
            next_gate=self._gate_further_in(tool),
        )

    async def judge_handed_out(
        self,
        name: str,
        values: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        deferral: CallDeferred | ApprovalRequired,
    ) -> str | None:
        """Judge a call that its validator hands out; give the text that stops it."""
        return await judge_deferred(self._binding, self._state, name, values, ctx, deferral)

    def _held(self, name: str, tool: ToolsetTool[AgentDepsT]) -> ToolsetTool[AgentDepsT]:
        validator = tool.args_validator_func
        if self.placed and validator is None:
            return tool
        tool = replace(tool, args_validator_func=_HeldValidator(self, name, validator))
        return tool if self.placed else replace(tool, toolset=self)

    def _gate_further_in(self, tool: ToolsetTool[AgentDepsT]) -> tuple[object, str | None]:
        held = tool.args_validator_func
        if isinstance(held, _HeldValidator) and held.gate.guard is self.guard:
            return held.gate, held.name
        return None, None


async def _call(
    call_tool: Callable[..., Any],
    name: str,
    ctx: RunContext[Any],
    tool: ToolsetTool[Any],
    values: dict[str, Any],
) -> Any:
    return await call_tool(name, values, ctx, tool)


class _HeldValidator:
    """A tool's validator that cannot hand out a call unjudged.

    Whatever renames or combines tools carries it along, so that a gate further out knows that the
    call still comes through this one, and under which name.
    """

    def __init__(
        self, gate: GovernedToolset[Any], name: str, validator: Callable[..., Any] | None
    ) -> None:
        self.gate, self.name, self._validator = gate, name, validator

    async def __call__(self, ctx: RunContext[Any], /, **values: Any) -> None:
        """Validate as the tool does; what it hands out of the run is judged first."""
        validator = self._validator
        if isinstance(validator, _HeldValidator) and validator.gate.guard is self.gate.guard:
            validator = validator._validator
        if validator is None:
            return
        try:
            answer = validator(ctx, **values)
            if inspect.isawaitable(answer):
                await answer
        except (CallDeferred, ApprovalRequired) as deferral:
            text = await self.gate.judge_handed_out(self.name, values, ctx, deferral)
            if text is not None:
                raise StoppedCall(text) from None
            raise
