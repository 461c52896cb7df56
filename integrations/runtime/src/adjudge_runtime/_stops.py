"""Why a run ends before its answer: one exception that never leaves this package.

A `Stop` becomes the `code` and `error` of a `RunResult`. A `Halt` is what the loop of an agent and
those of the agents inside of its tools have in common: once one of them may not go on, none may.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Halt", "Stop", "Suspended", "alone", "said"]


class Stop(Exception):
    """The run ends here, without an answer; `code` is that of the `RunResult`."""

    def __init__(self, code: str, error: str, **about: object) -> None:
        super().__init__(error)
        self.code = code
        self.error = error
        self.about = about


class Suspended(BaseException):
    """A nested agent waits for a person; by this the loop leaves the body that asked it.

    No tool may take it for a failure of its own, so it is no `Exception`.
    """


class Halt:
    """Whether a run was stopped for good while calls of it were under way."""

    __slots__ = ("stop",)

    def __init__(self) -> None:
        self.stop: Stop | None = None

    def set(self, stop: Stop) -> Stop:
        """Stop the run, if nothing stopped it before, and give what stopped it."""
        if self.stop is None:
            self.stop = stop
        return self.stop


@contextmanager
def alone() -> Iterator[None]:
    """Raise what came out of one of several tasks as it would be raised were that one alone."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def said(error: BaseException) -> str:
    """Name an exception's type and what it says."""
    try:
        text = str(error)
    except Exception:
        # An exception that cannot say what it is must not take the place of another.
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
