"""Governs the tool calls of the OpenAI Agents SDK.

`govern` puts tools, lists of tools, agents, realtime agents and handoffs under a `ToolGuard`;
`governed_function_tools` makes the SDK's tools out of a `ToolSet`. A handoff that may not happen
raises `HandoffDenied`. A run that waits for people goes on, in any process, with `pending` and
`resume`. Every verdict is the guard's: this package only translates.
"""

from adjudge_openai_agents._govern import govern, governed_function_tools
from adjudge_openai_agents._handoffs import HandoffDenied
from adjudge_openai_agents._pause import (
    apending,
    pending,
    resume,
    resume_realtime,
    resume_streamed,
    run_of,
)

__all__ = [
    "HandoffDenied",
    "apending",
    "govern",
    "governed_function_tools",
    "pending",
    "resume",
    "resume_realtime",
    "resume_streamed",
    "run_of",
]
