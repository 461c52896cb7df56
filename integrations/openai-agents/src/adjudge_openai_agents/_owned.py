"""Functions of a `ToolSet` behind the SDK's tools: they run with the very values that were judged.

The SDK validates a call's text by itself, after it was judged, and a validator need not answer
twice alike. Where the function is ours, what the SDK made of the text is left aside (law 5).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from adjudge import GovernError
from adjudge.integration import is_async

__all__ = ["CallValues", "judged_values", "runs_what_was_judged"]


class CallValues(NamedTuple):
    """What a function is called with; `takes_context`: after the SDK's own first argument."""

    args: list[Any]
    kwargs: dict[str, Any]
    takes_context: bool


# One call's values on their way past the SDK's invoker; it keeps the context, in threads too.
_JUDGED: ContextVar[CallValues | None] = ContextVar("adjudge_judged_values", default=None)


@contextmanager
def judged_values(values: CallValues | None) -> Iterator[None]:
    """Say which values the function of this call gets; None where nothing was judged."""
    token = _JUDGED.set(values)
    try:
        yield
    finally:
        _JUDGED.reset(token)


def runs_what_was_judged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function with the same parameters that takes its values from the judgment alone."""
    target: Any = function
    if not inspect.isroutine(function) and not isinstance(function, functools.partial):
        target = target.__call__

    if is_async(target):

        @functools.wraps(target)
        async def run(*sdk: Any, **_: Any) -> Any:
            args, kwargs = _judged(sdk)
            return await target(*args, **kwargs)
    else:

        @functools.wraps(target)
        def run(*sdk: Any, **_: Any) -> Any:
            args, kwargs = _judged(sdk)
            return target(*args, **kwargs)

    return run


def _judged(sdk: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
    values = _JUDGED.get()
    if values is None:
        raise GovernError("The SDK ran a call that was never judged; its function stays closed.")
    return [*sdk[: values.takes_context], *values.args], values.kwargs
