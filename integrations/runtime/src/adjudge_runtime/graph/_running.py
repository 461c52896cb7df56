"""Runs a workflow: a node works, the router says where its work goes next, until there is no next.

A node is one call of `run_agent` with its own policy, so that handing work over hands over no
powers. However the router answers, no more nodes work than `max_transitions` says. What fails ends
the workflow with an error; nothing of it grants anything.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from adjudge import (
    ApprovalDecision,
    CallContext,
    Cancelled,
    Executor,
    Principal,
    Redactor,
    RunStore,
    Sink,
)
from adjudge_runtime._journal import check_run_id
from adjudge_runtime.graph._settings import (
    GraphSettings,
    check_nodes,
    check_start_and_bound,
    graph_guard,
)
from adjudge_runtime.graph._tasks import default_compose_join, default_compose_task
from adjudge_runtime.graph._values import GraphError, GraphNode, GraphResult, Router
from adjudge_runtime.graph._walking import ComposeJoin, ComposeTask, Walk, Ways

__all__ = ["run_graph"]

_ANONYMOUS = Principal("user", "anonymous")


async def run_graph(
    nodes: Mapping[str, GraphNode],
    task: str,
    *,
    router: Router,
    start: str | None = None,
    max_transitions: int | None = None,
    compose_task: ComposeTask | None = None,
    compose_join: ComposeJoin | None = None,
    sinks: Iterable[Sink] = (),
    principal: Principal = _ANONYMOUS,
    environment: str | None = None,
    workspace: str = ".",
    executor: Executor | None = None,
    store: RunStore | None = None,
    run_id: str | None = None,
    cancel: Cancelled | None = None,
    obligations: Mapping[str, Any] | None = None,
    answers: Mapping[str, ApprovalDecision] | None = None,
    context: Callable[[], CallContext | Awaitable[CallContext]] | None = None,
    shadows: Mapping[str, Callable[..., Any]] | None = None,
    redact: Redactor | None = None,
    correlation_id: str | None = None,
) -> GraphResult:
    """Run a workflow of several agents, one after the other or side by side.

    - `router` is a compiled graph or any function of a `NodeOutcome`, sync or async; a compiled
      graph brings `start` and `max_transitions`, for another router both must be given.
      `max_transitions` is how many nodes may work, each branch counted.
    - `compose_task` makes the next node's task of the goal and the outcome before, `compose_join`
      that of a join of the goal and all branches' outcomes; by default each result is marked.
    - With `store` and `run_id` the same call goes on after a crash: at the node that it died in,
      with the decisions that were made. Each node's run is journaled as `RUN_ID::N:NODE`. Of
      workers that race one goes on, and the others end with the code "superseded".
    - `answers`, by the ids of what was `pending`, go on with a workflow that paused; answers to
      nothing that waits are not used.
    - All the rest is given to every node's run, as `run_agent` takes it.

    Of branches side by side, each comes to its own end; if one failed, the join does not work and
    the workflow ends with the code "branch_failed". Raises `GraphError` or `GovernError`, before
    anything runs, for what cannot be run, and `ValueError` for a `run_id` that only the runs of
    agents inside of tools have.
    """
    given = GraphSettings(
        sinks=tuple(sinks),
        principal=principal,
        environment=environment,
        workspace=workspace,
        executor=executor,
        store=store,
        cancel=cancel,
        obligations=obligations,
        answers=answers,
        context=context,
        shadows=shadows,
        redact=redact,
    )
    if not isinstance(task, str):
        raise GraphError(f"task is {task!r}; give the goal as text.")
    if (store is None) != (run_id is None) or run_id == "":
        raise GraphError(
            "store and run_id belong together: give both, and a run_id that is not empty, "
            "for a workflow that can be gone on with, or neither."
        )
    if run_id is not None:
        check_run_id(run_id)
    start, bound = check_start_and_bound(nodes, router, start, max_transitions)
    check_nodes(nodes, given)
    graph_id = run_id or correlation_id or uuid.uuid4().hex
    if correlation_id is None:
        # Each attempt has events of its own; the id of the workflow is what they begin with.
        correlation_id = graph_id if store is None else f"{graph_id}#{uuid.uuid4().hex[:8]}"
    async with graph_guard(given, correlation_id) as guard:
        walk = Walk(
            dict(nodes),
            task,
            bound=bound,
            graph_id=graph_id,
            settings=given,
            ways=Ways(
                router, compose_task or default_compose_task, compose_join or default_compose_join
            ),
            guard=guard,
        )
        return await walk.run(start)
