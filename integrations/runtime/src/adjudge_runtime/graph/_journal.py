"""The journal of a workflow: where it began, each handover with what it was decided by, its end.

It stands in the same store as the journals of the nodes' runs, under the workflow's own id. What is
there is never decided again. Each record has the next number, and a number is given once: who comes
second is superseded and does nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from adjudge import DuplicateRecord, RunStore, StepRecord
from adjudge_runtime._stops import said
from adjudge_runtime._values import RunResult, Usage
from adjudge_runtime.graph._values import DONE, Fork, GraphError, NodeOutcome, Route

__all__ = ["GraphJournal", "GraphStop", "Handover", "open_graph_journal"]


class GraphStop(Exception):
    """The workflow ends here; `code` and the text are those of its `GraphResult`."""

    def __init__(self, code: str, error: str) -> None:
        super().__init__(error)
        self.code = code


@dataclass(frozen=True, slots=True)
class Handover:
    """What was decided when one node, or the branches of a fork, had come to an end.

    `task` is what the next is asked; None where nothing comes next.
    """

    outcomes: tuple[NodeOutcome, ...]
    route: Route
    task: str | None


class GraphJournal:
    """The journal of one attempt at a workflow; without a store it keeps nothing."""

    def __init__(
        self, store: RunStore | None, run_id: str, next_seq: int, past: Sequence[Handover]
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._next = next_seq
        self.past = past

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier attempt began the workflow."""
        return self._next > 0

    async def begin(self, task: str, start: str) -> None:
        """Put down that the workflow begins."""
        await self._append("graph.started", {"task": task, "start": start})

    async def hand_over(self, handover: Handover) -> None:
        """Put down a decision, before anything that follows from it."""
        last = handover.outcomes[-1]
        await self._append(
            "handoff",
            {
                "hop": last.transitions,
                "node": last.node,
                "next": _route_to_json(handover.route),
                "denials": last.denials,
                "status": "succeeded" if last.result.error is None else "failed",
                "task": handover.task,
                "outcomes": [_outcome_to_json(outcome) for outcome in handover.outcomes],
            },
        )

    async def claim(self, nodes: Sequence[str]) -> None:
        """Put down that this worker goes on with branches for which another one competes."""
        await self._append("graph.claimed", {"branches": list(nodes)})

    async def _append(self, kind: str, body: Mapping[str, Any]) -> None:
        if self._store is None:
            return
        try:
            record = StepRecord(self._run_id, self._next, kind, "", body, datetime.now(UTC))
        except (TypeError, ValueError) as error:
            raise GraphStop("store_failed", f"the journal cannot keep {kind}: {error}") from error
        try:
            await self._store.append(record)
        except DuplicateRecord as error:
            raise GraphStop(
                "superseded", f"superseded: another worker is executing graph {self._run_id!r}"
            ) from error
        except Exception as error:
            # It may be there or not: whoever goes on with the workflow will see.
            raise GraphStop("store_failed", f"store.append failed: {said(error)}") from error
        self._next += 1


async def open_graph_journal(
    store: RunStore | None, run_id: str, *, task: str, start: str
) -> GraphJournal:
    """Read what there is of a workflow; raises `GraphStop` where it cannot be read.

    Raises `GraphError` where the workflow of that id was begun with another task or start.
    """
    if store is None:
        return GraphJournal(None, run_id, 0, ())
    try:
        records = await store.load(run_id)
    except Exception as error:
        raise GraphStop("store_failed", f"store.load failed: {said(error)}") from error
    past: list[Handover] = []
    for number, record in enumerate(records):
        try:
            _read(record, number, past, task, start)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, GraphError):
                raise
            raise GraphStop(
                "store_failed",
                f"the journal of graph {run_id!r} is none: record {number} ({record.kind}): "
                f"{said(error)}",
            ) from error
    return GraphJournal(store, run_id, len(records), past)


def _read(record: StepRecord, number: int, past: list[Handover], task: str, start: str) -> None:
    body = record.body
    if record.seq != number or (record.kind == "graph.started") != (number == 0):
        raise ValueError("it is out of order")
    if record.kind == "graph.started":
        for name, given in (("task", task), ("start", start)):
            if body[name] != given:
                raise GraphError(
                    f"The graph {record.run_id!r} was begun with another {name}: "
                    f"{body[name]!r}, not {given!r}. Give that one, or another run_id."
                )
    elif record.kind == "handoff":
        past.append(
            Handover(
                tuple(_outcome_from_json(each) for each in body["outcomes"]),
                _route_from_json(body["next"]),
                body["task"],
            )
        )
    elif record.kind != "graph.claimed":
        raise ValueError("its kind is unknown")


def _route_to_json(route: Route) -> Any:
    if isinstance(route, Fork):
        return {"to": list(route.to), "join": route.join}
    return None if route == DONE else route


def _route_from_json(value: Any) -> Route:
    if isinstance(value, Mapping):
        return Fork(tuple(value["to"]), value["join"])
    if value is not None and not isinstance(value, str):
        raise TypeError(f"the next node is {value!r}")
    return value


def _outcome_to_json(outcome: NodeOutcome) -> dict[str, Any]:
    result = outcome.result
    return {
        "node": outcome.node,
        "denials": outcome.denials,
        "transitions": outcome.transitions,
        "correlation_id": result.correlation_id,
        "bundle_id": result.bundle_id,
        "final_answer": result.final_answer,
        "error": result.error,
        "steps_taken": result.steps_taken,
        "usage": None if result.usage is None else asdict(result.usage),
        "code": result.code,
    }


def _outcome_from_json(body: Mapping[str, Any]) -> NodeOutcome:
    usage = body["usage"]
    result = RunResult(
        body["correlation_id"],
        body["bundle_id"],
        body["final_answer"],
        body["error"],
        body["steps_taken"],
        None if usage is None else Usage(**usage),
        body["code"],
        denials=body["denials"],
    )
    return NodeOutcome(body["node"], result, body["denials"], body["transitions"])
