"""Governs the tool calls of LangGraph graphs.

`govern` puts a compiled graph under a `ToolGuard`. Every verdict is the guard's: this package, and
`adjudge_langchain` on which it builds, only translate.
"""

from adjudge_langchain import ToolRun, hitl_answers
from adjudge_langgraph._govern import (
    GovernedNode,
    fan_out_tool_calls,
    found,
    govern,
    governed_tool_node,
)
from adjudge_langgraph._pause import apending, aresume, pending, resume

__all__ = [
    "GovernedNode",
    "ToolRun",
    "apending",
    "aresume",
    "fan_out_tool_calls",
    "found",
    "govern",
    "governed_tool_node",
    "hitl_answers",
    "pending",
    "resume",
]
