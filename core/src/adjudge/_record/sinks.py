"""The sinks that come with Adjudge: where the events of the record go.

A sink is any callable, sync or async, that takes one `AuditEvent`; what it raises never changes an
outcome unless it is marked required. Those made here are plain callables whose answer may be
awaited too, and safe to share between threads. Redaction happens before any of them sees an event.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable
from pathlib import Path
from typing import Any, TextIO

from adjudge._record.forklock import LockOfProcess
from adjudge._record.format import EventTexts, event_to_record, record_line
from adjudge._record.keptfile import KeptFile, append, write_all
from adjudge._record.recorder import DEFAULT_SINK_TIMEOUT, Offer, PromptSink, Recorder, Sink
from adjudge._types import AuditEvent

__all__ = [
    "DEFAULT_SINK_TIMEOUT",
    "Recorder",
    "Sink",
    "callback_sink",
    "jsonl_sink",
    "multi_sink",
    "noop_sink",
    "required_sink",
    "stdout_sink",
]


class Done:
    """An answer that is there already; awaiting it costs nothing."""

    __slots__ = ()
    already_done = True

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


DONE = Done()


class _Noop(PromptSink):
    name = "noop_sink"

    def __call__(self, event: AuditEvent) -> Done:
        return DONE

    def take_at_once(self, offer: Offer) -> None:
        offer.taken = True


def noop_sink() -> Callable[[AuditEvent], Done]:
    """Make a sink that drops every event."""
    return _Noop()


def stdout_sink(*, stream: TextIO | None = None) -> Callable[[AuditEvent], Done]:
    """Make a sink that prints a readable line for each event, to standard output or `stream`."""
    lock = LockOfProcess()

    def write(event: AuditEvent) -> Done:
        record = event_to_record(event)
        line = (
            f"{record['timestamp']} #{event.seq} {event.kind} "
            f"[{event.correlation_id}] {record_line(record['body'])}\n"
        )
        target = sys.stdout if stream is None else stream
        with lock.here():
            target.write(line)
            target.flush()
        return DONE

    write.__qualname__ = "stdout_sink"
    return write


def jsonl_sink(target: str | os.PathLike[str] | TextIO) -> Callable[[AuditEvent], Done]:
    """Make a sink that writes each event as one line of canonical JSON, flushed at once.

    `target` is a path (created, appended to) or an open text file, which stays the caller's to
    close. Lines of several threads never mix; where several processes write to one path, use
    `hash_chained_sink`. Raises `TypeError` for what is neither.
    """
    if not isinstance(target, str | os.PathLike) and not hasattr(target, "write"):
        raise TypeError(f"{target!r} is no path and no open file; give one, such as 'audit.jsonl'.")
    if isinstance(target, str | os.PathLike):
        return _JsonlFile(target)
    lock = LockOfProcess()
    texts = EventTexts()

    def write(event: AuditEvent) -> Done:
        line = texts.text(event) + "\n"
        with lock.here():
            target.write(line)
            target.flush()
        return DONE

    write.__qualname__ = "jsonl_sink"
    return write


class _JsonlFile(PromptSink):
    name = "jsonl_sink"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._kept = KeptFile(path)
        self._lock = LockOfProcess()
        self._texts = EventTexts()

    def __call__(self, event: AuditEvent) -> Done:
        data = self._lines((event,))
        with self._lock.here(), self._path.open("ab", buffering=0) as file:
            write_all(file.fileno(), data)
        return DONE

    def take_at_once(self, offer: Offer) -> None:
        data = self._lines(offer.events)
        with self._kept.lock:
            status = self._kept.ready(lock=False)
            if status is None:
                return
            append(self._kept.fd, data, status.st_size, offer)

    def _lines(self, events: Iterable[AuditEvent]) -> bytes:
        return "".join([self._texts.text(event) + "\n" for event in events]).encode("ascii")


def callback_sink(function: Sink) -> Sink:
    """Make a sink of any callable that takes one event, sync or async."""
    if not callable(function):
        raise TypeError(f"{function!r} cannot be called; give a function that takes one event.")
    return _Wrapped((function,), requires_all=False)


def multi_sink(*sinks: Sink) -> Sink:
    """Make one sink of several: each gets every event, and a required one stays required."""
    return _Wrapped(sinks, requires_all=False)


def required_sink(sink: Sink) -> Sink:
    """Mark a sink as required: a call whose decision it does not take is denied."""
    return _Wrapped((sink,), requires_all=True)


class _Wrapped:
    """Sinks within a sink; a `Recorder` looks inside and gives each its own lane.

    Called directly, it gives a coroutine that calls each in turn and then raises the first failure.
    """

    def __init__(self, sinks: tuple[Sink, ...], *, requires_all: bool) -> None:
        for sink in sinks:
            if not callable(sink):
                raise TypeError(f"{sink!r} is no sink; give a callable that takes one AuditEvent.")
        self.wrapped_sinks = sinks
        self.requires_all = requires_all

    @property
    def required(self) -> bool:
        """Whether any sink inside must take every event."""
        return self.requires_all or any(
            getattr(sink, "required", False) is True for sink in self.wrapped_sinks
        )

    def __call__(self, event: AuditEvent) -> Awaitable[None]:
        return self._send(event)

    async def _send(self, event: AuditEvent) -> None:
        first: Exception | None = None
        for sink in self.wrapped_sinks:
            try:
                answer = sink(event)
                if answer is not None:
                    await answer
            except Exception as error:
                first = first if first is not None else error
        if first is not None:
            raise first
