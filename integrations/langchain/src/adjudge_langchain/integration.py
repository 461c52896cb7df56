"""The seam: what an integration that builds on this one needs, and users do not.

A LangGraph graph is made of LangChain's tools and tool nodes. Here is what governs those, how a
call's arguments are read before it is made, and how a call finds its run and waits in it.
"""

from __future__ import annotations

from adjudge_langchain._agents import (
    binding_over,
    govern_model_node,
    govern_tool_node,
    tool_nodes,
)
from adjudge_langchain._binding import Binding, ContextSource, Hosted, ToolRun
from adjudge_langchain._hosted import allowed_tools
from adjudge_langchain._runs import (
    pending_mark,
    place_of,
    run_id_of,
    wait,
)
from adjudge_langchain._tools import binding_of, call_of, governed_tool

__all__ = [
    "Binding",
    "ContextSource",
    "Hosted",
    "ToolRun",
    "allowed_tools",
    "binding_of",
    "binding_over",
    "call_of",
    "govern_model_node",
    "govern_tool_node",
    "governed_tool",
    "pending_mark",
    "place_of",
    "run_id_of",
    "tool_nodes",
    "wait",
]
