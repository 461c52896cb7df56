"""One attempt at a workflow: from where the journal ends to where the work does."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adjudge import PendingApproval, RecordError, ToolGuard
from adjudge_runtime._stops import alone, said
from adjudge_runtime._values import RunResult
from adjudge_runtime.graph._journal import (
    GraphJournal,
    GraphStop,
    Handover,
    open_graph_journal,
)
from adjudge_runtime.graph._node_runs import run_node
from adjudge_runtime.graph._settings import GraphSettings
from adjudge_runtime.graph._values import (
    DONE,
    Fork,
    GraphError,
    GraphNode,
    GraphResult,
    NodeOutcome,
    Route,
    Router,
)

__all__ = ["ComposeJoin", "ComposeTask", "Walk", "Ways"]

ComposeTask = Callable[[str, NodeOutcome], str | Awaitable[str]]
ComposeJoin = Callable[[str, Sequence[NodeOutcome]], str | Awaitable[str]]

# After these the node's run can be gone on with, or its work is another's: nothing may follow.
_ENDING = (
    "superseded",
    "cancelled",
    "paused",
    "store_failed",
    "ledger_failed",
    "record_failed",
)


@dataclass(frozen=True, slots=True)
class Ways:
    """Who says where work goes, and what is asked there."""

    router: Router
    compose_task: ComposeTask
    compose_join: ComposeJoin


class Walk:
    """The way of one worker through a workflow."""

    def __init__(
        self,
        nodes: Mapping[str, GraphNode],
        goal: str,
        *,
        bound: int,
        graph_id: str,
        settings: GraphSettings,
        ways: Ways,
        guard: ToolGuard,
    ) -> None:
        self._nodes = nodes
        self._goal = goal
        self._bound = bound
        self._graph_id = graph_id
        self._settings = settings
        self._ways = ways
        self._guard = guard
        self._path: list[NodeOutcome] = []
        self._refused = 0
        self._stopping: RunResult | None = None
        self._claiming = asyncio.Lock()

    async def run(self, start: str) -> GraphResult:
        """Walk from the start, or from where an earlier attempt ended, to the end."""
        try:
            await self._walk(start)
            await self._finished("", None)
        except GraphStop as stop:
            if stop.code != "record_failed":
                try:
                    await self._finished(stop.code, str(stop))
                except GraphStop as worse:
                    return self._result(worse)
            return self._result(stop)
        except (GraphError, GeneratorExit):
            raise  # nothing has begun, or nothing can be awaited any more
        except BaseException as error:
            with suppress(GraphStop):
                await self._finished("cancelled", f"interrupted by {said(error)}")
            raise
        return self._result(None)

    async def _walk(self, start: str) -> None:
        settings = self._settings
        journal = await open_graph_journal(
            settings.store, self._graph_id, task=self._goal, start=start
        )
        await self._tell(
            "graph.started", {"task": self._goal, "start": start, "resumed": journal.is_resumed}
        )
        if not journal.is_resumed:
            await journal.begin(self._goal, start)
        handover = Handover((), start, self._goal)
        for handover in journal.past:
            self._path.extend(handover.outcomes)
        while handover.route is not None:
            self._check(handover.route)
            outcomes = await self._work(handover, journal)
            handover = await self._decided(outcomes, handover.route)
            await journal.hand_over(handover)
            await self._tell_handoff(handover)

    # One handover

    def _check(self, route: Route) -> None:
        """Refuse a way to nowhere, and one step too many."""
        names = (*route.to, route.join) if isinstance(route, Fork) else (route,)
        for name in names:
            if not isinstance(name, str) or name not in self._nodes:
                raise GraphStop(
                    "unknown_node",
                    f"router returned unknown node {name!r}; nodes: {list(self._nodes)}",
                )
        if len(self._path) + len(names) > self._bound:
            self._refused = 1
            raise GraphStop("max_transitions", f"max_transitions exhausted ({self._bound})")
        cancel = self._settings.cancel
        if cancel is None:
            return
        try:
            cancelled, reason = cancel.cancelled, cancel.reason
        except Exception as error:
            raise GraphStop(
                "cancelled", f"cancelled: the cancel token failed: {said(error)}"
            ) from error
        if cancelled is not False:
            raise GraphStop("cancelled", f"cancelled: {reason}")

    async def _decided(self, outcomes: Sequence[NodeOutcome], route: Route) -> Handover:
        """Say where these outcomes lead; raises `GraphStop` where they lead no further."""
        self._path.extend(outcomes)
        for code in _ENDING:
            for outcome in outcomes:
                if outcome.result.code == code:
                    self._stopping = outcome.result
                    raise GraphStop(code, outcome.result.error or code)
        ways = self._ways
        if isinstance(route, Fork):
            failed = [outcome for outcome in outcomes if outcome.result.error is not None]
            if failed:
                self._stopping = failed[0].result
                names = ", ".join(outcome.node for outcome in failed)
                raise GraphStop(
                    "branch_failed", f"branch failed: {names}; {route.join} did not work"
                )
            task = await self._composed(ways.compose_join, tuple(outcomes))
            return Handover(tuple(outcomes), route.join, task)
        (outcome,) = outcomes
        try:
            following = await _awaited(ways.router(outcome))
        except Exception as error:
            raise GraphStop("router_failed", f"the router failed: {said(error)}") from error
        if following is None or following == DONE:
            return Handover((outcome,), None, None)
        self._check(following)
        return Handover((outcome,), following, await self._composed(ways.compose_task, outcome))

    async def _composed(self, compose: Callable[..., Any], told: object) -> str:
        try:
            task = await _awaited(compose(self._goal, told))
        except Exception as error:
            raise GraphStop(
                "compose_failed", f"the next task could not be composed: {said(error)}"
            ) from error
        if not isinstance(task, str):
            raise GraphStop(
                "compose_failed", f"the next task is a {type(task).__name__}; compose a string"
            )
        return task

    # The nodes' runs

    async def _work(self, handover: Handover, journal: GraphJournal) -> tuple[NodeOutcome, ...]:
        route, task = handover.route, handover.task
        assert task is not None
        hop = len(self._path)
        if not isinstance(route, Fork):
            assert route is not None
            return (await self._one(route, hop, task),)
        with alone():
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._branch(name, hop + index, task, route, journal))
                    for index, name in enumerate(route.to)
                ]
        ended = [each.result() for each in tasks]
        for end in ended:
            if isinstance(end, Exception):
                raise end
        return tuple(end for end in ended if isinstance(end, NodeOutcome))

    async def _branch(
        self, name: str, hop: int, task: str, fork: Fork, journal: GraphJournal
    ) -> NodeOutcome | Exception:
        """Give what came of a branch, or what it raised: those beside it come to their own ends.

        Workers that race may each be superseded in another branch. The workflow's journal then says
        who goes on: that worker runs the branch again, from where it is.
        """
        try:
            while True:
                outcome = await self._one(name, hop, task)
                if outcome.result.code != "superseded":
                    return outcome
                async with self._claiming:
                    await journal.claim(fork.to)
        except Exception as error:
            return error

    async def _one(self, name: str, hop: int, task: str) -> NodeOutcome:
        return await run_node(
            name,
            self._nodes[name],
            task,
            hop=hop,
            run=f"{self._graph_id}::{hop}:{name}",
            settings=self._settings,
        )

    # The record and the result

    async def _tell_handoff(self, handover: Handover) -> None:
        route = handover.route
        last = handover.outcomes[-1]
        following = {"to": list(route.to), "join": route.join} if isinstance(route, Fork) else route
        await self._tell(
            "graph.handoff",
            {
                "hop": last.transitions,
                "node": last.node,
                "next": following,
                "denials": last.denials,
                "ok": last.result.error is None,
            },
        )

    async def _finished(self, code: str, error: str | None) -> None:
        await self._tell(
            "graph.finished",
            {
                "hops": len(self._path),
                "final_node": self._path[-1].node if self._path else None,
                "code": code,
                "error": error,
            },
        )

    async def _tell(self, kind: str, body: Mapping[str, Any]) -> None:
        try:
            await self._guard.record_event(kind, body)
        except RecordError as error:
            raise GraphStop("record_failed", f"the record failed: {said(error)}") from error

    def _result(self, stop: GraphStop | None) -> GraphResult:
        path = tuple(self._path)
        code = "" if stop is None else stop.code
        final = self._stopping or (path[-1].result if path else None)
        pending: tuple[PendingApproval, ...] = ()
        if code == "paused":
            pending = tuple(each for outcome in path for each in outcome.result.pending)
        return GraphResult(
            final,
            path,
            max(len(path) - 1, 0) + self._refused,
            None if stop is None else str(stop),
            code,
            pending,
        )


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
