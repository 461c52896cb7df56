"""Handoff graphs: several agents, each with powers of its own, and bounded ways between them.

A node is one run of `run_agent`. What it may do is in its own policy, whoever handed the work over;
there is no shared state but the text that is passed on.
"""

from adjudge_runtime.graph._mermaid import to_mermaid
from adjudge_runtime.graph._reading import compile_graph, load_graph_file
from adjudge_runtime.graph._running import run_graph
from adjudge_runtime.graph._spec import Edge, GraphSpec, When
from adjudge_runtime.graph._svg import to_svg
from adjudge_runtime.graph._values import (
    DONE,
    Fork,
    GraphCompileError,
    GraphError,
    GraphNode,
    GraphResult,
    NodeOutcome,
    Route,
    Router,
)

__all__ = [
    "DONE",
    "Edge",
    "Fork",
    "GraphCompileError",
    "GraphError",
    "GraphNode",
    "GraphResult",
    "GraphSpec",
    "NodeOutcome",
    "Route",
    "Router",
    "When",
    "compile_graph",
    "load_graph_file",
    "run_graph",
    "to_mermaid",
    "to_svg",
]
