"""Hands each event to every sink, in order and within a bounded time.

Each sink has a lane, whose thread calls it. A coroutine that a sink returns runs on the loop of the
caller (async door) or on one loop thread (sync door). A sink shared by several recorders is called
from several threads. A `PromptSink` is first asked in the caller's thread whether it can take the
events without a wait. An exception out of a signal handler keeps an event from all sinks or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic

from adjudge._enforcement.loop import LoopThread
from adjudge._record.lanes import Job, Lane, Offer, PromptSink, Sink
from adjudge._types import AuditEvent

__all__ = ["DEFAULT_SINK_TIMEOUT", "Offer", "PromptSink", "Recorder", "Sink"]

DEFAULT_SINK_TIMEOUT = 5.0

_Handed = tuple[Lane, Job | None, Exception | None]
"""A sink, the event that it still has to take, and why nobody need wait for it."""


class Recorder:
    """Sends events to sinks.

    `timeout_seconds` bounds what one event can cost, over all sinks together. `loop` gives the
    event loop on which the sync door runs a sink's coroutines; without it the recorder has its own.
    """

    def __init__(
        self,
        sinks: Iterable[Sink] = (),
        *,
        timeout_seconds: float = DEFAULT_SINK_TIMEOUT,
        loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> None:
        if not timeout_seconds > 0:
            raise ValueError(
                f"timeout_seconds is {timeout_seconds!r}; give a positive number of seconds."
            )
        self.timeout_seconds = timeout_seconds
        self._loop = loop if loop is not None else LoopThread().loop
        self._lanes = tuple(
            Lane(sink, required=required, timeout_seconds=timeout_seconds)
            for sink, required in _flattened(sinks)
        )

    @property
    def has_required(self) -> bool:
        """Whether any sink must take an event before a body may run."""
        return any(lane.required for lane in self._lanes)

    @property
    def takes_several(self) -> bool:
        """Whether handing over several events together is worth it, and changes nothing else."""
        return all(lane.prompt is not None for lane in self._lanes)

    def hand_over(
        self,
        events: tuple[AuditEvent, ...],
        offers: list[Offer] | None = None,
        *,
        in_loop: bool,
    ) -> list[_Handed]:
        """Give the events to every sink; the answer is what is left to be waited for or said.

        A sink's coroutines run on the running loop where the caller is in one, else on the sync
        door's. `offers` is the caller's, and empty at first. If an interrupt comes and it is of
        these events, they are on their way to every sink all the same; else they are to none.
        Handing over the same events again does nothing where they are.
        """
        left: list[_Handed] = []
        if offers is None:
            offers = []
        elif offers:
            if offers[0].events is events:
                return left
            offers.clear()
        try:
            for lane in self._lanes:
                offer = Offer(events)
                offers.append(offer)
                failure = lane.take(offer)
                if failure is not None or (offer.taken and lane.failing):
                    left.append((lane, None, failure))
                elif not offer.taken:
                    left += self._queue(lane, offer, in_loop)
                # Python 3.12 has a jump back that ends a condition outside of the `try`.
                failure = None
        except BaseException:
            self._hand_over_rest(events, offers, in_loop)
            raise
        return left

    def _hand_over_rest(
        self, events: tuple[AuditEvent, ...], offers: list[Offer], in_loop: bool
    ) -> None:
        """Send the events on their way to every sink that has not taken them."""
        for place, lane in enumerate(self._lanes):
            if place == len(offers):
                offers.append(Offer(events))
            if not offers[place].taken:
                self._queue(lane, offers[place], in_loop)

    def _queue(self, lane: Lane, offer: Offer, in_loop: bool) -> list[_Handed]:
        jobs = offer.jobs
        if jobs is None:
            on = self._loop
            if in_loop:
                loop = asyncio.get_running_loop()
                on = lambda: loop  # noqa: E731
            offer.jobs = jobs = [Job(lane, event, on) for event in offer.events]
        return [(lane, job, lane.submit(job)) for job in jobs]

    async def emit(self, *events: AuditEvent) -> None:
        """Hand events to every sink; a required one that does not take them: `RecordError`."""
        left = self.hand_over(events, in_loop=True)
        if left:
            await self.settle(left)

    def emit_sync(self, *events: AuditEvent) -> None:
        """Do what `emit` does, for callers without an event loop."""
        left = self.hand_over(events, in_loop=False)
        if left:
            self.settle_sync(left)

    async def settle(self, left: list[_Handed]) -> None:
        """Wait for what was handed over; a required sink that did not take it: `RecordError`."""
        waiting = [job.done.future() for job in _unfinished(left)]
        if waiting:
            try:
                await asyncio.wait(waiting, timeout=self.timeout_seconds)
            finally:
                for future in waiting:
                    future.cancel()
        self._settle(left)

    def settle_sync(self, left: list[_Handed]) -> None:
        """Do what `settle` does, for callers without an event loop."""
        end = monotonic() + self.timeout_seconds
        for job in _unfinished(left):
            job.done.wait(end - monotonic())
        self._settle(left)

    def _settle(self, left: list[_Handed]) -> None:
        """Every sink is looked at before the first required failure is raised."""
        first: BaseException | None = None
        for lane, job, failure in left:
            try:
                lane.settle(lane.outcome(job) if job is not None and failure is None else failure)
            except BaseException as error:
                if first is None or not isinstance(error, Exception):
                    first = error
        if first is not None:
            raise first


def _flattened(sinks: Iterable[Sink], required: bool = False) -> Iterable[tuple[Sink, bool]]:
    for sink in sinks:
        if not callable(sink):
            raise TypeError(f"{sink!r} is no sink; give a callable that takes one AuditEvent.")
        needed = required or getattr(sink, "required", False) is True
        inner = getattr(sink, "wrapped_sinks", None)
        if inner is None:
            yield sink, needed
        else:
            yield from _flattened(inner, required=getattr(sink, "requires_all", False) or required)


def _unfinished(left: list[_Handed]) -> list[Job]:
    return [
        job
        for _, job, refusal in left
        if job is not None and refusal is None and not job.done.is_raised
    ]
