"""Output functions: bodies that run on what the model gives as its answer.

PydanticAI runs them past the toolsets, so they are judged where outputs are processed. A denial has
no value that would fit the type of the output: the model is asked for another answer instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.output import OutputContext

from adjudge import ArgumentsRefused
from adjudge.integration import (
    Admitted,
    FrozenDict,
    GovernedRun,
    InvalidArguments,
    ProposedCall,
    canonical_json,
    project,
)
from adjudge_pydantic_ai._binding import Binding

__all__ = ["judge_output", "judge_rewritten_output"]

# What was judged, and the gate before whose function it still has to come by.
_COMING: ContextVar[tuple[object, _OutputArguments] | None] = ContextVar(
    "adjudge_output", default=None
)


async def judge_output(
    gate: object,
    binding: Binding,
    ctx: RunContext[Any],
    about: OutputContext,
    output: Any,
    handler: Callable[[Any], Awaitable[Any]],
) -> Any:
    """Judge the call of an output function; a denial raises `ModelRetry` with its text.

    The tool's name is the one that the model knows, or else the function's. The fields of a model
    or mapping are the arguments; any other value is the argument `output`.
    """
    name = about.tool_def.name if about.tool_def is not None else about.function_name
    if not about.has_function or {name, about.function_name} & binding.ungoverned:
        return await handler(output)
    if ctx.partial_output and binding.guard.may_ask:
        raise ModelRetry("The output is not complete, and a person may have to be asked about it.")
    # What has come so far of a call is no JSON yet.
    call = None if ctx.partial_output else about.tool_call
    reading = _OutputArguments(output)

    async def execute(_: object) -> Any:
        if reading.differs(output):
            raise ModelRetry("The output changed after it was judged.")
        token = _COMING.set((gate, reading))
        try:
            return await handler(output)
        finally:
            _COMING.reset(token)

    judged = await binding.guard.govern_call(
        ProposedCall(
            name or "output",
            (call.args or "{}") if call is not None else {},
            call_id=None if about.tool_call is None else about.tool_call.tool_call_id,
            validate=reading.validate,
            rejects_invalid_text=False,
            # The framework cannot leave an output waiting.
            run=GovernedRun() if binding.guard.pauses else None,
            may_pause=False,
        ),
        execute,
        context=binding.context_of(ctx),
    )
    if judged.text is not None:
        raise ModelRetry(judged.text)
    assert judged.pending is None, "what may not pause does not"
    return judged.result.value


async def judge_rewritten_output(
    gate: object, binding: Binding, ctx: RunContext[Any], about: OutputContext, output: Any
) -> None:
    """Judge what was made of an output after it was judged, as a call of its own.

    In the newest releases other capabilities rewrite an output inside of what the gate stands
    around. Does nothing for an output that is as it was judged; raises as `judge_output` does.
    """
    coming = _COMING.get()
    if coming is None or coming[0] is not gate:
        return
    _COMING.set(None)

    async def let_by(_: Any) -> None:
        """Let it come to the function, which runs in the call that was judged first."""

    if coming[1].differs(output):
        await judge_output(gate, binding, ctx, about, output, let_by)


class _OutputArguments:
    """The value that an output function gets, as named arguments."""

    def __init__(self, output: Any) -> None:
        self._output = output
        self._judged: FrozenDict | None = None

    def validate(self, _: FrozenDict) -> Admitted:
        """Project the value; one that was rewritten has no way to the function."""
        if self._judged is not None:
            raise InvalidArguments("the value of an output function cannot be rewritten")
        self._judged = _projected(self._output)
        return Admitted(self._judged)

    def differs(self, output: Any) -> bool:
        """Whether a value is not the one that was judged."""
        try:
            return canonical_json(_projected(output)) != canonical_json(self._judged)
        except ArgumentsRefused:
            return True


def _projected(output: Any) -> FrozenDict:
    value = project(output)
    return value if isinstance(value, FrozenDict) else FrozenDict({"output": value})
