"""What people and programs beside the workers do: start runs, answer what waits, hand runs over.

All of it needs a `DBOSClient` and no agent. An answer is kept in the ledger, by the checks of the
ledger; the message that follows it only makes the run look. Nothing here runs a tool.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbos import DBOSClient, WorkflowSerializationFormat

from adjudge import (
    AnswerError,
    ApprovalDecision,
    Ledger,
    PendingApproval,
    ToolGuard,
    compile_policy,
    pause_approval,
)
from adjudge_dbos._orders import RunOrder
from adjudge_dbos._runs import PENDING, QUEUE, WAKE, WORKFLOW

__all__ = ["answer", "start", "take_over", "waiting"]


def start(
    client: DBOSClient, order: RunOrder, *, queue: str = QUEUE, app_version: str | None = None
) -> str:
    """Put a run on a queue, and give its id, which is the workflow's.

    A run of that id that is there already stays as it is. `app_version` is that of the workers
    which may take it; without it, the newest that DBOS knows.
    """
    version = {} if app_version is None else {"app_version": app_version}
    client.enqueue(
        {
            "workflow_name": WORKFLOW,
            "queue_name": queue,
            "workflow_id": order.run_id,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
            **version,  # type: ignore[typeddict-item]
        },
        order.to_json(),
    )
    return order.run_id


def waiting(
    client: DBOSClient, ledger: Ledger, *, run_id: str | None = None
) -> dict[str, tuple[PendingApproval, ...]]:
    """Give what waits for a person, by the ids of the runs that wait; of one run, or of all.

    The workflows say which runs to look at, the ledger says what waits in them.
    Raises `LedgerError` where it cannot be read.
    """
    found = {}
    guard = _guard(ledger)
    for each in [run_id] if run_id is not None else _pending_runs(client):
        run = _ledger_run(client, each)
        pending = () if run is None else guard.waiting_sync(run)
        if pending:
            found[each] = pending
    return found


def answer(
    client: DBOSClient,
    ledger: Ledger,
    run_id: str,
    answers: Mapping[str, ApprovalDecision],
) -> None:
    """Keep people's answers to what waits in a run, and make the run look at them.

    Who may answer is for the caller to check, as with every ledger. An answer that comes too late
    or after another changes nothing. Raises `AnswerError` for answers that are none or
    that belong to another run, and `LedgerError` where the ledger cannot keep them.
    """
    guard = _guard(ledger)
    run = _ledger_run(client, run_id)
    if run is None:
        raise AnswerError(f"Nothing waits in the run {run_id!r}; `waiting` lists what does.")
    guard.reopen_sync(answers, run=run)
    client.send(run_id, "", topic=WAKE, serialization_type=WorkflowSerializationFormat.PORTABLE)


def take_over(
    client: DBOSClient, executor_id: str, *, queue: str = QUEUE, app_version: str | None = None
) -> list[str]:
    """Put the runs of a worker that is gone back on a queue, and give their ids.

    To be called once it is known to be gone. A worker that lives after all loses its runs: what it
    is about to do the journal refuses, and a call that it has in hand is uncertain to the other.
    """
    ids = [
        each.workflow_id
        for each in client.list_workflows(
            status="PENDING",
            name=WORKFLOW,
            executor_id=executor_id,
            app_version=app_version,
            load_input=False,
            load_output=False,
        )
    ]
    if ids:
        client.resume_workflows(ids, queue_name=queue)
    return ids


def _pending_runs(client: DBOSClient) -> list[str]:
    found = client.list_workflows(
        status="PENDING", name=WORKFLOW, load_input=False, load_output=False
    )
    return [each.workflow_id for each in found]


def _guard(ledger: Ledger) -> ToolGuard:
    """Make what reads the ledger and checks answers; it has no tools and permits nothing."""
    nothing = compile_policy({"version": 1, "rules": []})
    return ToolGuard(policy=nothing, on_approval=pause_approval(ledger))


def _ledger_run(client: DBOSClient, run_id: str) -> str | None:
    """Give the id under which the ledger keeps a run's calls, None where nothing ever waited."""
    event = client.get_event(run_id, PENDING, timeout_seconds=0)
    run = event.get("ledger_run") if isinstance(event, dict) else None
    return run if isinstance(run, str) else None
