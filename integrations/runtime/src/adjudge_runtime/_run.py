"""`run_agent`: what is asked for is checked, a guard is put at the door, and the loop runs.

One function and no state: what a run is lies in its arguments, and in the store where there is one.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from adjudge import (
    ApprovalDecision,
    ApprovalHandler,
    CallContext,
    Cancelled,
    Executor,
    LayeredPolicyBundle,
    LedgerError,
    PolicyBundle,
    Principal,
    Redactor,
    RunStore,
    Sink,
    ToolGuard,
    ToolSet,
    default_redactor,
)
from adjudge.integration import GovernedRun, warn_unless_durable
from adjudge_runtime._attempt import Attempt
from adjudge_runtime._compressors import Compressor
from adjudge_runtime._desk import Desk
from adjudge_runtime._journal import Journal, NoJournal, open_journal
from adjudge_runtime._scope import SCOPE
from adjudge_runtime._stops import Halt, Stop, said
from adjudge_runtime._values import Agent, Budget, OnToken, RunResult, StreamingAgent

__all__ = ["run_agent"]

Answers = Mapping[str, ApprovalDecision | None]
_ANYBODY = Principal("user", "anonymous")


async def run_agent(
    agent: Agent,
    task: str,
    *,
    tools: ToolSet,
    policy: PolicyBundle | LayeredPolicyBundle | None = None,
    guard: ToolGuard | None = None,
    sinks: Iterable[Sink] = (),
    on_approval: ApprovalHandler | Any | None = None,
    budget: Budget = Budget(),  # noqa: B008  (a frozen value)
    principal: Principal = _ANYBODY,
    environment: str | None = None,
    workspace: str = ".",
    correlation_id: str | None = None,
    store: RunStore | None = None,
    run_id: str | None = None,
    executor: Executor | None = None,
    compressor: Compressor | None = None,
    cancel: Cancelled | None = None,
    obligations: Mapping[str, Any] | None = None,
    answers: Answers | None = None,
    redact: Redactor | None = None,
    shadows: Mapping[str, Callable[..., Any]] | None = None,
    context: Callable[[], CallContext | Awaitable[CallContext]] | None = None,
    on_token: OnToken | None = None,
) -> RunResult:
    """Run an agent on a task, each of its tool calls governed, until it answers or has to stop.

    Give `policy`, with all that a `ToolGuard` of it takes, or a `guard` that has that already. A
    guard of the caller's keeps its own kill switch for bodies, and `cancel` is then read before
    each call; `executor` runs the bodies of `tools`, and a guard's own those of its own tools.

    With `store` and `run_id` the run outlives its process: called again it goes on at the first
    step that is incomplete, without asking the model or running a call again, and a run that is
    finished gives its answer again for ever. `on_approval=pause_approval(ledger)` makes the run
    stop with code `paused`; the same call with `answers`, by the ids of what is pending, goes on.
    `on_token` is told what a `StreamingAgent` writes while it writes.

    How a run ends is a value (`RunResult.code`), whatever fails. Raised are only what is wrong
    with the arguments (`TypeError`, `ValueError`, `GovernError`, and `AnswerError` for answers to
    calls of another run), before anything runs, and what is no `Exception`: cancellations pass.
    """
    _check(agent, task, tools, budget, on_token, store, run_id)
    own = guard is None
    given = {
        "sinks": tuple(sinks),
        "on_approval": on_approval,
        "principal": principal,
        "environment": environment,
        "workspace": workspace,
        "correlation_id": correlation_id,
        "obligations": obligations,
        "redact": redact,
        "shadows": shadows,
    }
    guard = (
        _guard_of(policy, given, cancel, run_id, tools)
        if guard is None
        else _ready(guard, policy, given)
    )
    pauses = guard.pauses
    if pauses:
        _check_pausing(guard, store)
    if answers is not None and not pauses:
        raise ValueError(
            "There are answers, but no run that pauses; give on_approval=pause_approval(ledger)."
        )
    halt = Halt()
    try:
        journal: Journal | NoJournal = NoJournal()
        if store is not None and run_id is not None:
            journal = await _journal_of(store, run_id, task, halt)
        run = await _governed_run(guard, journal, answers) if pauses else None
    except Stop as stop:
        return RunResult(guard.correlation_id, guard.policy.id, error=stop.error, code=stop.code)
    desk = Desk(
        guard=guard,
        journal=journal,
        halt=halt,
        cancelled=_reader(cancel),
        executor=executor,
        context=context,
        run=run,
        cost=budget.cost,
        records=not own or bool(given["sinks"]),
        checks_cancel=not own and cancel is not None,
    )
    about = {"principal_id": principal.id, "environment": environment} if own else {}
    if run_id is not None:
        about["run_id"] = run_id
    attempt = Attempt(desk, journal, agent, task, tools, budget, compressor, on_token, about)
    # A body that runs an agent of its own is in a call; the bodies of that run are in others.
    outside = SCOPE.set(None)
    try:
        return await attempt.carry_out()
    except BaseException:
        # A body whose intent is not written by now, in a thread of its own, may not begin.
        halt.set(Stop("cancelled", "cancelled: the run was interrupted"))
        raise
    finally:
        SCOPE.reset(outside)
        if own:
            guard.close()


def _check(
    agent: object,
    task: object,
    tools: object,
    budget: object,
    on_token: object,
    store: object,
    run_id: object,
) -> None:
    if not callable(getattr(agent, "step", None)):
        raise TypeError(
            f"agent is a {type(agent).__name__}; give an object with an async method "
            "step(conversation)."
        )
    if on_token is not None and not isinstance(agent, StreamingAgent):
        raise TypeError(
            f"on_token needs an agent that streams, and {type(agent).__name__} has no method "
            "stream(conversation, on_token)."
        )
    if not isinstance(task, str):
        raise TypeError(f"task is a {type(task).__name__}; give a text.")
    if not isinstance(tools, ToolSet):
        raise TypeError(f"tools is a {type(tools).__name__}; give a ToolSet.")
    if not isinstance(budget, Budget):
        raise TypeError(f"budget is a {type(budget).__name__}; give a Budget.")
    if run_id is not None and (not isinstance(run_id, str) or not run_id):
        raise ValueError(f"run_id is {run_id!r}; give a text that is the same in every attempt.")
    if (store is None) is not (run_id is None):
        raise ValueError(
            "A run that can go on needs both store and run_id, an id that is the same in every "
            f"attempt; here there is no {'store' if store is None else 'run_id'}."
        )


def _guard_of(
    policy: PolicyBundle | LayeredPolicyBundle | None,
    given: Mapping[str, Any],
    cancel: Cancelled | None,
    run_id: str | None,
    tools: ToolSet,
) -> ToolGuard:
    if policy is None:
        raise TypeError("Give run_agent a policy, or a guard that has one.")
    settings = dict(given)
    if settings["redact"] is None:
        # What it has found out about names it need not find out again in the next run.
        settings["redact"] = tools.derived(_usual_redactor)
    if settings["correlation_id"] is None and run_id is not None:
        settings["correlation_id"] = f"{run_id}#{uuid.uuid4().hex[:8]}"
    return ToolGuard(policy=policy, cancel=cancel, **settings)


def _usual_redactor(tools: ToolSet) -> Redactor:
    return default_redactor()


def _ready(guard: object, policy: object, given: Mapping[str, Any]) -> ToolGuard:
    if not isinstance(guard, ToolGuard):
        raise TypeError(f"guard is a {type(guard).__name__}; give a ToolGuard.")
    usual = {"sinks": (), "principal": _ANYBODY, "workspace": "."}
    also = ["policy"] if policy is not None else []
    also += [name for name, value in given.items() if value != usual.get(name)]
    if also:
        raise ValueError(
            f"With guard= the guard has its own {also[0]}; leave {', '.join(also)} out, or give "
            "them to the ToolGuard."
        )
    return guard


def _check_pausing(guard: ToolGuard, store: RunStore | None) -> None:
    if store is None:
        raise ValueError(
            "on_approval pauses runs, and nothing here keeps a run; give store= and run_id=, or "
            "a handler that answers."
        )
    warn_unless_durable(guard.ledger)


async def _journal_of(store: RunStore, run_id: str, task: str, halt: Halt) -> Journal:
    """Give the journal of a run, and hold the run to the task that it was begun with."""
    journal = await open_journal(store, run_id, halt)
    past = journal.past
    if past.records and past.task != task:
        raise ValueError(
            f"The run {past.run_id!r} was begun with the task {past.task!r}; go on with that, "
            "or give another run_id."
        )
    return journal


async def _governed_run(
    guard: ToolGuard, journal: Journal | NoJournal, answers: Answers | None
) -> GovernedRun:
    """Give the run under which the ledger keeps what waits, opened again where there is one."""
    past = journal.past
    if past.ledger_run is not None and not past.is_finished:
        try:
            return await guard.reopen(answers or {}, run=past.ledger_run)
        except LedgerError as error:
            raise Stop("ledger_failed", f"the ledger failed: {said(error)}") from error
    if answers and not past.is_finished:
        raise ValueError(
            "There are answers, but the run has not paused; leave answers= out where it begins."
        )
    return GovernedRun()


def _reader(cancel: Cancelled | None) -> Callable[[], str | None]:
    """Make a function that gives why the run is to end, None while it is not."""
    if cancel is None:
        return lambda: None

    def read() -> str | None:
        try:
            cancelled, reason = cancel.cancelled, cancel.reason
        except Exception as error:
            return f"the cancel token failed: {said(error)}"
        return None if cancelled is False else str(reason)

    return read
