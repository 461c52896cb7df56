"""A bar on standard error while a large policy is compiled, or anything else takes its time.

rich draws it (extra `cli`). Without rich, and where standard error is no terminal, nothing is
written. Most policies are compiled before anybody would see a bar, and for them rich is not even
imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from adjudge._enforcement.approvals import escaped

__all__ = ["progress_of"]

_PATIENCE = 0.5


@contextmanager
def progress_of(
    name: str, *, doing: str = "compiling"
) -> Iterator[Callable[[int, int], None] | None]:
    """Give what to tell how much is done; a bar for it is shown once half a second has passed."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(f"{doing} {escaped(name)}")
    try:
        yield bar.tell
    finally:
        bar.close()


class _Bar:
    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._drawn: Any = None
        self._task: Any = None
        self._impossible = False

    def tell(self, done: int, of: int) -> None:
        """Draw how much is done."""
        if self._impossible or time.monotonic() - self._begun < _PATIENCE:
            return
        if self._drawn is None and not self._start(of):
            return
        self._drawn.update(self._task, completed=done, total=of)

    def _start(self, of: int) -> bool:
        try:
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import Progress
        except ImportError:
            self._impossible = True
            return False
        self._drawn = Progress(console=Console(stderr=True), transient=True)
        self._task = self._drawn.add_task(escape(self._what), total=of)
        self._drawn.start()
        return True

    def close(self) -> None:
        """Take the bar away again."""
        if self._drawn is not None:
            self._drawn.stop()
