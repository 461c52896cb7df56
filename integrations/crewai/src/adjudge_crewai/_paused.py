"""By what a run of CrewAI is left: an exception that its executors let through."""

from __future__ import annotations

from typing import Any

from adjudge import PendingApproval
from adjudge.integration import thaw

__all__ = ["PauseInside", "RunPaused"]


class RunPaused(BaseException):
    """A run waits for people; `resume` goes on with it.

    A `BaseException`, because CrewAI tells the model of every `Exception` of a tool. `pending` are
    the calls that wait, and `state` is what to save, as JSON: the run's id and what people are
    asked about. Neither grants anything.
    """

    def __init__(self, run_id: str, pending: tuple[PendingApproval, ...]) -> None:
        super().__init__(run_id, pending)
        self.run_id = run_id
        self.pending = pending

    @property
    def state(self) -> dict[str, Any]:
        """The paused run as JSON, to be given to `resume`."""
        return {"run": self.run_id, "calls": [_described(each) for each in self.pending]}

    def __str__(self) -> str:
        tools = ", ".join(each.request.tool for each in self.pending)
        return f"The run {self.run_id} waits for approval of: {tools}"


class PauseInside(Exception):
    """Carries a `RunPaused` through a thread of CrewAI's that would lose it.

    Raised to the user only by the iteration over a streamed run, which cannot raise the other.
    """

    def __init__(self, paused: RunPaused) -> None:
        super().__init__(str(paused))
        self.paused = paused


def _described(pending: PendingApproval) -> dict[str, Any]:
    final = pending.decision.effective_args
    return {
        "id": pending.id,
        "call_id": pending.call_id,
        "tool": pending.request.tool,
        "args": thaw(pending.request.args if final is None else final),
        "reason": pending.decision.reason,
    }
