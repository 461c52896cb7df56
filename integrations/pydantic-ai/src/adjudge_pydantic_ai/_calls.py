"""One call before the guard: what is proposed, the way to the body, and the answer by value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, SkipToolExecution
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDenied
from pydantic_ai.toolsets import ToolsetTool

from adjudge import ArgumentsRefused, Outcome, PendingApproval, ToolGuard
from adjudge.integration import (
    Effective,
    InvalidArguments,
    ProposedCall,
    canonical_json,
    denied_text,
    freeze_object,
    parse_arguments,
    project_object,
    thaw,
)
from adjudge_pydantic_ai._arguments import CallArguments, validation_text
from adjudge_pydantic_ai._binding import (
    BODY,
    Binding,
    Body,
    RunState,
    call_key,
    namespace_of,
    written_call,
)
from adjudge_pydantic_ai._waiting import answers_another, approval_required, reopened_run

__all__ = ["judge_call", "judge_deferred", "record_invalid", "refusal_of", "was_judged"]

_DEFERRALS = (CallDeferred, ApprovalRequired)


class _Stopped(Exception):
    """Why the body of a call that may run does not: its values are not those that were judged."""


class _Skipped(NamedTuple):
    """The result that a body gives by raising."""

    signal: SkipToolExecution


async def judge_call(
    binding: Binding,
    state: RunState,
    name: str,
    values: dict[str, Any],
    ctx: RunContext[Any],
    tool: ToolsetTool[Any],
    body: Callable[[dict[str, Any]], Awaitable[Any]],
    *,
    next_gate: tuple[object, str | None] = (None, None),
) -> Any:
    """Judge one call that is about to run, run it if it may, and answer as the framework does."""
    guard = binding.guard
    arguments, proposed = _proposal(state, name, values, ctx, tool)
    if tool.tool_def.kind == "unapproved" and answers_another(ctx, name):
        raise ApprovalRequired  # which is the framework's own to obtain

    async def execute(effective: Effective) -> Any:
        try:
            final = await arguments.values_of(effective.args)
        except InvalidArguments as error:
            raise _Stopped(f"the rewritten arguments do not fit the tool: {error}") from None
        if final is None:
            raise _Stopped("the arguments changed after they were judged")
        token = BODY.set(_body(guard, state, final, ctx, next_gate))
        try:
            return await body(final)
        except SkipToolExecution as signal:
            return _Skipped(signal)
        finally:
            BODY.reset(token)

    await _stay_pending(binding, state, proposed, ctx)
    try:
        call = await guard.govern_call(proposed, execute, context=binding.context_of(ctx))
    except _Stopped as stopped:
        return ToolDenied(denied_text(str(stopped)))
    if call.pending is not None:
        raise _pause(state, proposed, ctx, call.pending)
    if call.text is not None:
        return ToolDenied(call.text) if call.outcome is Outcome.DENIED else call.text
    value = call.result.value
    if isinstance(value, _Skipped):
        raise value.signal
    return value


async def judge_deferred(
    binding: Binding,
    state: RunState,
    name: str,
    values: dict[str, Any] | None,
    ctx: RunContext[Any],
    deferral: CallDeferred | ApprovalRequired,
) -> str | None:
    """Judge a call that is handed out of the run before it runs; give the text that stops it.

    Where the policy has a person asked who answers later, that is what the call is handed out for.
    Without `values` the arguments are judged as the model wrote them.
    """
    tool = state.tool_of(ctx, name)
    assert tool is not None, "a call is validated against a tool that the run knows"
    if values is None:
        values = _as_written(_sent(state, ctx))
    returns = isinstance(deferral, ApprovalRequired)
    _, proposed = _proposal(state, name, values, ctx, tool, returns=returns)

    async def execute(_: Effective) -> Any:
        raise deferral

    try:
        call = await binding.guard.govern_call(proposed, execute, context=binding.context_of(ctx))
    except _DEFERRALS as raised:
        if raised is not deferral:
            raise
        return None
    if call.pending is not None:
        raise _pause(state, proposed, ctx, call.pending)
    return call.text


async def record_invalid(
    binding: Binding, state: RunState, name: str, ctx: RunContext[Any], error: Exception
) -> None:
    """Put on record that the framework rejects a call's arguments; raises its own error."""

    def rejected(_: object) -> Any:
        raise InvalidArguments(validation_text(error))

    async def execute(_: Effective) -> Any:
        raise error

    await binding.guard.govern_call(
        ProposedCall(
            name,
            _sent(state, ctx) or "{}",
            namespace=namespace_of(state.tool_of(ctx, name)),
            call_id=ctx.tool_call_id,
            validate=rejected,
        ),
        execute,
        context=binding.context_of(ctx),
    )
    raise error


def refusal_of(sent: object) -> ArgumentsRefused | None:
    """Say why a model's argument text is refused under any policy, None where it is not."""
    if isinstance(sent, str):
        try:
            parse_arguments(sent)
        except ArgumentsRefused as refused:
            return refused
        except ValueError:
            return None
    return None


async def _stay_pending(
    binding: Binding, state: RunState, proposed: ProposedCall, ctx: RunContext[Any]
) -> None:
    """Leave a call waiting about which nobody has answered yet, whatever the framework was told."""
    run = proposed.run
    if run is None or not proposed.may_pause:
        return
    if not any(
        entry.call_id == proposed.call_id and (not state.reopened or entry.id in run.unanswered)
        for entry in run.entries
    ):
        return
    pending = await binding.guard.pause_call(proposed, context=binding.context_of(ctx))
    if pending is not None:
        raise _pause(state, proposed, ctx, pending)


def _pause(
    state: RunState, proposed: ProposedCall, ctx: RunContext[Any], pending: PendingApproval
) -> ApprovalRequired:
    assert proposed.run is not None
    error = approval_required(proposed.run.id, pending.id)
    if proposed.call_id is not None:
        state.waiting[call_key(ctx)] = error.metadata or {}
    return error


def _proposal(
    state: RunState,
    name: str,
    values: dict[str, Any],
    ctx: RunContext[Any],
    tool: ToolsetTool[Any],
    *,
    returns: bool = True,
) -> tuple[CallArguments, ProposedCall]:
    """Make the proposal; `returns` False says that the call never comes back to its body."""
    sent = _sent(state, ctx)
    if ctx.tool_call_id is not None:
        state.judged.add(call_key(ctx))
    reopened = reopened_run(ctx)
    if reopened is not None:
        state.run, state.reopened = reopened, True
    arguments = CallArguments(
        tool, values, ctx, is_text=sent is None or isinstance(sent, str), rewritable=returns
    )
    return arguments, ProposedCall(
        name,
        sent if sent is not None else _projected(values),
        namespace=namespace_of(tool),
        call_id=ctx.tool_call_id,
        validate=arguments.validate,
        control_flow=_DEFERRALS,
        # Nothing validates between here and the body.
        rejects_invalid_text=False,
        run=state.run,
        # At the top the name may be one that the framework guessed from a variable.
        agent=ctx.agent.name if state.parent and ctx.agent is not None else None,
        parent=state.parent,
        # A realtime session has nothing that would outlive it, and what a body dispatches nothing
        # by which it would be known again.
        may_pause=returns and isinstance(ctx.model, Model) and not _is_dispatched(ctx),
    )


def _is_dispatched(ctx: RunContext[Any]) -> bool:
    """Whether the body of another call of this run makes the call, under an id of its own."""
    body = BODY.get()
    return body is not None and body.run_id == ctx.run_id and written_call(ctx) is None


def _sent(state: RunState, ctx: RunContext[Any]) -> Any:
    sent = state.sent_arguments(ctx)
    return "{}" if sent == "" else sent


def _as_written(sent: Any) -> dict[str, Any]:
    try:
        read = parse_arguments(sent) if isinstance(sent, str) else freeze_object(sent or {})
    except ValueError:
        return {}  # the guard reads it again, and refuses it on the record
    written: dict[str, Any] = thaw(read)
    return written


def _projected(values: dict[str, Any]) -> Any:
    try:
        return project_object(values)
    except ArgumentsRefused:
        return values  # the guard refuses them, and says so on the record


def was_judged(
    gate: object, guard: ToolGuard, name: str, values: dict[str, Any], ctx: RunContext[Any]
) -> bool:
    """Whether a gate further out has judged this very call, with these very values, on its way in.

    Once: what the body itself calls afterwards, with the context that it has, is judged.
    """
    body = BODY.get()
    if body is None or body.guard is not guard or body.next_gate is not gate:
        return False
    body.next_gate = None
    if body.next_name != name:  # somebody in between calls another tool
        return False
    try:
        same = body.values == canonical_json(project_object(values))
    except ArgumentsRefused:
        return False
    return same and (body.run_id, body.call_id) == (ctx.run_id, ctx.tool_call_id)


def _body(
    guard: ToolGuard,
    state: RunState,
    values: dict[str, Any],
    ctx: RunContext[Any],
    next_gate: tuple[object, str | None],
) -> Body:
    return Body(
        guard,
        state.run,
        state.reopened,
        f"{state.parent}/{ctx.tool_call_id}",
        ctx.run_id,
        ctx.tool_call_id,
        canonical_json(project_object(values)),
        *next_gate,
    )
