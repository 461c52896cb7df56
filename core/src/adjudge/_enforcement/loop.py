"""One event loop in one daemon thread, and a bounded way to run an awaitable on another's loop.

The thread is started when it is first needed, starts anew in a forked child, and never keeps a
process alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Any

__all__ = ["LoopThread", "run_on"]

_CLOSE_SECONDS = 5.0


class LoopThread:
    """Owns the thread; `loop()` gives its running event loop."""

    __slots__ = ("__weakref__", "_lock", "_loop", "_pid", "_thread")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        """Give the running loop, starting the thread where this process has none that lives."""
        if self._pid not in (0, os.getpid()):
            # A child has no such thread, and no lock to trust.
            self._lock = threading.Lock()
            self._loop = self._thread = None
        with self._lock:
            loop, thread = self._loop, self._thread
            if loop is None or thread is None or not thread.is_alive():
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_serve, args=(loop,), name="adjudge-loop", daemon=True
                )
                thread.start()
                self._loop, self._thread, self._pid = loop, thread, os.getpid()
                weakref.finalize(self, _stop, loop).atexit = False
            return loop

    def close(self) -> None:
        """Cancel what still runs, and end the thread; a later `loop()` starts another."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._pid != os.getpid():
            return
        _stop(loop)
        if thread is not threading.current_thread():
            thread.join(_CLOSE_SECONDS)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.closing(loop):
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(_cancel_all())
            loop.run_until_complete(loop.shutdown_asyncgens())


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.call_soon_threadsafe(loop.stop)
    except RuntimeError:
        return  # It is closed already.


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
                self._task.add_done_callback(self._never_begun)

    def _never_begun(self, _: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step runs nothing of itself."""
        if not self.result.done():
            self._close_awaitable()
            self.result.set_exception(asyncio.CancelledError())

    def _close_awaitable(self) -> None:
        close = getattr(self._awaitable, "close", None)
        if close is not None:
            close()

    def abandon(self) -> None:
        with self._lock:
            if self._abandoned or self.result.done():
                return
            self._abandoned = True
            if self._task is None:
                self._close_awaitable()
                return
        try:
            self._loop.call_soon_threadsafe(self._task.cancel)
        except RuntimeError:
            return  # The loop is closed, and every task of it is gone.

    async def _carry(self) -> None:
        try:
            self.result.set_result(await self._awaitable)
        except BaseException as error:
            # What would end the loop (an exit, an interrupt) is the waiter's, not the loop's.
            self.result.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
