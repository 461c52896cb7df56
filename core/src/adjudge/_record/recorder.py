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
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures

from adjudge._enforcement.loop import LoopThread, run_on
from adjudge._types import AuditEvent
from adjudge.errors import RecordError

__all__ = ["DEFAULT_SINK_TIMEOUT", "Offer", "PromptSink", "Recorder", "Sink"]

Sink = Callable[[AuditEvent], Awaitable[None] | None]

DEFAULT_SINK_TIMEOUT = 5.0
_MAX_QUEUED = 1000
_IDLE_SECONDS = 2.0
_log = logging.getLogger("adjudge")


class Offer:
    """Events that a sink may take at once, all of them or none; `taken` is its answer."""

    __slots__ = ("events", "taken")

    def __init__(self, events: tuple[AuditEvent, ...]) -> None:
        self.events = events
        self.taken = False


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

    __slots__ = ("context", "event", "future", "loop")

    def __init__(self, event: AuditEvent, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.event = event
        self.loop = loop
        self.context = contextvars.copy_context()
        self.future: Future[None] = Future()
        # A running future cannot be cancelled by a waiter that gives up: the event still arrives.
        self.future.set_running_or_notify_cancel()


class _Lane:
    """One sink, its queue, and the thread that serves it while there is work."""

    def __init__(self, sink: Sink, *, required: bool, timeout_seconds: float) -> None:
        self.sink = sink
        self.required = required
        self.name = _name_of(sink)
        self.inline = getattr(sink, "never_blocks", False) is True
        self.prompt = sink if isinstance(sink, PromptSink) else None
        self._timeout = timeout_seconds
        self._jobs: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._pid = os.getpid()
        self._served = self._busy = False
        self.failing = False
        self._late = False
        self._dropped = 0

    def take(self, offer: Offer) -> Exception | None:
        """Have the sink take the events at once; `offer.taken` says whether it has.

        They do not overtake others: while any wait, or the sink is late, they are not even offered.
        """
        offer.taken = False
        if self.prompt is None:
            return None
        # Without the lock, which a forked child could not trust: what is queued is seen in `_jobs`,
        # or after that as `_busy`.
        if self._jobs or self._busy or self._late:
            return None
        try:
            self.prompt.take_at_once(offer)
        except Exception as error:
            return error
        return None

    def submit(self, job: _Job) -> Exception | None:
        """Queue the event; the answer says at once that nobody should wait for it, and why."""
        if self.inline:
            self._deliver(job)
            return None
        if self._pid != os.getpid():
            self._after_fork()
        with self._wake:
            if len(self._jobs) >= _MAX_QUEUED:
                self._dropped += 1
                return TimeoutError(f"more than {_MAX_QUEUED} events are waiting for it")
            # A required sink that is idle is tried again each time: it may have recovered.
            behind = self._late and not (self.required and not self._busy and not self._jobs)
            self._jobs.append(job)
            if not self._served:
                try:
                    threading.Thread(target=self._serve, name="adjudge-sink", daemon=True).start()
                except RuntimeError as error:  # no more threads, or the interpreter is ending
                    self._jobs.pop()
                    return error
                self._served = True
            self._wake.notify()
        return TimeoutError("it has not caught up with earlier events") if behind else None

    def _after_fork(self) -> None:
        # A child has no such thread, and no lock to trust; what was queued is the parent's.
        self._wake = threading.Condition()
        self._jobs = deque()
        self._served = self._busy = self._late = False
        self._pid = os.getpid()

    def _serve(self) -> None:
        while True:
            with self._wake:
                if not self._jobs:
                    self._wake.wait(_IDLE_SECONDS)
                if not self._jobs:
                    self._served = False
                    return
                self._busy = True
                job = self._jobs.popleft()
            self._deliver(job)
            with self._wake:
                self._busy = False
                self._late = isinstance(job.future.exception(), TimeoutError)
            del job  # While the thread is idle it must not keep a loop or a context alive.

    def _deliver(self, job: _Job) -> None:
        try:
            job.context.run(self._call, job)
        except (FutureCancelled, asyncio.CancelledError):
            # A sink's own cancellation must not look like the cancellation of the call.
            job.future.set_exception(RuntimeError("the sink was cancelled"))
        except BaseException as error:  # handed to whoever waits
            job.future.set_exception(error)
        else:
            job.future.set_result(None)

    def _call(self, job: _Job) -> None:
        answer: object = self.sink(job.event)
        if getattr(answer, "already_done", False) is True or not inspect.isawaitable(answer):
            return
        run_on(job.loop(), answer, timeout_seconds=self._timeout)

    def outcome(self, job: _Job) -> BaseException | None:
        """Give what went wrong with the event, once nobody waits for it any longer."""
        with self._wake:
            if job.future.done():
                return job.future.exception()
            self._late = True
        return TimeoutError(f"it did not answer within {self._timeout:g} s")

    def settle(self, failure: BaseException | None) -> None:
        """Log a first failure and a recovery; raise where the sink is required."""
        if failure is not None and not isinstance(failure, Exception):
            raise failure
        if self._pid != os.getpid():
            self._after_fork()
        with self._wake:
            changed = self.failing is (failure is None)
            self.failing = failure is not None
            dropped = self._dropped
            if failure is None:
                self._dropped = 0
        if failure is None:
            if changed:
                _log.warning(
                    "The audit sink %s works again; it missed %d events.", self.name, dropped
                )
            return
        said = f"{type(failure).__name__}: {failure}"
        if changed:
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
        *,
        in_loop: bool,
    ) -> list[_Handed]:
        """Give the events to every sink; the answer is what is left to be waited for or said.

        A sink's coroutines run on the running loop where the caller is in one, else on the sync
        door's.
        """
        left: list[_Handed] = []
        offer = Offer(events)
        for place, lane in enumerate(self._lanes):
            try:
                failure = lane.take(offer)
            except BaseException:
                # An interrupt is the caller's: the events arrive all the same.
                for late in self._lanes[place + offer.taken :]:
                    self._queue(late, events, in_loop)
                raise
            if failure is not None or (offer.taken and lane.failing):
                left.append((lane, None, failure))
            elif not offer.taken:
                left += self._queue(lane, events, in_loop)
        return left

    def _queue(
        self,
        lane: _Lane,
        events: tuple[AuditEvent, ...],
        in_loop: bool,
    ) -> list[_Handed]:
        on = self._loop
        if in_loop:
            loop = asyncio.get_running_loop()
            on = lambda: loop  # noqa: E731
        jobs = [_Job(event, on) for event in events]
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
        waiting = [
            asyncio.wrap_future(job.future)
            for _, job, refusal in left
            if job is not None and refusal is None and not job.future.done()
        ]
        if waiting:
            try:
                await asyncio.wait(waiting, timeout=self.timeout_seconds)
            finally:
                for future in waiting:
                    _abandon(future)
        self._settle(left)

    def settle_sync(self, left: list[_Handed]) -> None:
        """Do what `settle` does, for callers without an event loop."""
        waiting = [
            job.future
            for _, job, refusal in left
            if job is not None and refusal is None and not job.future.done()
        ]
        if waiting:
            wait_for_futures(waiting, timeout=self.timeout_seconds)
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


def _abandon(future: asyncio.Future[None]) -> None:
    """Let a late answer fall, without a complaint about an exception that nobody fetched."""
    if future.done():
        if not future.cancelled():
            future.exception()
    else:
        future.cancel()


def _name_of(sink: Sink) -> str:
    name = getattr(sink, "__qualname__", None)
    return name if isinstance(name, str) else str(getattr(sink, "name", type(sink).__name__))
