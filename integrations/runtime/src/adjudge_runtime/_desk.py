"""What the loop of an agent shares with those of the agents inside of its tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from adjudge import CallContext, Executor, ToolGuard
    from adjudge.integration import GovernedRun
    from adjudge_runtime._journal import Journal, NoJournal
    from adjudge_runtime._stops import Halt

__all__ = ["Desk"]


@dataclass(frozen=True, slots=True)
class Desk:
    """The guard at the loop's one door, and all that stands around it.

    `run` is the run under which the ledger keeps what waits, None where nothing can wait. `parent`
    are the call ids of the calls inside of whose bodies this loop runs. `cancelled` is read at
    each step and says why the run is to end, or None.
    """

    guard: ToolGuard
    journal: Journal | NoJournal
    halt: Halt
    cancelled: Callable[[], str | None]
    executor: Executor | None = None
    context: Callable[[], CallContext | Awaitable[CallContext]] | None = None
    run: GovernedRun | None = None
    parent: str = ""
    records: bool = True
    """Whether anybody may see what is recorded."""
    checks_cancel: bool = False
    """Whether the kill switch is another than the guard's own, which reads that at each body."""
