"""How the contracts of stores have many at once do the same: threads, and processes.

Every thread has an event loop of its own, as the workers of a run have.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from adjudge_conformance._rivals import Rival

__all__ = ["contend_in_processes", "contend_in_threads", "finish"]

_Given = TypeVar("_Given")


def finish(work: Coroutine[Any, Any, _Given]) -> _Given:
    """Run what a store's method gives to its end, in an event loop of its own."""
    return asyncio.run(work)


def contend_in_threads(
    attempts: Sequence[Callable[[int], Coroutine[Any, Any, bool]]], rounds: int
) -> list[tuple[int, int]]:
    """Have each attempt made at once with the others in every round; give (round, who) that won."""
    start = threading.Barrier(len(attempts))
    won: list[tuple[int, int]] = []
    failed: list[BaseException] = []

    async def take_part(who: int) -> None:
        for number in range(rounds):
            start.wait(60)
            if await attempts[who](number):
                won.append((number, who))

    def run(who: int) -> None:
        try:
            asyncio.run(take_part(who))
        except BaseException as error:
            failed.append(error)
            start.abort()

    threads = [threading.Thread(target=run, args=(who,)) for who in range(len(attempts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise next(e for e in failed if not isinstance(e, threading.BrokenBarrierError))
    return sorted(won)


def contend_in_processes(
    contract: type, place: str, *, processes: int, step: str, rounds: int
) -> list[tuple[int, str]]:
    """Have processes that share nothing but the store try a step at once, round after round."""
    rivals = [Rival(contract, place, f"p{number}") for number in range(processes)]
    won: list[tuple[int, str]] = []
    with ExitStack() as stack:
        for rival in rivals:
            stack.enter_context(rival)
        for number in range(rounds):
            for rival in rivals:
                rival.tell(step, str(number))
            # Each is heard, whoever has won, before the next round begins.
            winners = [rival.name for rival in rivals if rival.won()]
            won += [(number, name) for name in winners]
    return won
