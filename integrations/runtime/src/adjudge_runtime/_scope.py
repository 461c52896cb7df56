"""What a tool's body may know of the call that it runs for, and of the run around it.

It is held in a context variable while the call is under way, so that it follows the call into
tasks and threads and nobody has to hand it on.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adjudge_runtime._stops import Stop
from adjudge_runtime._values import ToolCall, Usage

if TYPE_CHECKING:
    from adjudge_runtime._desk import Desk

__all__ = ["SCOPE", "CallScope", "current_idempotency_key"]


@dataclass(slots=True, eq=False)
class CallScope:
    """One call of a run while it is under way."""

    desk: Desk
    step: int
    index: int
    call: ToolCall
    loop: asyncio.AbstractEventLoop
    used: Usage | None = None
    """What agents inside of the body used."""
    denials: int = 0
    """How many of their calls were denied."""
    has_begun: bool = False
    """Whether a body of plain code is under way, which nobody can leave and enter again."""
    _key: str | None = field(default=None)

    @property
    def key(self) -> str | None:
        """The key under which the call is the same in every attempt; None without a store."""
        if self._key is None:
            self._key = self.desk.journal.key(self.step, self.index, self.call)
        return self._key

    def count(self, usage: Usage | None, denials: int) -> None:
        """Count what an agent inside of the body came to."""
        if usage is not None:
            self.used = usage if self.used is None else self.used + usage
        self.denials += denials

    async def claim(self) -> None:
        """Put down that the body is about to start; raises `Stop` where it may not."""
        key = self.key
        if key is not None:
            await self.desk.journal.intend(self.step, self.index, self.call, key)
        self.has_begun = True

    def claim_from_thread(self) -> None:
        """Do what `claim` does, from the thread of a body that is not async."""
        if self.key is None:
            return
        claiming = self.claim()
        try:
            future = asyncio.run_coroutine_threadsafe(claiming, self.loop)
        except RuntimeError:
            claiming.close()
            raise Stop("cancelled", "cancelled: the run's event loop has ended") from None
        future.result()


SCOPE: ContextVar[CallScope | None] = ContextVar("adjudge_runtime_call", default=None)


def current_idempotency_key() -> str | None:
    """Give, inside of a tool's body, the key under which this call is the same in every attempt.

    For services that take one: a call whose outcome a crash lost is then the same call to them
    when it is tried again. None where the run has no store, or where no run is under way. A body
    that runs in a process of its own does not see it.
    """
    scope = SCOPE.get()
    return None if scope is None else scope.key
