"""A run that waits for people: what it waits for, and its going on with their answers.

PydanticAI's own pause carries the run (`DeferredToolRequests`, the message history). The answers
are kept in the guard's ledger, and the gate before the body takes them, each once: so whatever the
answer, the framework is told to go on, and a refusal is said at the gate in the same words as
everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from pydantic import TypeAdapter
from pydantic_ai import Agent, AgentRunResult, RunContext
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved

from adjudge import AnswerError, ApprovalDecision, GovernError, PendingApproval, ToolGuard
from adjudge.integration import GovernedRun, LedgerEntry, ledger_key
from adjudge_pydantic_ai._binding import BODY
from adjudge_pydantic_ai._govern import binding_of
from adjudge_pydantic_ai._waiting import (
    approval_required,
    mark_of,
    reopened,
    reopened_call,
)

__all__ = ["delegate", "pending", "reopen", "resume"]

Answers: TypeAlias = Mapping[str, ApprovalDecision]
Paused: TypeAlias = "AgentRunResult[Any] | DeferredToolRequests"

_REQUESTS: TypeAdapter[DeferredToolRequests] = TypeAdapter(DeferredToolRequests)


def pending(agent: AbstractAgent[Any, Any], paused: Paused) -> list[PendingApproval]:
    """Give the calls for which a run waits because the policy has a person asked about them.

    `paused` is the result of a run whose output is a `DeferredToolRequests`, or that output. They
    come in the order of its requests.
    `decision.effective_args` are the arguments that would run. What the framework itself waits for
    (`requires_approval`, external tools) is in the requests alone. Raises `LedgerError` where the
    ledger cannot be read.
    """
    guard = _guard_of(agent)
    requests = _requests(paused)
    waiting = [each for run in _runs(requests) for each in guard.waiting_sync(run)]
    order = {each: place for place, each in enumerate(_waiting_ids(requests))}
    return sorted(waiting, key=lambda each: order.get(each.id, len(order)))


async def resume(
    agent: AbstractAgent[Any, Any],
    paused: Paused,
    answers: Answers,
    *,
    message_history: Sequence[ModelMessage] | None = None,
    results: DeferredToolResults | None = None,
    **options: Any,
) -> AgentRunResult[Any]:
    """Go on with a paused run, in any process that sees the guard's ledger.

    `agent` is the governed agent, built anew. Where `paused` is the output alone, give the
    `message_history` too. `answers` maps the ids of what was pending to decisions; a call without
    one is as the ledger has it: it waits, unless it was answered before. `results` answers what the
    framework itself waits for. `options` are those of `agent.run`. Raises `AnswerError` for what is
    no answer to a call of this run, and then nothing runs.
    """
    if message_history is None:
        if not isinstance(paused, AgentRunResult):
            raise AnswerError("The requests come without their run; give its message_history.")
        message_history = paused.all_messages()
    given = await reopen(agent, paused, answers, results=results)
    return await agent.run(message_history=message_history, deferred_tool_results=given, **options)


async def reopen(
    agent: AbstractAgent[Any, Any],
    paused: Paused,
    answers: Answers,
    *,
    results: DeferredToolResults | None = None,
) -> DeferredToolResults:
    """Keep people's answers, and give the results with which any `run` method goes on.

    What they hold is good in this process alone, once. Raises as `resume` does.
    """
    requests = _requests(paused)
    runs = _runs(requests)
    named = None if answers else next(iter(runs), None)
    run = await _guard_of(agent).reopen(answers, run=named)
    if run.id not in runs:
        raise AnswerError(
            "The answers are about another run than the paused one; resume each run with the "
            "answers to its own calls."
        )
    if not run.entries:
        raise AnswerError(
            "No call of this run is in the guard's ledger; give the ledger in which it paused."
        )
    return _going_on(requests, run, results, _Around())


async def delegate(
    ctx: RunContext[Any], agent: AbstractAgent[Any, Any], prompt: str, **options: Any
) -> Any:
    """Run another agent from inside a tool, so that the whole run waits where that one does.

    Gives the agent's output. Both agents are governed by the same guard, and each has a name and
    `DeferredToolRequests` in its output types. `options` are those of `agent.run`. Raises
    `GovernError` where the nested agent waits and there is no way back to it: for what the
    framework itself waits for, or after another `delegate` in the same body.
    """
    call, body = reopened_call(ctx), BODY.get()
    if body is not None:
        body.delegated += 1
    first = body is not None and body.delegated == 1
    nested = call.saved.get("nested") if call is not None and first else None
    options.setdefault("usage", ctx.usage)
    if call is None or body is None or nested is None:
        result = await agent.run(prompt, **options)
    else:
        result = await agent.run(
            message_history=ModelMessagesTypeAdapter.validate_json(nested["history"]),
            deferred_tool_results=_going_on(
                _REQUESTS.validate_json(nested["requests"]),
                call.run,
                None,
                _Around(nested["agent"], body.path),
            ),
            **options,
        )
    if not isinstance(result.output, DeferredToolRequests):
        return result.output
    if body is None or body.run is None:
        raise GovernError(
            "A nested agent waits for a person, and the tool that runs it is not governed by a "
            "guard that pauses; govern the agent that has the tool, too."
        )
    _check_way_back(result.output, first=first)
    saved = {
        "agent": agent.name,
        "history": result.all_messages_json().decode(),
        "requests": _REQUESTS.dump_json(result.output).decode(),
    }
    raise approval_required(body.run.id, None, nested=saved)


class _Around(NamedTuple):
    """Where calls stand: the name of the nested agent that made them, the call ids around them."""

    agent: str | None = None
    path: str = ""


def _check_way_back(requests: DeferredToolRequests, *, first: bool) -> None:
    foreign = [call for call in requests.approvals if mark_of(_metadata(requests, call)) is None]
    if foreign or requests.calls:
        raise GovernError(
            f"The nested agent's call of {[*foreign, *requests.calls][0].tool_name!r} waits for "
            "the framework's own approval, or for a result from elsewhere, which nobody outside "
            "can give; let the outer agent have that tool."
        )
    if not first:
        raise GovernError(
            "A nested agent waits for a person, and it is not the first that this body delegates "
            "to; what ran before would run again. Delegate once in each tool."
        )


def _going_on(
    requests: DeferredToolRequests,
    run: GovernedRun,
    results: DeferredToolResults | None,
    around: _Around,
) -> DeferredToolResults:
    """Tell the framework to go on with all that waits for the policy: the gate decides."""
    given = results or DeferredToolResults()
    ours = {
        call.tool_call_id: _metadata(requests, call)
        for call in requests.approvals
        if _is_ours(_metadata(requests, call), call, run, around)
    }
    settled = ours.keys() & (given.approvals.keys() | given.calls.keys())
    if settled:
        raise AnswerError(
            f"The call {min(settled)!r} waits for its policy; answer it in `answers`, by the id "
            "that `pending` gives."
        )
    return DeferredToolResults(
        calls=dict(given.calls),
        approvals={**given.approvals, **dict.fromkeys(ours, ToolApproved())},
        metadata={
            # All of one run: what the framework approves goes on beside what was answered.
            **{call: reopened(run, given.metadata.get(call, {})) for call in given.approvals},
            **{call: reopened(run, metadata) for call, metadata in ours.items()},
        },
    )


def _is_ours(
    metadata: Mapping[str, Any], call: ToolCallPart, run: GovernedRun, around: _Around
) -> bool:
    """Whether a call waits because of its policy: the ledger has it, or calls inside of its body.

    What is saved with the call does not say so by itself, for a client may have written it.
    """
    mark = mark_of(metadata)
    if mark is None or mark["run"] != run.id:
        return False
    nested = _nested(mark)
    if nested is None:
        return any(
            (entry.id, entry.call_id) == (mark.get("pending"), call.tool_call_id)
            and (not around.path or entry.occurrence == _occurrence(entry, run, around))
            for entry in run.entries
        )
    inside = _Around(mark["nested"].get("agent"), f"{around.path}/{call.tool_call_id}")
    return any(_is_ours(_metadata(nested, each), each, run, inside) for each in nested.approvals)


def _occurrence(entry: LedgerEntry, run: GovernedRun, around: _Around) -> str:
    """Name the call of the entry as it would be named there: no other has that name."""
    key = ledger_key(
        run=run.id,
        tool=entry.tool,
        args=entry.args,
        namespace=entry.namespace,
        call_id=entry.call_id,
        agent=around.agent,
        task=around.path,
    )
    return f"{key}/{entry.attempt}"


def _waiting_ids(requests: DeferredToolRequests) -> Iterator[str]:
    """Give the ids of what waits in the order of the requests, nested ones in their place."""
    for call in requests.approvals:
        mark = mark_of(_metadata(requests, call)) or {}
        nested = _nested(mark)
        if nested is not None:
            yield from _waiting_ids(nested)
        elif isinstance(mark.get("pending"), str):
            yield mark["pending"]


def _nested(mark: Mapping[str, Any]) -> DeferredToolRequests | None:
    """Read what the nested agent waits for, None where there is none."""
    saved = mark.get("nested")
    try:
        return None if saved is None else _REQUESTS.validate_json(saved["requests"])
    except (ValueError, TypeError, KeyError):
        raise AnswerError("What was saved of a nested agent cannot be read.") from None


def _metadata(requests: DeferredToolRequests, call: ToolCallPart) -> Mapping[str, Any]:
    return requests.metadata.get(call.tool_call_id) or {}


def _requests(paused: object) -> DeferredToolRequests:
    output = paused.output if isinstance(paused, AgentRunResult) else paused
    if not isinstance(output, DeferredToolRequests):
        raise AnswerError(
            f"The run gave a {type(output).__name__} and waits for nobody; a paused one gives "
            "DeferredToolRequests."
        )
    return output


def _runs(requests: DeferredToolRequests) -> list[str]:
    """Name the governed runs that the requests are part of: one, unless they were mixed."""
    marks = [mark_of(metadata) for metadata in requests.metadata.values()]
    return list(dict.fromkeys(mark["run"] for mark in marks if mark is not None))


def _guard_of(agent: AbstractAgent[Any, Any]) -> ToolGuard:
    while isinstance(agent, WrapperAgent):
        agent = agent.wrapped
    binding = binding_of(agent) if isinstance(agent, Agent) else None
    if binding is None:
        raise GovernError("The agent is not governed; give the one that paused, built anew.")
    return binding.guard
