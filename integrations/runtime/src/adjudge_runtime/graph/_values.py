"""The values of a graph: its nodes, what each came to, and what the whole workflow came to.

All of them are frozen; none of them does anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge import (
    AdjudgeError,
    ApprovalHandler,
    LayeredPolicyBundle,
    PendingApproval,
    PolicyBundle,
    ToolSet,
)
from adjudge_runtime._values import Agent, Budget, RunResult

__all__ = [
    "DONE",
    "Fork",
    "GraphCompileError",
    "GraphError",
    "GraphNode",
    "GraphResult",
    "NodeOutcome",
    "Route",
    "Router",
]

DONE = "done"
"""Where the work ends: a name that no node can have."""


class GraphError(AdjudgeError, ValueError):
    """A workflow that cannot begin: nodes, router or bounds are not what they should be."""

    code = "graph_error"


class GraphCompileError(GraphError):
    """A graph's text that does not say what it should; nothing of it is used.

    `problems` lists every problem found, one sentence each, with file, line, column and field.
    """

    code = "graph_compile_error"

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (
            (problems,) if isinstance(problems, str) else tuple(problems)
        )
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[GraphCompileError], tuple[tuple[str, ...]]]:
        return (type(self), (self.problems,))


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One role: an agent with tools, policy, budget and approval handler of its own.

    The edge to a node is a permission boundary: what the node may do is in its policy, whoever
    handed the work over. `on_approval` is a handler or `pause_approval(ledger)`.
    """

    agent: Agent
    tools: ToolSet
    policy: PolicyBundle | LayeredPolicyBundle
    budget: Budget = field(default_factory=Budget)
    on_approval: ApprovalHandler | Any = None


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """What one node came to: all that a router may decide by.

    `denials` counts the node's calls that were denied (a dry run is none), those of earlier
    attempts at the same run and of agents inside of its tools included. `transitions` is how many
    nodes ran before this one.
    """

    node: str
    result: RunResult
    denials: int
    transitions: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Nodes that work side by side next, and the one that gets what all of them came to.

    Raises `GraphError` for fewer than two branches, one that is there twice, and a join that is no
    node of its own.
    """

    to: tuple[str, ...]
    join: str

    def __post_init__(self) -> None:
        given: object = self.to
        if isinstance(given, str):
            raise GraphError(f"Fork.to is {self.to!r}; give a tuple of nodes, or route to the one.")
        object.__setattr__(self, "to", tuple(self.to))
        if len(self.to) < 2:
            raise GraphError(f"Fork.to is {self.to!r}; give two nodes at least.")
        if len(set(self.to)) < len(self.to):
            raise GraphError(f"Fork.to is {self.to!r}; each branch is there once.")
        if DONE in self.to or self.join == DONE:
            raise GraphError(f'"{DONE}" is the end, and neither a branch nor a join; name nodes.')
        if self.join in self.to:
            raise GraphError(f"Fork.join is {self.join!r}, a branch as well; join in another node.")


Route = str | Fork | None
"""Where to go next: a node, several with a join, or nowhere (None or "done")."""

Router = Callable[[NodeOutcome], Route | Awaitable[Route]]
"""Who decides where to go next, such as a compiled graph; a pure function of the outcome."""


@dataclass(frozen=True, slots=True)
class GraphResult:
    """What a workflow came to.

    `final` is the result of the node that worked last (of a failed fork the first branch that
    failed), `path` what every node came to, in order, and `transitions` how often work was handed
    over; the handover that `max_transitions` refused counts too. `error` says in words why the
    workflow did not come to its end, `code` in one stable word: empty where it did, else
    `max_transitions`, `unknown_node`, `router_failed`, `compose_failed`, `branch_failed`,
    `superseded`, `cancelled`, `paused`, `store_failed`, `ledger_failed` or `record_failed`. A last
    node that failed is no error of the workflow: `final.error` says so. `pending` are the calls
    that wait for a person.
    """

    final: RunResult | None
    path: tuple[NodeOutcome, ...]
    transitions: int
    error: str | None = None
    code: str = ""
    pending: tuple[PendingApproval, ...] = ()
