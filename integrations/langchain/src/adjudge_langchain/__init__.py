"""Governs the tool calls of LangChain tools and agents.

`govern` puts tools and agents under a `ToolGuard`. Every verdict is the guard's: this package only
translates.
"""

from adjudge_langchain._binding import ToolRun
from adjudge_langchain._callbacks import (
    AdjudgeCallbackHandler,
    ToolCallDenied,
    denial_for_model,
)
from adjudge_langchain._govern import govern
from adjudge_langchain._hitl import hitl_answers
from adjudge_langchain._middleware import AdjudgeMiddleware
from adjudge_langchain._pause import apending, aresume, pending, resume
from adjudge_langchain._runs import vouching_for_pauses

__all__ = [
    "AdjudgeCallbackHandler",
    "AdjudgeMiddleware",
    "ToolCallDenied",
    "ToolRun",
    "apending",
    "aresume",
    "denial_for_model",
    "govern",
    "hitl_answers",
    "pending",
    "resume",
    "vouching_for_pauses",
]
