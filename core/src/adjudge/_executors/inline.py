"""Runs a tool of a `ToolSet` in this process; and what every executor builds on.

An executor is an async callable `(ActionRequest, ToolDef) -> ActionResult`; the request holds the
arguments to execute. A failed body is a result that says so; what is no `Exception` passes through.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeAlias

from adjudge._enforcement.limits import is_positive
from adjudge._enforcement.signature import is_async
from adjudge._enforcement.tools import ToolDef
from adjudge._types import ActionRequest, ActionResult
from adjudge._values import OpaqueValue, thaw

__all__ = ["Executor", "call_arguments", "checked_result", "inline_executor"]

_SCALARS = frozenset({bool, float, int, str, type(None)})
_LONGEST_MS = 1e15

Executor: TypeAlias = Callable[[ActionRequest, ToolDef], Awaitable[ActionResult]]


def inline_executor(*, timeout_seconds: float | None = None) -> Executor:
    """Make an executor that runs the tool in this process: async on the loop, sync in a thread.

    A body that takes longer than `timeout_seconds` is cancelled and the call fails (`timed_out`). A
    thread cannot be stopped, and a coroutine may ignore its cancellation: such a body may still be
    running, and the error says so. Use `subprocess_executor` where it must not.
    """
    if timeout_seconds is not None and not is_positive(timeout_seconds):
        raise ValueError(f"timeout_seconds is {timeout_seconds!r}; give None or a positive number.")

    async def execute(request: ActionRequest, tool: ToolDef) -> ActionResult:
        started = time.perf_counter()
        body = _start(tool.fn, call_arguments(request))
        try:
            await asyncio.wait({body}, timeout=timeout_seconds)
        except asyncio.CancelledError:
            body.cancel()
            await asyncio.wait({body}, timeout=timeout_seconds)
            raise
        elapsed = (time.perf_counter() - started) * 1000
        if not body.done():
            body.cancel()
            error = f"{tool.name} took longer than {timeout_seconds:g} s and may still be running"
            return ActionResult(False, error=error, code="timed_out", duration_ms=elapsed)
        return _result_of(body, elapsed)

    return execute


def call_arguments(request: ActionRequest) -> dict[str, Any]:
    """Give fresh plain arguments for the body.

    An opaque marker stands for a default that is no JSON value: the body has that itself.
    """
    found = {}
    for name, value in request.args.items():
        if type(value) in _SCALARS:
            found[name] = value
        elif not isinstance(value, OpaqueValue):
            found[name] = thaw(value)
    return found


def checked_result(value: object, elapsed: float) -> ActionResult:
    """Hold an executor to its contract: an `ActionResult` whose `ok` is a bool.

    A duration that is none gives way to `elapsed`: the body has run, and its result must not be
    lost for it.
    """
    if not isinstance(value, ActionResult) or not isinstance(value.ok, bool):
        text = f"the executor answered with a {type(value).__name__}, which is no ActionResult"
        return ActionResult(False, None, text, "executor_failed", elapsed)
    lasted: object = value.duration_ms
    # Of NaN no comparison is true.
    if isinstance(lasted, int | float) and 0 <= lasted < _LONGEST_MS:
        return value
    return replace(value, duration_ms=elapsed)


def _start(function: Callable[..., Any], args: Mapping[str, Any]) -> asyncio.Future[_Ended]:
    if is_async(function):
        return asyncio.ensure_future(_ended(function, args))
    return asyncio.wrap_future(_in_thread(function, args))


class _Ended:
    """How a body ended; a future cannot hold every exception (StopIteration) by itself."""

    __slots__ = ("error", "value")

    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self.value = value
        self.error = error


async def _ended(function: Callable[..., Any], args: Mapping[str, Any]) -> _Ended:
    try:
        return _Ended(await function(**args))
    except Exception as error:
        return _Ended(error=error)


def _in_thread(function: Callable[..., Any], args: Mapping[str, Any]) -> Future[_Ended]:
    """Run in a daemon thread of its own: one that hangs uses up no pool and delays no exit."""
    future: Future[_Ended] = Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(_Ended(context.run(function, **args)))
        except Exception as error:
            future.set_result(_Ended(error=error))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="adjudge-tool", daemon=True).start()
    return future


def _result_of(body: asyncio.Future[_Ended], elapsed: float) -> ActionResult:
    ended = body.result()
    if ended.error is None:
        return ActionResult(True, ended.value, duration_ms=elapsed)
    said = f"{type(ended.error).__name__}: {ended.error}"
    return ActionResult(False, error=said, code="tool_error", duration_ms=elapsed)
