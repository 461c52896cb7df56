"""Governs the tool calls of PydanticAI agents.

`govern` puts an agent under a `ToolGuard`. `AdjudgeCapability` and `GovernedToolset` are what it
stands on, for those who build their agents with them. Every verdict is the guard's: this package
only translates.
"""

from adjudge_pydantic_ai._capability import AdjudgeCapability
from adjudge_pydantic_ai._govern import govern
from adjudge_pydantic_ai._pause import delegate, pending, reopen, resume
from adjudge_pydantic_ai._toolset import GovernedToolset

__all__ = [
    "AdjudgeCapability",
    "GovernedToolset",
    "delegate",
    "govern",
    "pending",
    "reopen",
    "resume",
]
