"""Hands each event to every sink, in order and within a bounded time.

Each sink has a lane: one daemon thread that calls it, so that a sink that blocks holds up nobody
for longer than the stated time-out. A lane that is late is not waited for again until the sink has
answered in time; its events queue up to a bound and are then dropped, counted and logged. A
coroutine that a sink returns runs on the loop of the caller (async door) or on one loop thread
(sync door). A sink shared by several recorders is called from several threads. A `PromptSink` is
first asked in the caller's thread whether it can take the events without a wait.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
from _thread import allocate_lock
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError as FutureCancelled
from itertools import count
from queue import Empty, SimpleQueue
from time import monotonic

from adjudge._enforcement.flag import Flag
from adjudge._enforcement.loop import LoopThread, run_on, start_thread
from adjudge._types import AuditEvent
from adjudge.errors import RecordError

__all__ = ["DEFAULT_SINK_TIMEOUT", "Offer", "PromptSink", "Recorder", "Sink"]

Sink = Callable[[AuditEvent], Awaitable[None] | None]

DEFAULT_SINK_TIMEOUT = 5.0
_MAX_QUEUED = 1000
# The one that the sink is taking is not counted.
_MAX_WAITING = _MAX_QUEUED + 1
_IDLE_SECONDS = 2.0
_log = logging.getLogger("adjudge")


class Offer:
    """Events for one sink, which may take at once all of them or none; `taken` is its answer."""

    __slots__ = ("events", "jobs", "taken")

    def __init__(self, events: tuple[AuditEvent, ...]) -> None:
        self.events = events
        self.taken = False
        # What was made of them for the sink's lane, once it turned out that it is to take them.
        self.jobs: list[_Job] | None = None


class PromptSink(ABC):
    """A sink that can often take events without waiting for anybody, and knows when it can."""

    @abstractmethod
    def __call__(self, event: AuditEvent) -> Awaitable[None] | None:
        """Take an event, however long that takes."""

    @abstractmethod
    def take_at_once(self, offer: Offer) -> None:
        """Take the events in the caller's thread, if no wait can come of it.

        What it raises is a failure of the sink, unless it is an interrupt of the caller: then
        `taken` says whether the events are out.
        """


class _Job:
    """One event on its way to one sink."""

    __slots__ = ("_begun", "context", "done", "error", "event", "lane", "loop")

    def __init__(
        self, lane: _Lane, event: AuditEvent, loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        self.lane = lane
        self.event = event
        self.loop = loop
        self.context = contextvars.copy_context()
        self.done = Flag()
        self.error: BaseException | None = None
        self._begun = False

    def deliver(self) -> None:
        """Have the sink take the event, once: after an interrupt it may be queued twice."""
        if self._begun:
            return
        self._begun = True
        try:
            self.context.run(self._call)
        except (FutureCancelled, asyncio.CancelledError):
            # A sink's own cancellation must not look like the cancellation of the call.
            self.error = RuntimeError("the sink was cancelled")
        except BaseException as error:  # handed to whoever waits
            self.error = error
        self.done.hoist()

    def _call(self) -> None:
        answer: object = self.lane.sink(self.event)
        if getattr(answer, "already_done", False) is True or not inspect.isawaitable(answer):
            return
        run_on(self.loop(), answer, timeout_seconds=self.lane.timeout_seconds)


class _Work:
    """What waits for one sink in this process, and the thread that serves it while there is any.

    Callers add to the end of `jobs`, and the thread alone takes away: a job is among them until it
    is done. Nobody takes a lock that the thread needs.
    """

    __slots__ = ("_bell", "_serving", "after_fork", "jobs", "late", "pid")

    def __init__(self) -> None:
        self.jobs: deque[_Job] = deque()
        self.late = False
        self.pid = os.getpid()
        self.after_fork: dict[str, _Work] = {}
        self._bell: SimpleQueue[None] = SimpleQueue()
        # Taken by the thread that serves, and never waited for.
        self._serving = allocate_lock()

    def add(self, job: _Job) -> None:
        """Queue a job; raises `RuntimeError` if there can be no thread for it."""
        self.jobs.append(job)
        if not self._serving.locked():
            start_thread(self._serve, "adjudge-sink")
        # One that has rung already is heard after this.
        if self._bell.empty():
            self._bell.put(None)

    def _serve(self) -> None:
        while self._serving.acquire(blocking=False):
            try:
                while self.jobs or self._heard():
                    if self.jobs:
                        self._serve_first()
            finally:
                self._serving.release()
            # Whoever added one before that has left it to this thread.
            if not self.jobs:
                return

    def _heard(self) -> bool:
        """Wait for work, and say whether there may be some."""
        try:
            self._bell.get(timeout=_IDLE_SECONDS)
        except Empty:
            return False
        return True

    def _serve_first(self) -> None:
        job = self.jobs[0]
        job.deliver()
        self.late = isinstance(job.error, TimeoutError)
        self.jobs.popleft()


class _Lane:
    """One sink, and what is known of it."""

    def __init__(self, sink: Sink, *, required: bool, timeout_seconds: float) -> None:
        self.sink = sink
        self.required = required
        self.name = _name_of(sink)
        self.inline = getattr(sink, "never_blocks", False) is True
        self.prompt = sink if isinstance(sink, PromptSink) else None
        self.timeout_seconds = timeout_seconds
        # While the sink fails it has one entry; whoever puts that in or takes it out logs it.
        self.failing: dict[str, object] = {}
        self._work = _Work()
        self._dropped = count()

    def take(self, offer: Offer) -> Exception | None:
        """Have the sink take the events at once; `offer.taken` says whether it has.

        They do not overtake others: while any wait, or the sink is late, they are not even offered.
        """
        if self.prompt is None:
            return None
        work = self._work
        if work.jobs or work.late:
            return None
        try:
            self.prompt.take_at_once(offer)
        except Exception as error:
            return error
        return None

    def submit(self, job: _Job) -> Exception | None:
        """Queue the event; the answer says at once that nobody should wait for it, and why.

        Once more, as after an interrupt, it changes nothing.
        """
        if self.inline:
            job.deliver()
            return None
        work = self._here()
        idle = not work.jobs
        if len(work.jobs) >= _MAX_WAITING:
            next(self._dropped)
            return TimeoutError(f"more than {_MAX_QUEUED} events are waiting for it")
        try:
            work.add(job)
        except RuntimeError as error:  # no more threads, or the interpreter is ending
            return error
        # A required sink that is idle is tried again each time: it may have recovered.
        if work.late and not (self.required and idle):
            return TimeoutError("it has not caught up with earlier events")
        return None

    def _here(self) -> _Work:
        work = self._work
        if work.pid != os.getpid():
            # A child has no such thread; what was queued is the parent's. All go on with one.
            self._work = work = work.after_fork.setdefault("work", _Work())
        return work

    def outcome(self, job: _Job) -> BaseException | None:
        """Give what went wrong with the event, once nobody waits for it any longer."""
        work, late = self._work, not job.done.is_raised
        if late:
            work.late = True
            if not job.done.is_raised:
                return TimeoutError(f"it did not answer within {self.timeout_seconds:g} s")
            # The thread had said so before us, and has the last word.
            work.late = isinstance(job.error, TimeoutError)
        return job.error

    def settle(self, failure: BaseException | None) -> None:
        """Log a first failure and a recovery; raise where the sink is required."""
        if failure is not None and not isinstance(failure, Exception):
            raise failure
        if failure is None:
            if self.failing and self.failing.pop("since", None) is not None:
                dropped, self._dropped = self._dropped, count()
                _log.warning(
                    "The audit sink %s works again; it missed %d events.", self.name, next(dropped)
                )
            return
        said = f"{type(failure).__name__}: {failure}"
        mine = object()
        if self.failing.setdefault("since", mine) is mine:
            _log.error(
                "The audit sink %s failed: %s. More failures are not logged until it recovers.",
                self.name,
                said,
            )
        if self.required:
            raise RecordError(
                f"The required audit sink {self.name} did not take the event ({said}). "
                "Calls are denied until it does."
            ) from failure


_Handed = tuple[_Lane, _Job | None, Exception | None]
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
            _Lane(sink, required=required, timeout_seconds=timeout_seconds)
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
        door's. `offers` is an empty list. If an interrupt comes and there is anything in it, the
        events are on their way to every sink all the same; else they are to none.
        """
        left: list[_Handed] = []
        if offers is None:
            offers = []
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

    def _queue(self, lane: _Lane, offer: Offer, in_loop: bool) -> list[_Handed]:
        jobs = offer.jobs
        if jobs is None:
            on = self._loop
            if in_loop:
                loop = asyncio.get_running_loop()
                on = lambda: loop  # noqa: E731
            offer.jobs = jobs = [_Job(lane, event, on) for event in offer.events]
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


def _unfinished(left: list[_Handed]) -> list[_Job]:
    return [
        job
        for _, job, refusal in left
        if job is not None and refusal is None and not job.done.is_raised
    ]


def _name_of(sink: Sink) -> str:
    name = getattr(sink, "__qualname__", None)
    return name if isinstance(name, str) else str(getattr(sink, "name", type(sink).__name__))
