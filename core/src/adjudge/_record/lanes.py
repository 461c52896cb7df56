"""The lane of one sink: its queue, and the thread that has the sink take what waits there.

A sink that blocks holds up its lane, and nobody else for longer than the stated time-out. A lane
that is late is not waited for again until the sink has answered in time; its events queue up to a
bound and are then dropped, counted and logged. Callers take no lock that the thread needs, so an
exception out of a signal handler, wherever it comes, costs no later event.
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
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError as FutureCancelled
from itertools import count
from queue import Empty, SimpleQueue

from adjudge._enforcement.flag import Flag
from adjudge._enforcement.loop import run_on, start_thread
from adjudge._types import AuditEvent
from adjudge.errors import RecordError

__all__ = ["Job", "Lane", "Offer", "PromptSink", "Sink"]

Sink = Callable[[AuditEvent], Awaitable[None] | None]

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
        self.jobs: list[Job] | None = None


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


class Job:
    """One event on its way to one sink."""

    __slots__ = ("_begun", "context", "done", "error", "event", "lane", "loop")

    def __init__(
        self, lane: Lane, event: AuditEvent, loop: Callable[[], asyncio.AbstractEventLoop]
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
        self.jobs: deque[Job] = deque()
        self.late = False
        self.pid = os.getpid()
        self.after_fork: dict[str, _Work] = {}
        self._bell: SimpleQueue[None] = SimpleQueue()
        # Taken by the thread that serves, and never waited for.
        self._serving = allocate_lock()

    def add(self, job: Job) -> None:
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


class Lane:
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

    def submit(self, job: Job) -> Exception | None:
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

    def outcome(self, job: Job) -> BaseException | None:
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


def _name_of(sink: Sink) -> str:
    name = getattr(sink, "__qualname__", None)
    return name if isinstance(name, str) else str(getattr(sink, "name", type(sink).__name__))
