"""Output functions: bodies that run on what the model gives as its answer.

PydanticAI runs them past the toolsets, so they are judged where outputs are processed. A denial has
no value that would fit the type of the output: the model is asked for another answer instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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

__all__ = ["judge_output"]


async def judge_output(
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
    call = about.tool_call
    reading = _OutputArguments(output)

    async def execute(_: object) -> Any:
        if reading.changed():
            raise ModelRetry("The output changed after it was judged.")
        return await handler(output)

    judged = await binding.guard.govern_call(
        ProposedCall(
            name or "output",
            (call.args or "{}") if call is not None else {},
            call_id=None if call is None else call.tool_call_id,
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


class _OutputArguments:
    """The value that an output function gets, as named arguments."""

    def __init__(self, output: Any) -> None:
        self._output = output
        self._judged: FrozenDict | None = None

    def validate(self, _: FrozenDict) -> Admitted:
        """Project the value; one that was rewritten has no way to the function."""
        if self._judged is not None:
            raise InvalidArguments("the value of an output function cannot be rewritten")
        self._judged = self._projected()
        return Admitted(self._judged)

    def changed(self) -> bool:
        """Whether the value is no longer the one that was judged."""
        try:
            return canonical_json(self._projected()) != canonical_json(self._judged)
        except ArgumentsRefused:
            return True

    def _projected(self) -> FrozenDict:
        value = project(self._output)
        return value if isinstance(value, FrozenDict) else FrozenDict({"output": value})
