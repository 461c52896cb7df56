"""One event loop in one daemon thread, and a bounded way to run an awaitable on another's loop.

The thread is started when it is first needed, starts anew in a forked child, and never keeps a
process alive.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Any

__all__ = ["LoopThread", "run_on"]


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


def run_on(
    loop: asyncio.AbstractEventLoop, awaitable: Awaitable[Any], *, timeout_seconds: float
) -> Any:
    """Await on a loop of another thread and give the result; late, it is a `TimeoutError`.

    What is late is cancelled, or never started. A stuck loop is a time-out, a closed one an error.
    """
    run = _Run(loop, awaitable)
    try:
        loop.call_soon_threadsafe(run.start)
        return run.result.result(timeout_seconds)
    except BaseException as error:
        run.abandon()
        if isinstance(error, TimeoutError) and not run.result.done():
            raise TimeoutError(f"it did not answer within {timeout_seconds:g} s") from None
        raise


class _Run:
    __slots__ = ("_abandoned", "_awaitable", "_lock", "_loop", "_task", "result")

    def __init__(self, loop: asyncio.AbstractEventLoop, awaitable: Awaitable[Any]) -> None:
        self.result: Future[Any] = Future()
        self._loop = loop
        self._awaitable = awaitable
        self._task: asyncio.Task[None] | None = None
        self._abandoned = False
        self._lock = threading.Lock()

    def start(self) -> None:
        with self._lock:
            if not self._abandoned:
                self._task = self._loop.create_task(self._carry())

    def abandon(self) -> None:
        with self._lock:
            if self._abandoned or self.result.done():
                return
            self._abandoned = True
            if self._task is None:
                close = getattr(self._awaitable, "close", None)
                if close is not None:
                    close()
                return
        try:
            self._loop.call_soon_threadsafe(self._task.cancel)
        except RuntimeError:
            return  # The loop is closed, and every task of it is gone.

    async def _carry(self) -> None:
        try:
            self.result.set_result(await self._awaitable)
        except BaseException as error:
            self.result.set_exception(error)
            if not isinstance(error, Exception):
                raise
