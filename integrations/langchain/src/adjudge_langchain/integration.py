"""The seam: what an integration that builds on this one needs, and users do not.

A LangGraph graph is made of LangChain's tools and tool nodes. Here is what governs those, how a
call's arguments are read before it is made, and how a call finds its run and waits in it.
"""

from __future__ import annotations

from adjudge_langchain._agents import (
    binding_over,
    govern_model_node,
    govern_tool_node,
    governed_request,
    tool_nodes,
)
from adjudge_langchain._binding import Binding, ContextSource, Hosted, ToolRun
from adjudge_langchain._calls import Call
from adjudge_langchain._hosted import allowed_tools
from adjudge_langchain._runs import (
    Place,
    carry_on,
    governed_run,
    governed_run_sync,
    mark_of,
    pending_mark,
    place_of,
    resumption,
    run_id_of,
    vouching_for_pauses,
    wait,
)
from adjudge_langchain._tools import Copies, binding_of, call_of, governed_tool

__all__ = [
    "Binding",
    "Call",
    "ContextSource",
    "Copies",
    "Hosted",
    "Place",
    "ToolRun",
    "allowed_tools",
    "binding_of",
    "binding_over",
    "call_of",
    "carry_on",
    "govern_model_node",
    "govern_tool_node",
    "governed_request",
    "governed_run",
    "governed_run_sync",
    "governed_tool",
    "mark_of",
    "pending_mark",
    "place_of",
    "resumption",
    "run_id_of",
    "tool_nodes",
    "vouching_for_pauses",
    "wait",
]
