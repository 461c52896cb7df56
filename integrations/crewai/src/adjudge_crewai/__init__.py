"""Governs the tool calls of CrewAI crews and agents.

`govern` puts a crew, an agent or tools under a `ToolGuard`; `governed` is the decorator for a tool,
and `adjudge_hooks` governs what crews inject. Every verdict is the guard's: this package only
translates.
"""

from adjudge_crewai._binding import CallSite
from adjudge_crewai._govern import govern
from adjudge_crewai._hooks import adjudge_hooks
from adjudge_crewai._pause import aresume, pending, reopened, resume
from adjudge_crewai._paused import PauseInside, RunPaused
from adjudge_crewai._tools import governed

__all__ = [
    "CallSite",
    "PauseInside",
    "RunPaused",
    "adjudge_hooks",
    "aresume",
    "govern",
    "governed",
    "pending",
    "reopened",
    "resume",
]
