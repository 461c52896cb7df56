"""The capabilities on which a governed agent stands, closest to the tools of each run.

Its toolset judges the calls that are about to run. Its hooks see what never comes that far: calls
whose arguments are refused or invalid, calls that are handed out of the run, output functions, and
tools at the provider.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from copy import copy
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    SkipToolValidation,
    ToolFailed,
)
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import (
    AgentDepsT,
    DeferredToolRequests,
    DeferredToolResults,
    ToolDefinition,
)
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from adjudge import GovernError, ToolGuard
from adjudge.integration import warn_unless_durable
from adjudge_pydantic_ai._binding import Binding, ContextSource, Hosted, RunState, call_key
from adjudge_pydantic_ai._calls import judge_deferred, record_invalid, refusal_of
from adjudge_pydantic_ai._native import allowed_native_tools
from adjudge_pydantic_ai._outputs import judge_output, judge_rewritten_output
from adjudge_pydantic_ai._toolset import GovernedToolset, StoppedCall

__all__ = ["AdjudgeCapability", "Gate", "HandedOutGate", "RunGate"]

# The one setting of a provider that brings tools along; the rest of them is the README's.
_OPENAI_TOOLS = "openai_native_tools"

# They only make other tools known to the model, and the framework keeps their names to itself.
_OF_THE_FRAMEWORK = frozenset({"search_tools", "load_capability"})


class Gate(AbstractCapability[AgentDepsT]):
    """What a run and a realtime session have in common: their tools."""

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.state = RunState()
        self.placed: list[Gate[AgentDepsT]] = []
        """Its copies that a run has put in their place."""

    @property
    def guard(self) -> ToolGuard:
        """The guard that judges."""
        return self.binding.guard

    # Two of them are not one because their settings are equal, as data classes would be.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def get_ordering(self) -> CapabilityOrdering:
        """Stand closest to the tools."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractCapability[AgentDepsT]:
        """Start a run with nothing known of its calls."""
        fresh = copy(self)
        fresh.state = RunState.begin(self.guard)
        return fresh

    def get_wrapper_toolset(
        self, toolset: AbstractToolset[AgentDepsT]
    ) -> AbstractToolset[AgentDepsT] | None:
        """Stand before the tools; raises `GovernError` where something stands in between."""
        self.placed.append(self)
        inner: AbstractToolset[AgentDepsT] = toolset
        while isinstance(inner, WrapperToolset):
            if isinstance(inner, GovernedToolset):
                if inner.guard is not self.guard:
                    raise GovernError("The run is under two guards; it can have only one.")
                if inner.context != self.binding.context:
                    raise GovernError("The run is governed twice, with two functions for context.")
                self.state.idle = inner.placed
                if inner.placed:
                    return None
                break
            if type(inner).__module__.partition(".")[0] != "pydantic_ai":
                raise GovernError(
                    f"A {type(inner).__name__} of another capability would stand between the guard "
                    "and the tools, where it could change what was judged; list AdjudgeCapability "
                    "after that capability, or let it stand further out (get_ordering)."
                )
            inner = inner.wrapped
        return GovernedToolset(
            toolset, self.guard, context=self.binding.context, state=self.state, placed=True
        )

    # Calls that do not come as far as the toolset

    async def before_tool_validate(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: str | dict[str, Any],
    ) -> str | dict[str, Any]:
        """Keep what the model sent, as the validation will read it."""
        key = call_key(ctx, call.tool_name, call.tool_call_id)
        self.state.sent[key] = args
        self.state.judged.discard(key)
        return args

    async def wrap_tool_validate(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: str | dict[str, Any],
        handler: Callable[[str | dict[str, Any]], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        """Put rejected arguments on record, and see to it that refused ones are denied."""
        try:
            return await handler(args)
        except StoppedCall:
            raise
        except (ValidationError, ModelRetry, ToolFailed) as error:
            if self.state.idle:
                raise
            key = call_key(ctx, call.tool_name, call.tool_call_id)
            if refusal_of(self.state.sent.get(key, args)) is None:
                await record_invalid(self.binding, self.state, call.tool_name, ctx, error)
            if tool_def.defer and not ctx.tool_call_approved:
                await self._judge_deferred(ctx, call, tool_def, {})
            # The toolset reads the text itself, and denies.
            raise SkipToolValidation({}) from error

    async def after_tool_validate(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
    ) -> dict[str, Any]:
        """Judge calls that are handed out of the run before they ever get to the toolset."""
        if tool_def.defer and not ctx.tool_call_approved and not self.state.idle:
            await self._judge_deferred(ctx, call, tool_def, args)
        return args

    async def before_tool_execute(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
    ) -> dict[str, Any]:
        """Raise `GovernError` for a tool that stands further out, and never comes to the guard."""
        known = self.state.tools.keys() | _OF_THE_FRAMEWORK
        if not self.state.idle and call.tool_name not in known:
            raise GovernError(
                f"The tool {call.tool_name!r} was added by a capability that wraps the toolset of "
                "the run, past the guard; give it to the agent, or to a capability by get_toolset."
            )
        return args

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[AgentDepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Judge calls that another capability would have executed elsewhere, before they leave."""
        for call in requests.approvals:
            key = call_key(ctx, call.tool_name, call.tool_call_id)
            mark = self.state.waiting.get(key)
            if mark is not None:
                # The oldest releases drop the metadata of what waits from the validation on.
                requests.metadata[call.tool_call_id] = mark | requests.metadata.get(
                    call.tool_call_id, {}
                )
        stopped: dict[str, Any] = {}
        for call in requests.calls if not self.state.idle else ():
            if call_key(ctx, call.tool_name, call.tool_call_id) not in self.state.judged:
                about = replace(ctx, tool_name=call.tool_name, tool_call_id=call.tool_call_id)
                text = await judge_deferred(
                    self.binding, self.state, call.tool_name, None, about, CallDeferred()
                )
                if text is not None:
                    stopped[call.tool_call_id] = ToolFailed(text)
        return DeferredToolResults(calls=stopped) if stopped else None

    async def _judge_deferred(
        self,
        ctx: RunContext[AgentDepsT],
        call: ToolCallPart,
        tool_def: ToolDefinition,
        values: dict[str, Any],
    ) -> None:
        deferral = CallDeferred() if tool_def.kind == "external" else ApprovalRequired()
        text = await judge_deferred(self.binding, self.state, call.tool_name, values, ctx, deferral)
        if text is not None:
            raise StoppedCall(text)


class HandedOutGate(AbstractCapability[AgentDepsT]):
    """Stands before all handlers of calls that are handed out, so that the guard sees them first.

    `gate` is what the same run has closest to its tools.
    """

    def __init__(self, gate: Gate[AgentDepsT]) -> None:
        self._gate = gate

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def get_ordering(self) -> CapabilityOrdering:
        """Stand before every other capability."""
        return CapabilityOrdering(position="outermost", wraps=[AbstractCapability])

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[AgentDepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Judge calls before anybody may execute them elsewhere."""
        (gate,) = self._gate.placed
        return await gate.handle_deferred_tool_calls(ctx, requests=requests)


class RunGate(Gate[AgentDepsT]):
    """What a run has beside its tools: requests to the model, and output functions."""

    async def wrap_output_process(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        output_context: OutputContext,
        output: Any,
        handler: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        """Judge the call of an output function."""
        if self.state.idle:
            return await handler(output)
        return await judge_output(self, self.binding, ctx, output_context, output, handler)

    async def before_output_process(
        self, ctx: RunContext[AgentDepsT], *, output_context: OutputContext, output: Any
    ) -> Any:
        """Judge what another capability has made of the output since, where a release lets it."""
        await judge_rewritten_output(self, self.binding, ctx, output_context, output)
        return output

    async def wrap_model_request(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        request_context: ModelRequestContext,
        handler: Callable[[ModelRequestContext], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        """Keep tools at the provider out of the request."""
        return await handler(self._without_native_tools(request_context))

    async def prepare_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Do so again where a release asks once more, after every other capability."""
        return self._without_native_tools(request_context)

    def _without_native_tools(self, request: ModelRequestContext) -> ModelRequestContext:
        parameters = request.model_request_parameters
        allowed = allowed_native_tools(parameters.native_tools, self.binding)
        if len(allowed) != len(parameters.native_tools):
            # Not a copy of the request: some releases forget what they set on it themselves.
            request.model_request_parameters = replace(parameters, native_tools=allowed)
        settings: Any = request.model_settings or {}
        if settings.get(_OPENAI_TOOLS):
            allowed = allowed_native_tools(settings[_OPENAI_TOOLS], self.binding)
            settings = {**settings, _OPENAI_TOOLS: allowed}
            request.model_settings = settings
        return request


class AdjudgeCapability(RunGate[AgentDepsT]):
    """Governs the agent or the run that it is given to; list it last.

    `hosted` says what becomes of tools that run at the provider; `ungoverned` names those of them,
    and the output functions, that may run unjudged. `context` gets the run context of each call
    and answers who is calling; None or an exception denies. A realtime session needs `govern`.
    """

    def __init__(
        self,
        guard: ToolGuard,
        *,
        hosted: Hosted = "refuse",
        ungoverned: Collection[str] = (),
        context: ContextSource | None = None,
    ) -> None:
        super().__init__(Binding.of(guard, hosted, ungoverned, context))
        if guard.pauses:
            warn_unless_durable(guard.ledger)

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractCapability[AgentDepsT]:
        """Start a run; raises `GovernError` for a realtime session."""
        if not isinstance(ctx.model, Model):
            raise GovernError(
                "A realtime session does not show its capabilities the tools that run at the "
                "provider; put the agent under its guard with govern(agent, guard) instead."
            )
        fresh = copy(await super().for_run(ctx))
        assert isinstance(fresh, Gate)
        fresh.placed = []
        return fresh
