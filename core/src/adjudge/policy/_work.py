"""What lasts as long as one policy is being read and compiled: its patterns, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from adjudge.policy._patterns.shared import Patterns

__all__ = ["Progress", "Stage", "Work"]

Progress = Callable[[int, int], None]
"""Is told how much is done, of how much in all."""

Stage = tuple[int, int]
"""From where to where a stage leads, in thousandths of the whole."""

_WHOLE = 1000
_Item = TypeVar("_Item")


class Work:
    """The compiling of one policy.

    Without `progress` nobody is told anything, and it costs nothing; what it raises ends the
    compiling.
    """

    PARSING: Stage = (0, 450)
    READING: Stage = (450, 700)
    DIGESTING: Stage = (700, 800)
    COMPILING: Stage = (800, 1000)

    def __init__(self, progress: Progress | None = None) -> None:
        self.patterns = Patterns()
        self._progress = progress
        self._told = -1

    def over(self, items: Sequence[_Item], stage: Stage) -> Iterable[_Item]:
        """Give the items one by one, telling how far in the stage they are."""
        return items if self._progress is None else self._told_over(items, stage)

    def _told_over(self, items: Sequence[_Item], stage: Stage) -> Iterable[_Item]:
        for index, item in enumerate(items):
            self.reached(index, len(items), stage)
            yield item
        self.reached(1, 1, stage)

    def through(self, length: int, stage: Stage) -> Callable[[int], None] | None:
        """Give what is to be told where in a text of this length a stage is; None for nobody."""
        if self._progress is None:
            return None
        return lambda position: self.reached(position, length, stage)

    def reached(self, done: int, of: int, stage: Stage) -> None:
        """Tell that so much of a stage is done, once for each thousandth of the whole."""
        if self._progress is None:
            return
        start, end = stage
        now = start + (end - start) * done // max(of, 1)
        if now > self._told:
            self._told = now
            self._progress(now, _WHOLE)
