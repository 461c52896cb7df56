"""A run that waits for people: what it waits for, and its going on with their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crewai import Agent, Crew

from adjudge import AnswerError, ApprovalDecision, GovernError, PendingApproval, ToolGuard
from adjudge.integration import LedgerEntry, canonical_json, freeze
from adjudge_crewai._binding import Binding, ContextSource
from adjudge_crewai._govern import binding_of
from adjudge_crewai._hooks import running
from adjudge_crewai._paused import RunPaused

__all__ = ["aresume", "pending", "reopened", "resume"]

Answers = Mapping[str, ApprovalDecision | None]
State = Mapping[str, Any]


def pending(target: Crew | Agent | ToolGuard, state: State) -> tuple[PendingApproval, ...]:
    """Give the calls of a paused run that still wait for a person.

    `target` is the governed crew or agent, built anew, or the guard; `state` is what `RunPaused`
    gave. Raises `LedgerError` where the ledger cannot be read.
    """
    return _binding(target).guard.waiting_sync(_run_id(state))


def resume(target: Crew | Agent, state: State, answers: Answers, *args: Any, **kwargs: Any) -> Any:
    """Go on with a paused run, in any process that sees the guard's ledger.

    `target` is the governed crew or agent, built anew; it is kicked off with `args` and `kwargs`,
    which must be those of the first time. Its models are asked again from the start; calls that
    finished are not run again, and the model is told what it was told before. `answers` maps the
    ids of what was pending to decisions, or to None for what was answered elsewhere; calls without
    an answer go on waiting. Raises `AnswerError` for what is no answer to a call of this run, and
    then nothing runs.
    """
    with reopened(target, state, answers):
        return target.kickoff(*args, **kwargs)


async def aresume(
    target: Crew | Agent, state: State, answers: Answers, *args: Any, **kwargs: Any
) -> Any:
    """Do what `resume` does, with `akickoff`."""
    with reopened(target, state, answers):
        return await target.akickoff(*args, **kwargs)


@contextmanager
def reopened(
    target: Crew | Agent | ToolGuard,
    state: State,
    answers: Answers,
    *,
    context: ContextSource | None = None,
) -> Iterator[None]:
    """Be in a paused run again, for whatever started it: `kickoff_for_each`, a flow.

    `context` is for a guard as `target`, as it was given to `adjudge_hooks`. Raises as `resume`
    does.
    """
    binding = _binding(target)
    if context is not None:
        binding = Binding.of(binding.guard, context)
    run_id = _run_id(state)
    # Before any answer is kept: whoever gave it may have seen other arguments than would run.
    given: object = answers
    asked = dict.fromkeys(answers) if isinstance(given, Mapping) else {}
    _check_unchanged(state, binding.guard.reopen_sync(asked, run=run_id).entries)
    with running(binding, binding.guard.reopen_sync(answers, run=run_id)):
        yield


def _check_unchanged(state: State, entries: Iterable[LedgerEntry]) -> None:
    """Hold what people were shown against what the ledger keeps."""
    kept = {entry.id: entry for entry in entries}
    for call in state.get("calls", ()):
        named = call.get("id") if isinstance(call, Mapping) else None
        entry = kept.get(str(named))
        if entry is None:
            raise AnswerError(
                f"No call waits under {named!r} in this run and this guard's ledger; give the "
                "state as RunPaused gave it, and the ledger of the guard that paused."
            )
        final = entry.args if entry.final_args is None else entry.final_args
        shown = canonical_json(freeze(call.get("args")))
        if entry.tool != call.get("tool") or shown != canonical_json(final):
            raise AnswerError(
                f"The saved run says of the call {named!r} what is not so; whoever answered may "
                "have seen other arguments than would run."
            )


def _run_id(state: object) -> str:
    found = state.get("run") if isinstance(state, Mapping) else None
    if not isinstance(found, str):
        raise AnswerError("This is no paused run; give the `state` of a RunPaused.")
    return found


def _binding(target: object) -> Binding:
    if isinstance(target, ToolGuard):
        return Binding.of(target)
    if isinstance(target, RunPaused):
        raise GovernError("Give the crew or the agent that paused, built anew.")
    binding = binding_of(target)
    if binding is None:
        raise GovernError("The target is not governed; give the crew that paused, built anew.")
    return binding
