"""A compiled table of edges, which is a router: the first edge that holds says where to go next.

Asking it is pure. Nothing here knows how a table was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adjudge.integration import SubjectTooLong, compile_pattern
from adjudge_runtime.graph._values import DONE, Fork, GraphError, NodeOutcome, Route

__all__ = ["STATUSES", "Edge", "GraphSpec", "When"]

STATUSES: tuple[Literal["succeeded"], Literal["failed"]] = ("succeeded", "failed")


@dataclass(frozen=True, slots=True)
class When:
    """What must hold of a node's outcome, all of it together; None is not looked at.

    `status` is "succeeded" or "failed"; `answer_matches` and `error_matches` are regular
    expressions that are searched for, never found where there is no answer or no error;
    `denials_gt` and `steps_gt` are exceeded by the node's denials and steps.
    """

    status: str | None = None
    answer_matches: str | None = None
    error_matches: str | None = None
    denials_gt: int | None = None
    steps_gt: int | None = None

    def holds(self, outcome: NodeOutcome) -> bool:
        """Whether it holds; raises `SubjectTooLong` for a text in which a pattern may not run."""
        result = outcome.result
        status = "succeeded" if result.error is None else "failed"
        if self.status is not None and self.status != status:
            return False
        if self.denials_gt is not None and outcome.denials <= self.denials_gt:
            return False
        if self.steps_gt is not None and result.steps_taken <= self.steps_gt:
            return False
        return _found(self.answer_matches, result.final_answer) and _found(
            self.error_matches, result.error
        )


@dataclass(frozen=True, slots=True)
class Edge:
    """One line of the table: from a node, when something holds, to the next or several.

    `to` holds one name, which may be "done", or with a `join` the branches. `when` None always
    holds.
    """

    source: str
    to: tuple[str, ...]
    join: str | None = None
    when: When | None = None

    @property
    def route(self) -> Route:
        """Where this edge leads."""
        if self.join is not None:
            return Fork(self.to, self.join)
        return None if self.to == (DONE,) else self.to[0]


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """A compiled graph; it is a `Router`.

    The first edge of the node that holds is taken, in the order of the text. Where none holds, or
    the node has none, the work ends. `nodes` are all names, in the order in which they appear.
    """

    start: str
    max_transitions: int
    edges: tuple[Edge, ...]
    nodes: tuple[str, ...] = ()
    file: str | None = None

    def __call__(self, outcome: NodeOutcome) -> Route:
        """Say where to go next; raises `GraphError` where a condition cannot be answered."""
        for edge in self.edges:
            if edge.source != outcome.node:
                continue
            try:
                if edge.when is None or edge.when.holds(outcome):
                    return edge.route
            except SubjectTooLong as error:
                raise GraphError(
                    f'A condition of an edge from "{edge.source}" cannot be answered: {error}'
                ) from error
        return None


def _found(pattern: str | None, text: str | None) -> bool:
    if pattern is None:
        return True
    # Compiled anew each time: a node takes a model's seconds, and a spec stays plain data.
    return text is not None and compile_pattern(pattern, permitting=True).search(text)
