"""A flag that one thread raises and others wait for, without a lock that both of them take.

An exception out of a signal handler (Ctrl-C, an alarm) may come at any instruction of the main
thread. `Condition.__enter__` is Python, so it may come when the lock is taken and not yet held by a
`with`; then nobody gets it any more, and `Event`, `Future` and `Thread.start` are built on that.
Here whoever waits has a lock of its own, which the other side only ever releases.
"""

from __future__ import annotations

import asyncio
from _thread import TIMEOUT_MAX, allocate_lock
from collections import deque
from collections.abc import Callable
from contextlib import suppress

__all__ = ["Flag"]


class Flag:
    """Is raised once, by one thread; any number may wait for it and give up."""

    __slots__ = ("_told", "is_raised")

    def __init__(self) -> None:
        self.is_raised = False
        self._told: deque[Callable[[], object]] = deque()

    def hoist(self) -> None:
        """Raise it, and tell whoever waits."""
        self.is_raised = True
        while self._told:
            self._told.popleft()()

    def wait(self, seconds: float) -> bool:
        """Wait in a thread, no longer than so many seconds, and say whether it is raised."""
        if not self.is_raised:
            gate = allocate_lock()
            gate.acquire()
            self._told.append(gate.release)
            # Else it was raised before anybody could know of the gate.
            if not self.is_raised:
                gate.acquire(timeout=min(max(seconds, 0), TIMEOUT_MAX))
        return self.is_raised

    def future(self) -> asyncio.Future[None]:
        """Give something to await in the running loop; whoever gives up cancels it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def deliver() -> None:
            if not future.done():
                future.set_result(None)

        def tell() -> None:
            with suppress(RuntimeError):  # in a loop that is closed nobody waits
                loop.call_soon_threadsafe(deliver)

        self._told.append(tell)
        if self.is_raised:
            deliver()
        return future
