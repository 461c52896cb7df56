"""The kill switch: a latch that anybody may trip and that a guard reads before it runs anything.

It stops what has not begun; a body that runs is the caller's to cancel. It cannot be reset.
"""

from __future__ import annotations

import threading
from typing import Protocol, runtime_checkable

__all__ = ["CancelToken", "Cancelled"]


@runtime_checkable
class Cancelled(Protocol):
    """All that a guard reads of a kill switch: any object with these two will do."""

    @property
    def cancelled(self) -> bool:
        """Whether it was tripped."""

    @property
    def reason(self) -> str:
        """Why, in the words of whoever tripped it."""


class CancelToken:
    """A one-way latch, safe to trip from threads, tasks and signal handlers; the first holds."""

    __slots__ = ("_lock", "_reason")

    def __init__(self) -> None:
        # Reentrant: a signal handler may trip it while the same thread is doing so.
        self._lock = threading.RLock()
        self._reason: str | None = None

    def cancel(self, reason: str = "cancelled by the caller") -> None:
        """Trip it; once it is tripped this does nothing."""
        with self._lock:
            if self._reason is None:
                self._reason = reason

    @property
    def cancelled(self) -> bool:
        """Whether it was tripped."""
        return self._reason is not None

    @property
    def reason(self) -> str:
        """Why it was tripped; empty while it was not."""
        return self._reason or ""
