"""What the loop of an agent shares with those of the agents inside of its tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from adjudge import CallContext, Executor, ToolGuard
    from adjudge.integration import GovernedRun
    from adjudge_runtime._journal import Journal, NoJournal
    from adjudge_runtime._stops import Halt
    from adjudge_runtime._values import ToolCall, Usage

__all__ = ["CallJournal", "Desk"]


class CallJournal(Protocol):
    """What a call needs of the journal of its run."""

    @property
    def keeps(self) -> bool:
        """Whether anything is put down."""
        ...

    def key(self, step: int, index: int, call: ToolCall) -> str | None:
        """Give the key under which the call is the same in every attempt; None where nothing is."""
        ...

    async def intend(self, step: int, index: int, call: ToolCall, key: str) -> None:
        """Put down that a body is about to start; raises `Stop` where it may not."""
        ...

    async def nested(self, name: str) -> NoJournal | Journal:
        """Give the journal of an agent inside of the call's body."""
        ...


@dataclass(frozen=True, slots=True)
class Desk:
    """The guard at the loop's one door, and all that stands around it.

    `run` is the run under which the ledger keeps what waits, None where nothing can wait. `parent`
    are the call ids of the calls inside of whose bodies this loop runs. `cancelled` is read at
    each step and says why the run is to end, or None.
    """

    guard: ToolGuard
    journal: CallJournal
    halt: Halt
    cancelled: Callable[[], str | None]
    executor: Executor | None = None
    context: Callable[[], CallContext | Awaitable[CallContext]] | None = None
    run: GovernedRun | None = None
    cost: Callable[[Usage], int] | None = None
    """What counts the money of agents inside of tools whose own budgets do not."""
    parent: str = ""
    may_pause: bool = True
    """Whether a call may be left waiting; not where a body is around it that cannot be."""
    records: bool = True
    """Whether anybody may see what is recorded."""
    checks_cancel: bool = False
    """Whether the kill switch is another than the guard's own, which reads that at each body."""
