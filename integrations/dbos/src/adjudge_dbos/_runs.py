"""A governed run as one DBOS workflow: attempts, which the journal makes safe to repeat.

Each attempt is one DBOS step around `run_agent`, so that the workflow is deterministic whatever the
agent does: between two attempts it only waits. DBOS may run a step again, or in two places at once;
the journal then goes on at the first incomplete step, and lets one of the two append. An attempt
that was superseded or interrupted ends nothing: whoever still owns the workflow tries again.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from dbos import DBOS, WorkflowSerializationFormat

from adjudge import (
    Cancelled,
    CancelToken,
    Ledger,
    LedgerError,
    RunStore,
    StepRecord,
    StoreError,
    pause_approval,
)
from adjudge_dbos._orders import AgentSetup, Build, OrderError, RunOrder
from adjudge_runtime import RunResult, run_agent

__all__ = ["PENDING", "QUEUE", "WAKE", "WORKFLOW", "GovernedRuns"]

WORKFLOW = "adjudge.run"
"""The name under which the workflow is registered."""

QUEUE = "adjudge-runs"
"""The queue on which runs are put where no other is named."""

PENDING = "adjudge.pending"
"""The workflow's event that says under which id the ledger has what waits."""

WAKE = "adjudge.wake"
"""The topic of messages that make a run look at the ledger; they carry and grant nothing."""

_LONGEST_WAIT = 86400.0
_FAILING = frozenset({"store_failed", "ledger_failed"})
_AGAIN = _FAILING | {"superseded", "interrupted"}

Told = dict[str, Any]


class GovernedRuns:
    """The agents that this worker can run, registered with DBOS as one workflow.

    Make it once in a process, before `DBOS.launch()`. `agents` are by name; each is a function from
    a `RunOrder` to an `AgentSetup`, which may be async and is called for every attempt. `store` has
    the journals and `ledger` the approvals; both have to be durable, and the same for all workers
    and desks. `watch_seconds` is how often an attempt looks whether its workflow was cancelled or
    given to another worker; `store_attempts` how often in direct succession a run is tried on a
    store or a ledger that fails, with longer and longer waits between, before it ends with the code
    `store_failed` or `ledger_failed`. Raises `TypeError` or `ValueError` for what cannot be used.

    The workflow gives a JSON object with the fields of `RunResult` but `pending`, and `run_id`,
    `executor` (who carried out the last attempt) and `uncertain`: the calls, by step and tool,
    whose outcome a crash lost and which were not run again. Beside the codes of `RunResult` there
    are `bad_order`, `unknown_agent` and `setup_failed`; nothing has run in that attempt then.
    """

    def __init__(
        self,
        agents: Mapping[str, Build],
        *,
        store: RunStore,
        ledger: Ledger,
        watch_seconds: float = 1.0,
        store_attempts: int = 8,
    ) -> None:
        self._agents = _checked(agents)
        for name, place in (("store", store), ("ledger", ledger)):
            if getattr(place, "durable", False) is not True:
                raise ValueError(
                    f"The {name} is a {type(place).__name__}, which does not outlive its process; "
                    "give one that all workers share, such as adjudge_postgres has."
                )
        if not 0 < watch_seconds <= 3600:
            raise ValueError(f"watch_seconds is {watch_seconds!r}; give seconds from 0 to 3600.")
        if type(store_attempts) is not int or store_attempts < 1:
            raise ValueError(f"store_attempts is {store_attempts!r}; give a whole number from 1.")
        self._store = store
        self._ledger = ledger
        self._watch_seconds = watch_seconds

        async def attempt(order: dict[str, Any]) -> Told:
            return await self._attempt(order)

        # Without retries of DBOS: whether to try again is decided by what the journal said.
        step = DBOS.step(name="adjudge.attempt")(attempt)

        async def run(order: dict[str, Any]) -> Told:
            return await _carry_out(order, step, store_attempts=store_attempts)

        DBOS.workflow(name=WORKFLOW, serialization_type=WorkflowSerializationFormat.PORTABLE)(run)

    async def _attempt(self, given: object) -> Told:
        """Go on with a run as far as it goes, and say in JSON how that ended."""
        try:
            order = RunOrder.from_json(given)
        except OrderError as error:
            return _failed("", error.code, str(error))
        build = self._agents.get(order.agent)
        if build is None:
            known = ", ".join(sorted(self._agents)) or "none"
            return _failed(
                order.run_id,
                "unknown_agent",
                f"this worker has no agent {order.agent!r}; it has {known}",
            )
        try:
            setup = await _set_up(build, order)
        except Exception as error:
            return _failed(order.run_id, "setup_failed", f"{type(error).__name__}: {error}")
        return await self._run(order, setup)

    async def _run(self, order: RunOrder, setup: AgentSetup) -> Told:
        lost = CancelToken()
        watching = asyncio.create_task(_watch(lost, self._watch_seconds))
        try:
            result = await run_agent(
                setup.agent,
                order.task,
                tools=setup.tools,
                policy=setup.policy,
                sinks=setup.sinks,
                on_approval=pause_approval(self._ledger),
                budget=setup.budget,
                principal=order.principal,
                environment=setup.environment,
                workspace=setup.workspace,
                store=self._store,
                run_id=order.run_id,
                executor=setup.executor,
                compressor=setup.compressor,
                cancel=_Either(lost, setup.cancel),
                obligations=setup.obligations,
                redact=setup.redact,
                shadows=setup.shadows,
                context=setup.context,
            )
        except LedgerError as error:
            return _failed(order.run_id, "ledger_failed", f"the ledger cannot be used: {error}")
        except (TypeError, ValueError) as error:
            # Nothing has run: these are about what the worker or the order asked for.
            return _failed(order.run_id, "setup_failed", f"{type(error).__name__}: {error}")
        finally:
            watching.cancel()
        code = "interrupted" if result.code == "cancelled" and lost.cancelled else result.code
        return await self._told(order, result, code)

    async def _told(self, order: RunOrder, result: RunResult, code: str) -> Told:
        try:
            records = await self._store.load(order.run_id)
        except StoreError as error:
            # A report without them would say that there is nothing to look at.
            return _failed(order.run_id, "store_failed", f"the journal cannot be read: {error}")
        usage = None if result.usage is None else asdict(result.usage)
        told: Told = {
            "run_id": order.run_id,
            "code": code,
            "final_answer": result.final_answer,
            "error": result.error,
            "steps_taken": result.steps_taken,
            "denials": result.denials,
            "usage": usage,
            "bundle_id": result.bundle_id,
            "correlation_id": result.correlation_id,
            "executor": DBOS.executor_id,
            "uncertain": _uncertain(records),
        }
        if code == "paused":
            told["pending"] = {"ledger_run": records[0].body["run"]}
            told["wait_seconds"] = _wait_seconds(result)
        return told


async def _carry_out(
    order: dict[str, Any],
    attempt: Callable[[dict[str, Any]], Awaitable[Told]],
    *,
    store_attempts: int,
) -> Told:
    """Make attempts until one ends the run; everything here is deterministic given their answers.

    A worker that owns the workflow no longer is found out by DBOS when it puts an attempt's answer
    down, and leaves by an exception that is no `Exception`, without an outcome of its own.
    """
    vain = 0
    while True:
        told = await attempt(order)
        code = told["code"]
        if code in _AGAIN:
            vain += 1
            if code in _FAILING and vain >= store_attempts:
                return told
            # Longer each time, so that of two which supersede each other one gets through.
            await DBOS.sleep_async(min(60.0, 0.1 * 2 ** min(vain, 10)))
            continue
        if code != "paused":
            return told
        vain = 0
        await DBOS.set_event_async(
            PENDING, told["pending"], serialization_type=WorkflowSerializationFormat.PORTABLE
        )
        await DBOS.recv_async(WAKE, timeout_seconds=told["wait_seconds"])


async def _watch(lost: CancelToken, seconds: float) -> None:
    """Trip the token once the workflow is cancelled, or no longer this worker's."""
    workflow_id = DBOS.workflow_id
    if workflow_id is None:
        return
    while True:
        try:
            status = await DBOS.get_workflow_status_async(workflow_id)
        except Exception as error:
            lost.cancel(f"the workflow's status cannot be read: {type(error).__name__}")
            return
        if status is None or status.status != "PENDING":
            lost.cancel(f"the workflow is {'gone' if status is None else status.status}")
            return
        if status.executor_id != DBOS.executor_id:
            lost.cancel(f"the workflow was given to {status.executor_id}")
            return
        await asyncio.sleep(seconds)


class _Either:
    """A kill switch that is tripped where one of two is."""

    def __init__(self, lost: CancelToken, own: Cancelled | None) -> None:
        self._lost = lost
        self._own = own

    @property
    def cancelled(self) -> bool:
        if self._lost.cancelled:
            return True
        # Anything but False counts as tripped, as it does for the guard.
        return self._own is not None and self._own.cancelled is not False

    @property
    def reason(self) -> str:
        if self._lost.cancelled or self._own is None:
            return self._lost.reason
        return self._own.reason


async def _set_up(build: Build, order: RunOrder) -> AgentSetup:
    made = build(order)
    setup = await made if inspect.isawaitable(made) else made
    if not isinstance(setup, AgentSetup):
        raise TypeError(f"the agent {order.agent!r} is a {type(setup).__name__}, not an AgentSetup")
    return setup


def _uncertain(records: Sequence[StepRecord]) -> list[Told]:
    """Give the calls of a run whose outcome was lost and which were not run again."""
    return [
        {"step": record.body["step"], "call": record.body["call"], "tool": record.body["tool"]}
        for record in records
        if record.kind == "action.result" and record.body.get("code") == "uncertain"
    ]


def _wait_seconds(result: RunResult) -> float:
    """Give how long to wait for a word: until the first of what waits expires, a day at most."""
    now = datetime.now(UTC)
    left = [(each.expires_at - now).total_seconds() for each in result.pending if each.expires_at]
    return max(0.1, min([_LONGEST_WAIT, *(each + 0.05 for each in left)]))


def _failed(run_id: str, code: str, error: str) -> Told:
    return {
        "run_id": run_id,
        "code": code,
        "final_answer": None,
        "error": error,
        "steps_taken": 0,
        "denials": 0,
        "usage": None,
        "bundle_id": None,
        "correlation_id": None,
        "executor": DBOS.executor_id,
        "uncertain": [],
    }


def _checked(agents: object) -> dict[str, Build]:
    if not isinstance(agents, Mapping) or not agents:
        raise ValueError("There are no agents; give a mapping from their names to functions.")
    for name, build in agents.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"The agent's name is {name!r}; give a text.")
        if not callable(build):
            raise TypeError(
                f"The agent {name!r} is {build!r}; give a function from a RunOrder to an "
                "AgentSetup."
            )
    return dict(agents)
