"""What every node of a workflow is given, and the checks before the first of them works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
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
    ToolGuard,
    ToolSet,
    compile_policy,
)
from adjudge_runtime._values import Budget
from adjudge_runtime.graph._spec import GraphSpec
from adjudge_runtime.graph._values import DONE, GraphError, GraphNode

__all__ = ["GraphSettings", "check_nodes", "check_start_and_bound", "graph_guard"]


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """What is the same for all nodes, as `run_agent` takes it."""

    sinks: tuple[Sink, ...]
    principal: Principal
    environment: str | None
    workspace: str
    executor: Executor | None
    store: RunStore | None
    cancel: Cancelled | None
    obligations: Mapping[str, Any] | None
    answers: Mapping[str, ApprovalDecision] | None
    context: Callable[[], CallContext | Awaitable[CallContext]] | None
    shadows: Mapping[str, Callable[..., Any]] | None
    redact: Redactor | None


def graph_guard(settings: GraphSettings, correlation_id: str) -> ToolGuard:
    """Make the guard by which the workflow's own events get on the record; it permits nothing."""
    return ToolGuard(
        policy=compile_policy({"version": 1}),
        principal=settings.principal,
        environment=settings.environment,
        workspace=settings.workspace,
        sinks=settings.sinks,
        correlation_id=correlation_id,
        redact=settings.redact,
    )


def check_start_and_bound(
    nodes: Mapping[str, GraphNode], router: object, start: str | None, bound: Any
) -> tuple[str, int]:
    """Give the node that works first, and how many may; raises `GraphError`."""
    if not callable(router):
        raise GraphError(
            f"router is {router!r}; give a compiled graph, or a function of a NodeOutcome."
        )
    if isinstance(router, GraphSpec):
        start = router.start if start is None else start
        bound = router.max_transitions if bound is None else bound
        unknown = [name for name in router.nodes if name not in nodes]
        if unknown:
            raise GraphError(
                f"The graph names {', '.join(map(repr, unknown))}, and nodes has "
                f"{', '.join(map(repr, nodes)) or 'none'}; give a GraphNode for each."
            )
    if start is None:
        raise GraphError("start is missing; give the name of the node that works first.")
    if start not in nodes:
        raise GraphError(
            f"start is {start!r}, and nodes has {', '.join(map(repr, nodes)) or 'none'}; "
            "give one of them."
        )
    if bound is None:
        raise GraphError(
            "max_transitions is missing, and nothing else ends a loop; give how many nodes may "
            "work, such as 12."
        )
    if type(bound) is not int or bound < 1:
        raise GraphError(f"max_transitions is {bound!r}; give a whole number, 1 or more.")
    return start, bound


def check_nodes(nodes: Mapping[Any, Any], settings: GraphSettings) -> None:
    """Hold each node to what a run needs; raises `GraphError`, or `GovernError` as a guard does."""
    for name, node in nodes.items():
        if not isinstance(name, str) or not name or name == DONE:
            raise GraphError(f'A node is called {name!r}; give it a name other than "{DONE}".')
        if not isinstance(node, GraphNode):
            raise GraphError(f"nodes[{name!r}] is a {type(node).__name__}; give a GraphNode.")
        if not callable(getattr(node.agent, "step", None)):
            raise GraphError(
                f"nodes[{name!r}].agent is a {type(node.agent).__name__} without a method step; "
                "give an Agent."
            )
        if not isinstance(node.tools, ToolSet):
            raise GraphError(f"nodes[{name!r}].tools is {node.tools!r}; give a ToolSet.")
        if not isinstance(node.budget, Budget):
            raise GraphError(f"nodes[{name!r}].budget is {node.budget!r}; give a Budget.")
        # A guard of these settings that never governs anything: it says what is wrong with them.
        guard = ToolGuard(
            policy=node.policy,
            tools=node.tools,
            principal=settings.principal,
            environment=settings.environment,
            workspace=settings.workspace,
            on_approval=node.on_approval,
            executor=settings.executor,
            obligations=settings.obligations,
            shadows=settings.shadows,
            cancel=settings.cancel,
            redact=settings.redact,
        )
        if guard.pauses and settings.store is None:
            raise GraphError(
                f"nodes[{name!r}].on_approval pauses, and without a store nobody could go on; "
                "give store and run_id, or a handler that answers."
            )
