"""A run seen through its journal: what was proposed, decided and done, without doing any of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge import StepRecord
from adjudge_runtime._past import Kept, PastStep, read_past
from adjudge_runtime._values import FinalAnswer, ToolCall

__all__ = ["RunView", "StepView", "replay"]


@dataclass(frozen=True, slots=True)
class StepView:
    """One call of a run, or its answer (then `tool` is None).

    `step` numbers the model calls from 0; calls that were proposed together have the same one.
    `ok`, `verdict` and `message` are None while nothing came of the call: it is `uncertain` where
    its body began and nobody knows how it ended, and `pending` where it waits for a person. One
    that was uncertain and has been settled since is a `resolved_uncertain`.
    """

    step: int
    tool: str | None
    args: Mapping[str, Any] | str | None
    verdict: str | None
    ok: bool | None
    message: str | None
    uncertain: bool = False
    resolved_uncertain: bool = False
    call_id: str = ""
    pending: bool = False


@dataclass(frozen=True, slots=True)
class RunView:
    """What a journal says of a run; `final_answer` is None while it is not finished."""

    run_id: str
    records: int
    attempts: int
    steps: tuple[StepView, ...]
    final_answer: str | None


def replay(records: Sequence[StepRecord]) -> RunView:
    """Give what the records of one run, in their order, say has happened.

    A pure function: nothing is run and nothing is asked. Raises `JournalError` for records that no
    run of ours wrote.
    """
    past = read_past(records)
    steps = tuple(view for number, step in enumerate(past.steps) for view in _views(number, step))
    return RunView(past.run_id, past.records, past.attempts, steps, past.final_answer)


def _views(number: int, step: PastStep) -> list[StepView]:
    action = step.action
    if isinstance(action, FinalAnswer):
        return [StepView(number, None, None, None, True, action.text)]
    calls = (action,) if isinstance(action, ToolCall) else action.calls
    return [_view(number, index, call, step) for index, call in enumerate(calls)]


def _view(number: int, index: int, call: ToolCall, step: PastStep) -> StepView:
    kept: Kept | None = step.results.get(index)
    if kept is None:
        uncertain = step.is_uncertain(index)
        return StepView(
            number,
            call.tool,
            call.args,
            None,
            None,
            None,
            uncertain,
            call_id=call.call_id,
            pending=index in step.pending and not uncertain,
        )
    return StepView(
        number,
        call.tool,
        call.args,
        kept.verdict,
        kept.ok,
        kept.message,
        resolved_uncertain=kept.uncertain_retry,
        call_id=call.call_id,
    )
