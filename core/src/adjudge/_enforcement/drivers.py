"""Carries out what mediation asks for, in the caller's event loop or without one.

The sync driver works in any thread, also inside one that runs an event loop: what is async runs on
one loop thread that the guard owns, never in the caller's loop. Neither driver decides anything.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from types import CoroutineType
from typing import Any, TypeVar

from adjudge._enforcement.effects import (
    ApprovalHandlerFailed,
    ApprovalTimedOut,
    Ask,
    Effect,
    Execute,
    Invocation,
    Raised,
    Resolve,
    UseLedger,
)
from adjudge._enforcement.loop import LoopThread, run_on
from adjudge._enforcement.signature import is_async
from adjudge._record.recorder import Offer
from adjudge._record.sinks import Recorder

__all__ = ["drive", "drive_sync"]

T = TypeVar("T")


async def drive(  # noqa: C901 - to call another function for each effect would cost
    steps: Generator[Effect, Any, T | Raised], recorder: Recorder
) -> T:
    """Carry out a mediation in the running event loop."""
    advance: Callable[[Any], Any] = steps.send
    outcome: Any = None
    ended: Any = None
    offers: list[Offer] = []
    # An exception out of a signal handler may come between two effects as well. CPython looks for
    # signals where it jumps back: each loop is within a `try`, but for the outermost.
    while True:
        try:
            while True:
                try:
                    while True:
                        try:
                            effect = advance(outcome)
                        except StopIteration as stop:
                            ended = stop.value
                            break
                        kind = type(effect)
                        if kind is Execute and not effect.may_block:
                            outcome = effect.function(*effect.args, **effect.kwargs)
                            if type(outcome) is CoroutineType or inspect.isawaitable(outcome):
                                outcome = await outcome
                        elif kind is tuple:
                            left = recorder.hand_over(effect, offers, in_loop=True)
                            if left:
                                await recorder.settle(left)
                            outcome = None
                        else:
                            outcome = await _perform(effect, recorder)
                        advance = steps.send
                    break
                except GeneratorExit:
                    # The coroutine is being closed: nothing can be awaited, but records written.
                    _close(steps, recorder, offers)
                    raise
                except BaseException as error:
                    if _is_over(steps):
                        raise
                    advance, outcome = steps.throw, error
            break
        except BaseException as error:
            if _is_over(steps):
                raise
            advance, outcome = steps.throw, error
    value: T = _ended(ended) if type(ended) is Raised else ended
    return value


async def _perform(effect: Any, recorder: Recorder) -> Any:
    if isinstance(effect, UseLedger):
        return await _to_the_end(_invoke(effect))
    if isinstance(effect, Invocation):
        return await _invoke(effect)
    if isinstance(effect, Ask):
        return await _ask(effect)
    return _resolved(effect)


async def _invoke(effect: Invocation) -> Any:
    if effect.may_block and not is_async(effect.function):
        value = await _in_thread(effect.function, effect.args, effect.kwargs)
    else:
        value = effect.function(*effect.args, **effect.kwargs)
    return await value if inspect.isawaitable(value) else value


async def _to_the_end(work: Awaitable[Any]) -> Any:
    """Await something that no cancellation may leave half done; the cancellation comes after."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException:
            if not task.done():
                raise  # it is not the work that failed: whoever awaits it is being closed
            break
    if cancelled is not None:
        if not task.cancelled():
            task.exception()
        raise cancelled
    return task.result()


async def _ask(effect: Ask) -> Any:
    """Ask, wait no longer than the time-out, and drop what comes later."""
    task = asyncio.ensure_future(_answer(effect))
    try:
        done, _ = await asyncio.wait({task}, timeout=effect.timeout_seconds)
    finally:
        if not task.done():
            task.add_done_callback(_dropped)
            task.cancel()
    if not done:
        raise ApprovalTimedOut
    if task.cancelled():
        raise ApprovalHandlerFailed(asyncio.CancelledError("the handler was cancelled"))
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, Exception):
        raise ApprovalHandlerFailed(error)
    raise error


def _dropped(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()


async def _answer(effect: Ask) -> Any:
    if is_async(effect.handler):
        return await effect.handler(effect.request)
    value = await _in_thread(effect.handler, (effect.request,), {})
    return await value if inspect.isawaitable(value) else value


async def _in_thread(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[_Ended] = loop.create_future()

    def deliver(outcome: _Ended) -> None:
        if not ended.done():
            ended.set_result(outcome)

    def tell(outcome: _Ended) -> None:
        try:
            loop.call_soon_threadsafe(deliver, outcome)
        except RuntimeError:
            return  # The loop has been closed: nobody waits any more.

    _start_thread(function, args, kwargs, tell)
    return (await ended).value()


class _Ended:
    """How a call in a thread ended; a future could not hold every exception."""

    __slots__ = ("_error", "_value")

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self._value = value
        self._error = error

    def value(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value


def _start_thread(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    tell: Callable[[_Ended], None],
) -> None:
    """Call in a thread of its own: one that hangs uses up no pool, and keeps no process alive."""

    def call() -> None:
        try:
            outcome = _Ended(function(*args, **kwargs))
        except BaseException as error:
            outcome = _Ended(error=error)
        tell(outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(call,), name="adjudge-call", daemon=True).start()


def drive_sync(
    steps: Generator[Effect, Any, T | Raised], recorder: Recorder, thread: LoopThread
) -> T:
    """Carry out a mediation in the calling thread; what is async runs on the loop thread."""
    advance: Callable[[Any], Any] = steps.send
    outcome: Any = None
    ended: Any = None
    offers: list[Offer] = []
    while True:  # as in `drive`
        try:
            while True:
                try:
                    while True:
                        try:
                            effect = advance(outcome)
                        except StopIteration as stop:
                            ended = stop.value
                            break
                        if type(effect) is tuple:
                            left = recorder.hand_over(effect, offers, in_loop=False)
                            if left:
                                recorder.settle_sync(left)
                            outcome = None
                        else:
                            outcome = _perform_sync(effect, thread)
                        advance = steps.send
                    break
                except BaseException as error:
                    if _is_over(steps):
                        raise
                    advance, outcome = steps.throw, error
            break
        except BaseException as error:
            if _is_over(steps):
                raise
            advance, outcome = steps.throw, error
    value: T = _ended(ended)
    return value


def _is_over(steps: Generator[Effect, Any, Any]) -> bool:
    return inspect.getgeneratorstate(steps) == inspect.GEN_CLOSED


def _perform_sync(effect: Any, thread: LoopThread) -> Any:
    if isinstance(effect, Invocation):
        value = effect.function(*effect.args, **effect.kwargs)
        return _await_on(thread, value) if inspect.isawaitable(value) else value
    if isinstance(effect, Ask):
        return _ask_sync(effect, thread)
    return _resolved(effect)


def _await_on(
    thread: LoopThread, awaitable: Awaitable[Any], timeout_seconds: float = threading.TIMEOUT_MAX
) -> Any:
    loop = thread.loop()
    if asyncio._get_running_loop() is loop:
        close = getattr(awaitable, "close", None)
        if close is not None:
            close()
        raise RuntimeError(
            "The sync door was used on the guard's own loop thread, where it would wait for "
            "itself; await the async one there."
        )
    return run_on(loop, awaitable, timeout_seconds=timeout_seconds)


def _ask_sync(effect: Ask, thread: LoopThread) -> Any:
    try:
        value = _answer_sync(effect)
        if inspect.isawaitable(value):
            value = _await_on(thread, _once(value), effect.timeout_seconds)
    except ApprovalTimedOut:
        raise
    except _HandlerError as failed:
        raise ApprovalHandlerFailed(failed.error) from failed.error
    except TimeoutError as error:
        raise ApprovalTimedOut from error
    except (Exception, asyncio.CancelledError) as error:
        raise ApprovalHandlerFailed(error) from error
    return value


def _answer_sync(effect: Ask) -> Any:
    if is_async(effect.handler):
        return effect.handler(effect.request)
    answers: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
    _start_thread(effect.handler, (effect.request,), {}, answers.put)
    try:
        outcome = answers.get(timeout=effect.timeout_seconds)
    except queue.Empty:
        raise ApprovalTimedOut from None
    try:
        return outcome.value()
    except TimeoutError as error:
        # The handler's own, which is a failure of it and no lack of an answer.
        raise _HandlerError(error) from error


class _HandlerError(Exception):
    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


async def _once(value: Awaitable[Any]) -> Any:
    """Await a handler's answer, and tell its own exceptions from those of the waiting."""
    try:
        return await value
    except Exception as error:
        raise _HandlerError(error) from error
    except asyncio.CancelledError as error:
        raise _HandlerError(error) from error


def _resolved(effect: Resolve) -> dict[str, str]:
    """Resolve what can be; a path that cannot stays out."""
    found = {}
    for path in effect.paths:
        try:
            found[path] = os.path.realpath(os.path.join(effect.workspace, path))  # noqa: PTH118
        except (OSError, ValueError):
            continue
    return found


def _close(steps: Generator[Effect, Any, Any], recorder: Recorder, offers: list[Offer]) -> None:
    advance: Callable[[Any], Any] = steps.throw
    # A GeneratorExit would close the steps within steps, which could then put nothing down.
    outcome: Any = asyncio.CancelledError("the coroutine is being closed")
    while True:
        try:
            effect = advance(outcome)
        except StopIteration:
            return
        try:
            outcome = _perform_closing(effect, recorder, offers)
            advance = steps.send
        except BaseException as failed:
            advance, outcome = steps.throw, failed


def _perform_closing(effect: Any, recorder: Recorder, offers: list[Offer]) -> Any:
    """Do what can be done without awaiting anything."""
    if isinstance(effect, tuple):
        return recorder.settle_sync(recorder.hand_over(effect, offers, in_loop=False))
    if isinstance(effect, UseLedger) and not is_async(effect.function):
        value = effect.function(*effect.args, **effect.kwargs)
        if not inspect.isawaitable(value):
            return value
    raise RuntimeError("The call is being closed.")


def _ended(value: T | Raised) -> T:
    if not isinstance(value, Raised):
        return value
    error = value.error
    context = error.__context__
    try:
        raise error
    finally:
        # Raising here must not give the exception another history than it had.
        error.__context__ = context
