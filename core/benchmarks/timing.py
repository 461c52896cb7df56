"""Time several calls side by side, so that what else the machine does falls on all of them alike.

A median over many short batches, the calls taking turns, and of processor time: a busy machine
does not count against what takes longer.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Timing", "quiet_collector", "side_by_side"]

_CALLS = 20_000
_BATCH = 100
_SLOW = 1e-3
_SLOW_SECONDS = 1.0
_FEWEST_SLOW = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """The median time of a call, in microseconds, and how many calls it is the median of."""

    microseconds: float
    calls: int


def side_by_side(candidates: Mapping[str, Callable[[], object]]) -> dict[str, Timing]:
    """Time each call 20,000 times, one that takes over a millisecond for one second."""
    plans = {name: _plan(call) for name, call in candidates.items()}
    rounds = max(batches for _, batches in plans.values())
    means: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds):
        for name, call in candidates.items():
            size, batches = plans[name]
            # One with fewer batches has them spread over all rounds.
            if turn * batches // rounds != (turn + 1) * batches // rounds:
                means[name].append(_batch(call, size) / size)
    return {
        name: Timing(statistics.median(found) * 1e6, plans[name][0] * len(found))
        for name, found in means.items()
    }


def _plan(call: Callable[[], object]) -> tuple[int, int]:
    """Give the size and the number of the batches of a call."""
    call()
    seconds = min(_batch(call, 1) for _ in range(3))
    if seconds <= _SLOW:
        return _BATCH, _CALLS // _BATCH
    return 1, max(_FEWEST_SLOW, int(_SLOW_SECONDS / seconds))


def _batch(call: Callable[[], object], times: int) -> float:
    turns = range(times)
    begin = time.process_time()
    for _ in turns:
        call()
    return time.process_time() - begin


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep what is there now from being looked through while something is timed."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
