"""A run that waits for people: what it waits for, and its going on with their answers.

The SDK's own pause and state carry the run. The answers are kept in the guard's ledger, and it is
the body's door that takes them, each once: so whatever the answer, the SDK is told to go on, and a
refusal is said at the door in the same words as everywhere. A state that was resumed before, was
tampered with, or was approved past Adjudge grants nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from agents import Agent, RunContextWrapper, Runner, RunResult, RunResultStreaming, RunState

from adjudge import AnswerError, ApprovalDecision, GovernError, PendingApproval, ToolGuard
from adjudge.integration import EntryState, GovernedRun
from adjudge_openai_agents._agents import binding_of, govern_again
from adjudge_openai_agents._runs import Frame, entered, known_frames, remember
from adjudge_openai_agents._waiting import HELD_BACK, Item, held_back, is_held_back, paired

if TYPE_CHECKING:
    from agents.realtime import RealtimeAgent, RealtimeSession, RealtimeToolApprovalRequired

__all__ = [
    "Answers",
    "Saved",
    "apending",
    "pending",
    "resume",
    "resume_realtime",
    "resume_streamed",
    "run_of",
]

_WAITING = frozenset({EntryState.PAUSED, EntryState.ANSWERED})

Answers: TypeAlias = Mapping[str, ApprovalDecision | None]
Saved: TypeAlias = "RunState[Any, Any] | Mapping[str, Any] | str | bytes"


def pending(
    result: RunResult | RunResultStreaming | RealtimeToolApprovalRequired,
) -> list[PendingApproval]:
    """Give the calls for which a run waits because the policy has a person asked about them.

    `result` is what `Runner` gave, or the event by which a realtime session says that a call waits.
    `decision.effective_args` are the arguments that would run. A call that the SDK holds back only
    because it could not read the arguments is there with the verdict deny: no answer makes it run.
    What a tool's own `needs_approval` asks is the SDK's affair, and not here. Raises `LedgerError`
    where the ledger cannot be read. In a running loop, await `apending` where the ledger is async.
    """
    context, items = _waiting_in(result)
    asked: list[PendingApproval] = []
    for guard, run in _runs_of(context):
        _refuse_to_block(guard)
        asked += guard.waiting_sync(run.id)
    return _shown(items, context, asked)


async def apending(
    result: RunResult | RunResultStreaming | RealtimeToolApprovalRequired,
) -> list[PendingApproval]:
    """Do what `pending` does, without blocking the running loop."""
    context, items = _waiting_in(result)
    asked: list[PendingApproval] = []
    for guard, run in _runs_of(context):
        asked += await guard.waiting(run.id)
    return _shown(items, context, asked)


def run_of(result: RunResult | RunResultStreaming) -> str | None:
    """Give the id of a paused run, which `resume` takes where there are no answers to give.

    It may be kept beside the saved state: what was answered elsewhere, and what waits for the SDK's
    own approvals, goes on with it. None where the guard does not pause, or nothing was governed.
    """
    return next((run.id for _, run in _runs_of(result.context_wrapper)), None)


async def resume(
    agent: Agent[Any], saved: Saved, answers: Answers, *, run: str | None = None, **options: Any
) -> RunResult:
    """Go on with a paused run, in any process that sees the guard's ledger.

    `agent` is the governed agent that the run began with, built anew; `saved` is the run's state,
    or `to_json()` or `to_string()` of it. `answers` maps the ids of what was pending to decisions,
    None for one that the ledger has already; calls without one go on waiting where the SDK lets
    them. `run` is what `run_of` gave: with it there need be no answers. `options` are
    `Runner.run`'s, such as `context` and `run_config`. Raises `AnswerError` for what is no answer
    to a call of this run, and then none is kept and nothing runs; `GovernError` for an agent that
    is not governed.
    """
    state, frame = await _reopened(agent, saved, answers, run, options)
    with entered(frame):
        result = await Runner.run(agent, state, **options)
    remember(result.context_wrapper, frame)
    return result


async def resume_streamed(
    agent: Agent[Any], saved: Saved, answers: Answers, *, run: str | None = None, **options: Any
) -> RunResultStreaming:
    """Do what `resume` does, and give the events while the run goes on."""
    state, frame = await _reopened(agent, saved, answers, run, options)
    with entered(frame):  # the SDK starts its task here, which keeps the place
        result = Runner.run_streamed(agent, state, **options)
    remember(result.context_wrapper, frame)
    return result


async def resume_realtime(
    agent: RealtimeAgent[Any], session: RealtimeSession, answers: Answers
) -> None:
    """Let calls of a realtime session go on that were pending; the session lives in this process.

    Raises as `resume` does.
    """
    run = await _guard_of(agent).reopen(answers)
    for entry in run.entries:
        if entry.id in answers and entry.id not in run.unanswered and entry.call_id is not None:
            await session.approve_tool_call(entry.call_id)


async def _reopened(
    agent: Agent[Any],
    saved: Saved,
    answers: Answers,
    run: str | None,
    options: Mapping[str, Any],
) -> tuple[RunState[Any, Any], Frame]:
    """Keep the answers, and tell the SDK to go on with what they are about."""
    guard = _guard_of(agent)
    govern_again(agent)  # the SDK reads the handoffs of a run that goes on before it asks for tools
    state = await _state(agent, saved, options)
    items: list[Item] = list(state.get_interruptions())
    bindings = [binding_of(item.agent) for item in items]
    if any(binding is not None and binding.guard is not guard for binding in bindings):
        raise GovernError(
            "The state belongs to other agents than this one; give it with the agent that it was "
            "made from, or give to_json() of it."
        )
    held = [item for item in items if is_held_back(item)]
    opened = await _opened(guard, items, answers, run, may_be_new=bool(held))
    for item, entry in paired(items, opened.entries):
        if entry is not None and entry.id not in opened.unanswered:
            state.approve(item)
    for item in held:
        state.approve(item)
    return state, Frame(guard, opened)


async def _opened(
    guard: ToolGuard, items: list[Item], answers: Answers, run: str | None, *, may_be_new: bool
) -> GovernedRun:
    """Keep the answers, once it is sure that they are about the run whose items these are."""
    if isinstance(answers, Mapping):
        answers = {k: answers[k] for k in answers if not str(k).startswith(HELD_BACK)}
        if not answers and run is None and may_be_new:
            return GovernedRun()
        before = await guard.reopen(dict.fromkeys(answers), run=run)
        met = {entry.id for _, entry in paired(items, before.entries) if entry is not None}
        waiting = {entry.id for entry in before.entries if entry.state in _WAITING}
        if waiting & answers.keys() and not met & answers.keys():
            raise AnswerError(
                f"The saved state has no call that waits for {', '.join(map(repr, answers))}; "
                "give the answers together with the state of their own run."
            )
    return await guard.reopen(answers, run=run)


async def _state(agent: Agent[Any], saved: Saved, options: Mapping[str, Any]) -> RunState[Any, Any]:
    if isinstance(saved, RunState):
        return saved
    if isinstance(saved, str | bytes):
        try:
            saved = json.loads(saved)
        except ValueError as error:
            raise AnswerError(f"The saved state is no JSON text: {error}.") from None
    if not isinstance(saved, dict) or "$schemaVersion" not in saved:
        raise AnswerError(
            f"The saved state is a {type(saved).__name__} that is none; give the RunState of a "
            "result, or to_json() or to_string() of it."
        )
    return await RunState.from_json(agent, saved, context_override=options.get("context"))


def _runs_of(context: RunContextWrapper[Any]) -> list[tuple[ToolGuard, GovernedRun]]:
    frames = known_frames(context)
    return [(frame.guard, frame.run) for frame in frames if frame.run is not None]


def _shown(
    items: list[Item], context: RunContextWrapper[Any], asked: Iterable[PendingApproval]
) -> list[PendingApproval]:
    waiting = {each.id: each for each in asked}
    entries = [e for _, run in _runs_of(context) for e in run.entries if e.id in waiting]
    found = []
    for item, entry in paired(items, entries):
        if entry is not None:
            found.append(waiting[entry.id])
        elif is_held_back(item):
            found.append(held_back(item))
    return found


def _refuse_to_block(guard: ToolGuard) -> None:
    """Raise where waiting for the ledger would stop the loop that it needs."""
    ledger = guard.ledger
    if ledger is None or not inspect.iscoroutinefunction(ledger.of_run):
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise AnswerError("The ledger is async, and a loop is running; write await apending(result).")


def _guard_of(agent: Any) -> ToolGuard:
    binding = binding_of(agent)
    if binding is None:
        raise GovernError(f"The agent {agent.name!r} is not governed; govern it as it was before.")
    return binding.guard


def _waiting_in(result: Any) -> tuple[Any, list[Item]]:
    if isinstance(result, RunResult | RunResultStreaming):
        return result.context_wrapper, list(result.interruptions)
    if not hasattr(result, "info"):
        raise AnswerError(
            f"A {type(result).__name__} waits for nobody; give what Runner gave, or the event of a "
            "realtime session."
        )
    return result.info.context, [result]
