"""A lock among the threads of one process, which a forked child has anew.

Whoever held it when the child was forked is not there to let it go.
"""

from __future__ import annotations

import os
from _thread import LockType, allocate_lock

__all__ = ["LockOfProcess"]


class LockOfProcess:
    """Gives the lock of this process; take it in a `with` of its own: `with lock.here():`."""

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest = _Lock()

    def here(self) -> LockType:
        """Give the lock of this process."""
        latest = self._latest
        if latest.pid != os.getpid():
            # All threads of the child go on with one.
            self._latest = latest = latest.after_fork.setdefault("lock", _Lock())
        return latest.lock


class _Lock:
    __slots__ = ("after_fork", "lock", "pid")

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.pid = os.getpid()
        self.after_fork: dict[str, _Lock] = {}
