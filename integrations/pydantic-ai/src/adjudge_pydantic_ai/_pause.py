"""A run that waits for people: what it waits for, and its going on with their answers.

PydanticAI's own pause carries the run (`DeferredToolRequests`, the message history). The answers
are kept in the guard's ledger, and the gate before the body takes them, each once: so whatever the
answer, the framework is told to go on, and a refusal is said at the gate in the same words as
everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import TypeAdapter
from pydantic_ai import Agent, AgentRunResult, RunContext
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved

from adjudge import AnswerError, ApprovalDecision, GovernError, PendingApproval, ToolGuard
from adjudge.integration import GovernedRun
from adjudge_pydantic_ai._binding import BODY
from adjudge_pydantic_ai._govern import binding_of
from adjudge_pydantic_ai._waiting import (
    approval_required,
    is_ours,
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

    `paused` is the result of a run whose output is a `DeferredToolRequests`, or that output.
    `decision.effective_args` are the arguments that would run. What the framework itself waits for
    (`requires_approval`, external tools) is in the requests alone. Raises `LedgerError` where the
    ledger cannot be read.
    """
    guard = _guard_of(agent)
    return [each for run in _runs(_requests(paused)) for each in guard.waiting_sync(run)]


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
    `message_history` too. `answers` maps the ids of what was pending to decisions; calls without
    one go on waiting. `results` answers what the framework itself waits for. `options` are those
    of `agent.run`. Raises `AnswerError` for what is no answer to a call of this run, and then
    nothing runs.
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
    run = await _guard_of(agent).reopen(answers)
    if run.id not in _runs(requests):
        raise AnswerError(
            "The answers are about another run than the paused one; resume each run with the "
            "answers to its own calls."
        )
    return _going_on(requests, run, results)


async def delegate(
    ctx: RunContext[Any], agent: AbstractAgent[Any, Any], prompt: str, **options: Any
) -> Any:
    """Run another agent from inside a tool, so that the whole run waits where that one does.

    Gives the agent's output. Both agents are governed by the same guard, and each has a name and
    `DeferredToolRequests` in its output types. `options` are those of `agent.run`.
    """
    call, body = reopened_call(ctx), BODY.get()
    nested = None if call is None else call.saved.get("nested")
    options.setdefault("usage", ctx.usage)
    if call is None or nested is None:
        result = await agent.run(prompt, **options)
    else:
        result = await agent.run(
            message_history=ModelMessagesTypeAdapter.validate_json(nested["history"]),
            deferred_tool_results=_going_on(
                _REQUESTS.validate_json(nested["requests"]), call.run, None
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
    saved = {
        "history": result.all_messages_json().decode(),
        "requests": _REQUESTS.dump_json(result.output).decode(),
    }
    raise approval_required(body.run.id, None, nested=saved)


def _going_on(
    requests: DeferredToolRequests, run: GovernedRun, results: DeferredToolResults | None
) -> DeferredToolResults:
    """Tell the framework to go on with all that waits for the policy: the gate decides."""
    given = results or DeferredToolResults()
    ours = {
        call.tool_call_id: requests.metadata[call.tool_call_id]
        for call in requests.approvals
        if is_ours(requests.metadata.get(call.tool_call_id))
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
            **given.metadata,
            **{call: reopened(run, metadata) for call, metadata in ours.items()},
        },
    )


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
