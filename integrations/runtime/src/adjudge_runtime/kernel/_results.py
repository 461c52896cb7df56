"""What one run of a session comes to, for whoever started it."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge_runtime.kernel._budgets import BudgetBreach
from adjudge_runtime.kernel._lifecycle import RunState
from adjudge_runtime.kernel._steps import Step
from adjudge_runtime.kernel._worker import Worker

__all__ = ["SessionResult", "result_of"]


@dataclass(frozen=True, slots=True)
class SessionResult:
    """What one `run` of a session came to.

    `state` says where the session stands now. `steps` are those that the scratchpad shows in full;
    all of them are in the execution chain. `question` waits for a person's answer, `pending` is the
    id of a call that waits for approval. `breach` is the quota that ended the session.
    """

    session_id: str
    state: RunState
    answer: str | None
    steps: tuple[Step, ...]
    breach: BudgetBreach | None
    tokens_used: int
    cost_micros: int
    compactions: int
    question: str | None = None
    pending: str | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the session has its answer."""
        return self.state is RunState.COMPLETED


def result_of(worker: Worker, breach: BudgetBreach | None = None) -> SessionResult:
    """Say where a session stands."""
    now, pad = worker.now, worker.working.pad
    goes_on = not worker.has_ended
    return SessionResult(
        session_id=now.session_id,
        state=now.state,
        answer=now.answer,
        steps=pad.steps,
        breach=breach,
        tokens_used=now.tokens_used,
        cost_micros=now.cost_micros,
        compactions=pad.compactions,
        question=now.pending_question if goes_on else None,
        pending=now.pending if goes_on else None,
    )
