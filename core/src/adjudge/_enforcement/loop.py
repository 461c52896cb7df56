"""One event loop in one daemon thread, and a bounded way to run an awaitable on another's loop.

The thread is started when it is first needed, starts anew in a forked child, and never keeps a
process alive. An exception out of a signal handler, which may come at any instruction, leaves all
of it usable: nobody takes a lock that the loop's thread needs, and each step is one operation.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from _thread import allocate_lock, start_new_thread
from collections.abc import Awaitable
from typing import Any

from adjudge._enforcement.flag import Flag

__all__ = ["LoopThread", "run_on", "start_thread"]

_CLOSE_SECONDS = 5.0


def start_thread(serve: Any, name: str) -> None:
    """Call in a daemon thread; raises `RuntimeError` if there can be none.

    `Thread.start` shares a lock with the thread that it starts, so it is called in yet another one.
    """

    def start() -> None:
        try:
            threading.Thread(target=serve, name=name, daemon=True).start()
        except RuntimeError:  # there are no more threads than this one
            serve()

    start_new_thread(start, ())


class LoopThread:
    """Owns the thread; `loop()` gives its running event loop."""

    __slots__ = ("__weakref__", "_latest")

    def __init__(self) -> None:
        self._latest = _Thread()

    def loop(self) -> asyncio.AbstractEventLoop:
        """Give the running loop, starting the thread where this process has none that lives."""
        latest = self._latest
        while latest.is_over:
            latest = self._next(latest)
        if latest.loop is None:
            weakref.finalize(self, latest.stop).atexit = False
        return latest.running()

    def _next(self, thread: _Thread) -> _Thread:
        # Several may find that it is over, and all of them go on with the same one.
        self._latest = following = thread.following.setdefault("thread", _Thread())
        return following

    def close(self) -> None:
        """Cancel what still runs, and end the thread; a later `loop()` starts another."""
        thread = self._latest
        if thread.is_over:
            return
        self._next(thread)
        thread.stop()
        if thread.ident not in (None, threading.get_ident()):
            thread.ended.wait(_CLOSE_SECONDS)


class _Thread:
    """A thread that runs one loop, from when it is first wanted until it is stopped."""

    def __init__(self) -> None:
        self.following: dict[str, _Thread] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.ident: int | None = None
        self.ended = Flag()
        self._pid = os.getpid()
        self._ready = Flag()
        self._claim = allocate_lock()
        self._stopped = False
        self._error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or is none of this process."""
        return self.ended.is_raised or self._pid != os.getpid()

    def running(self) -> asyncio.AbstractEventLoop:
        """Give the loop, once it is there."""
        while self.loop is None:
            # Only the first of several threads goes on.
            start_thread(self._serve, "adjudge-loop")
            self._ready.wait(threading.TIMEOUT_MAX)
            if self._error is not None:
                raise self._error
        return self.loop

    def stop(self) -> None:
        """End the thread, or keep it from beginning."""
        self._stopped = True
        # A forked child shares what wakes its parent's loop.
        if self.loop is not None and self._pid == os.getpid():
            with contextlib.suppress(RuntimeError):  # it is closed already
                self.loop.call_soon_threadsafe(self.loop.stop)

    def _serve(self) -> None:
        if not self._claim.acquire(blocking=False):
            return
        self.ident = threading.get_ident()
        try:
            with contextlib.closing(asyncio.new_event_loop()) as loop:
                self.loop = loop
                self._ready.hoist()
                self._run(loop)
        except BaseException as error:
            if self.loop is not None:
                raise
            # Told to whoever wants the loop: there are no more open files, for one.
            self._error = error
        finally:
            self.ended.hoist()
            self._ready.hoist()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            if not self._stopped:
                loop.run_forever()
        finally:
            loop.run_until_complete(_cancel_all())
            loop.run_until_complete(loop.shutdown_asyncgens())


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def run_on(
    loop: asyncio.AbstractEventLoop, awaitable: Awaitable[Any], *, timeout_seconds: float
) -> Any:
    """Await on a loop of another thread and give the result; late, it is a `TimeoutError`.

    What is late is cancelled, or never started. A stuck loop is a time-out, a closed one an error.
    """
    run = _Run(loop, awaitable)
    try:
        loop.call_soon_threadsafe(run.start)
        if run.done.wait(timeout_seconds):
            return run.result()
        raise TimeoutError(f"it did not answer within {timeout_seconds:g} s")
    except BaseException:
        run.abandon()
        raise


class _Run:
    __slots__ = ("_awaitable", "_error", "_loop", "_task", "_unbegun", "_value", "done")

    def __init__(self, loop: asyncio.AbstractEventLoop, awaitable: Awaitable[Any]) -> None:
        self.done = Flag()
        self._value: Any = None
        self._error: BaseException | None = None
        self._loop = loop
        self._awaitable = awaitable
        self._task: asyncio.Task[None] | None = None
        # Whoever takes this out begins the awaitable, or closes it.
        self._unbegun = [True]

    def result(self) -> Any:
        """Give what it came to, or raise it."""
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            # The exception has the frames that have us.
            self._error = None

    def start(self) -> None:
        """Begin, in the loop's thread, unless nobody waits for it any more."""
        if self._takes_it():
            self._task = self._loop.create_task(self._carry())
            self._task.add_done_callback(self._never_begun)

    def abandon(self) -> None:
        """See to it that what nobody waits for is cancelled, or never begun."""
        if self.done.is_raised:
            return
        if self._takes_it():
            self._close_awaitable()
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed, and every task of it is gone
            self._loop.call_soon_threadsafe(self._cancel)

    def _takes_it(self) -> bool:
        try:
            return self._unbegun.pop()
        except IndexError:
            return False

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _never_begun(self, _: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step runs nothing of itself."""
        if not self.done.is_raised:
            self._close_awaitable()
            self._end(None, asyncio.CancelledError())

    def _close_awaitable(self) -> None:
        close = getattr(self._awaitable, "close", None)
        if close is not None:
            close()

    async def _carry(self) -> None:
        try:
            self._end(await self._awaitable, None)
        except BaseException as error:
            # What would end the loop (an exit, an interrupt) is the waiter's, not the loop's.
            self._end(None, error)
            if isinstance(error, asyncio.CancelledError):
                raise

    def _end(self, value: Any, error: BaseException | None) -> None:
        self._value, self._error = value, error
        self.done.hoist()
