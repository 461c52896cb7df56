"""One event loop in one daemon thread, for a synchronous door that has coroutines to run.

It is started when it is first needed, survives a fork by starting anew in the child, and never keeps a process alive.
It bounds nothing by itself: whoever waits on it states how long.
"""

from __future__ import annotations

import asyncio
import os
import threading

__all__ = ["LoopThread"]


class LoopThread:
    """Owns the thread; `loop()` gives its running event loop."""

    __slots__ = ("_lock", "_loop", "_pid")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        """Give the running loop, starting the thread on the first call in this process."""
        if self._loop is not None and self._pid == os.getpid():
            return self._loop
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                threading.Thread(
                    target=self._loop.run_forever, name="adjudge-loop", daemon=True
                ).start()
            return self._loop
