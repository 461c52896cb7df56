"""The recorder: every sink gets every event in a bounded time, and only a required one matters."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import os
import threading
import time
import weakref

import pytest

from adjudge._enforcement.loop import LoopThread, run_on
from adjudge._record.recorder import Recorder
from adjudge._record.sinks import multi_sink, noop_sink, required_sink
from adjudge.errors import RecordError

SHORT = 0.15


class Gate:
    """A sink that blocks its thread while the gate is shut."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.gate = threading.Event()

    def __call__(self, event):
        """Take an event, once the gate is open."""
        self.gate.wait(10)
        self.seen.append(event.seq)


@pytest.fixture(params=["async", "sync"])
def emit(request):
    """Emit through each of the two doors."""

    async def through(recorder, event):
        if request.param == "async":
            await recorder.emit(event)
        else:
            await asyncio.to_thread(recorder.emit_sync, event)

    return through


async def test_each_sink_gets_each_event_in_order(emit, event):
    """Sync and async sinks alike see the events in the order in which they were emitted."""
    plain, coroutine = [], []

    async def later(item):
        await asyncio.sleep(0)
        coroutine.append(item.seq)

    recorder = Recorder([lambda item: plain.append(item.seq), later])
    for seq in range(20):
        await emit(recorder, event(seq))

    assert list(range(20)) == plain
    assert list(range(20)) == coroutine


async def test_an_optional_failure_changes_nothing_and_is_logged_once(emit, event, caplog):
    """An optional sink that raises is logged the first time, and its neighbours get the event."""
    seen = []

    def broken(item):
        raise OSError("disk full")

    recorder = Recorder([broken, lambda item: seen.append(item.seq)])
    for seq in range(3):
        await emit(recorder, event(seq))

    assert [0, 1, 2] == seen
    assert [logging.ERROR] == [line.levelno for line in caplog.records]
    assert "disk full" in caplog.text


async def test_a_recovery_is_logged_and_a_second_failure_again(emit, event, caplog):
    """A sink that works again says so; a later failure is a new one."""
    answers = iter([OSError("first"), None, OSError("second")])

    def flaky(item):
        answer = next(answers)
        if answer is not None:
            raise answer

    recorder = Recorder([flaky])
    for seq in range(3):
        await emit(recorder, event(seq))

    assert [logging.ERROR, logging.WARNING, logging.ERROR] == [
        line.levelno for line in caplog.records
    ]


async def test_a_required_failure_raises_after_every_sink_had_the_event(emit, event):
    """Law 4: a required sink's failure is a RecordError, and starves nobody."""
    seen = []

    @required_sink
    def broken(item):
        raise OSError("disk full")

    recorder = Recorder([broken, lambda item: seen.append(item.seq)])
    with pytest.raises(RecordError) as caught:
        await emit(recorder, event(7))

    assert "record" == caught.value.code
    assert isinstance(caught.value.__cause__, OSError)
    assert [7] == seen


async def test_a_required_sink_inside_a_multi_sink_stays_required(emit, event):
    """multi_sink hides no required sink, and gives the others their events."""
    seen = []

    def broken(item):
        raise OSError("disk full")

    sink = multi_sink(required_sink(broken), lambda item: seen.append(item.seq))
    recorder = Recorder([sink])
    with pytest.raises(RecordError):
        await emit(recorder, event(7))

    assert recorder.has_required
    assert [7] == seen


async def test_a_multi_sink_does_not_make_its_other_sinks_required(emit, event):
    """In a multi_sink with a required sink an optional neighbour stays optional."""

    def broken(item):
        raise OSError("disk full")

    await emit(Recorder([multi_sink(required_sink(noop_sink()), broken)]), event())


async def test_required_around_a_multi_sink_holds_for_all_of_it(emit, event):
    """required_sink(multi_sink(...)) requires each of them."""

    def broken(item):
        raise OSError("disk full")

    with pytest.raises(RecordError):
        await emit(Recorder([required_sink(multi_sink(noop_sink(), broken))]), event())


async def test_a_blocking_sync_sink_is_bounded_and_then_not_waited_for(emit, event):
    """A sync sink that hangs costs one time-out, not one for each event, and loses nothing."""
    gate = Gate()
    recorder = Recorder([gate], timeout_seconds=SHORT)
    started = time.monotonic()
    for seq in range(20):
        await emit(recorder, event(seq))
    elapsed = time.monotonic() - started
    gate.gate.set()
    while len(gate.seen) < 20:
        await asyncio.sleep(0.01)

    assert SHORT <= elapsed < 10 * SHORT
    assert list(range(20)) == gate.seen


async def test_a_hanging_async_sink_is_bounded_and_cancelled(emit, event):
    """An async sink that hangs is cancelled at the time-out and costs no more than that."""
    cancelled = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hanging(item):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(cancelled.set)
            raise

    recorder = Recorder([hanging], timeout_seconds=SHORT)
    started = time.monotonic()
    await emit(recorder, event())

    assert SHORT <= time.monotonic() - started < 10 * SHORT
    await asyncio.wait_for(cancelled.wait(), 5)


async def test_an_async_sink_that_ignores_its_cancellation_is_bounded_too(event):
    """A coroutine that swallows cancellation cannot hold the emitter."""
    release = asyncio.Event()

    async def stubborn(item):
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    recorder = Recorder([stubborn], timeout_seconds=SHORT)
    started = time.monotonic()
    await recorder.emit(event())
    elapsed = time.monotonic() - started
    release.set()

    assert elapsed < 10 * SHORT


async def test_a_required_sink_that_hangs_refuses_and_recovers(emit, event):
    """A required sink that is late refuses events until it answers again; none of them is lost."""
    gate = Gate()
    recorder = Recorder([required_sink(gate)], timeout_seconds=SHORT)
    refused = 0
    for seq in range(3):
        try:
            await emit(recorder, event(seq))
        except RecordError:
            refused += 1
    gate.gate.set()
    while len(gate.seen) < 3:
        await asyncio.sleep(0.01)
    await emit(recorder, event(3))

    assert 3 == refused
    assert [0, 1, 2, 3] == gate.seen


async def test_a_sinks_own_cancellation_is_a_failure_and_no_cancellation(emit, event, caplog):
    """CancelledError out of a sink does not cancel the call."""

    async def gives_up(item):
        raise asyncio.CancelledError

    await emit(Recorder([gives_up]), event())

    assert "cancelled" in caplog.text


async def test_a_base_exception_of_a_sink_goes_through(emit, event):
    """What is no Exception is not swallowed."""

    class Stop(BaseException):
        pass

    def stops(item):
        raise Stop

    with pytest.raises(Stop):
        await emit(Recorder([stops]), event())


async def test_a_cancelled_emitter_is_cancelled_at_once_and_the_event_arrives(event):
    """Cancelling the call does not wait for the sink, and does not take the event back."""
    gate = Gate()
    recorder = Recorder([gate], timeout_seconds=5)
    emitting = asyncio.create_task(recorder.emit(event(4)))
    await asyncio.sleep(0)
    emitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await emitting
    gate.gate.set()
    while not gate.seen:
        await asyncio.sleep(0.01)

    assert [4] == gate.seen


async def test_an_async_sink_runs_on_the_callers_loop(event):
    """In the async door a sink's coroutine may use what belongs to the caller's loop."""
    queue: asyncio.Queue[int] = asyncio.Queue()

    async def into_queue(item):
        assert asyncio.get_running_loop() is loop
        await queue.put(item.seq)

    loop = asyncio.get_running_loop()
    await Recorder([into_queue]).emit(event(9))

    assert 9 == queue.get_nowait()


async def test_the_sync_door_works_inside_a_running_loop(event):
    """Clause 31: the sync door runs async sinks on a loop thread, never in the caller's loop."""
    loops = []

    async def sink(item):
        loops.append(asyncio.get_running_loop())

    Recorder([sink]).emit_sync(event())

    assert 1 == len(loops)
    assert asyncio.get_running_loop() is not loops[0]


async def test_a_sink_sees_the_callers_context_variables(emit, event):
    """A sink runs in a copy of the emitter's context, so that a trace it starts nests."""
    span = contextvars.ContextVar("span", default="none")
    span.set("outer")
    seen = []

    async def coroutine(item):
        seen.append(span.get())

    await emit(Recorder([lambda item: seen.append(span.get()), coroutine]), event())

    assert ["outer", "outer"] == sorted(seen)


async def test_a_full_queue_drops_and_counts(event, caplog):
    """Behind a sink that hangs a bounded number of events waits; the recovery says what is lost."""
    gate = Gate()
    recorder = Recorder([gate], timeout_seconds=SHORT)
    for seq in range(1010):
        await recorder.emit(event(seq))
    gate.gate.set()
    while len(gate.seen) < 1001:
        await asyncio.sleep(0.01)
    await recorder.emit(event(5000))

    assert 1002 == len(gate.seen)
    assert "it missed 9 events" in caplog.text


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_its_own_lane(event, tmp_path):
    """After a fork the child's events arrive although the sink's thread stayed with the parent."""
    target = tmp_path / "seen"

    def sink(item):
        with target.open("a") as file:
            file.write(f"{item.seq}\n")

    recorder = Recorder([required_sink(sink)])
    recorder.emit_sync(event(1))
    child = os.fork()
    if child == 0:
        try:
            recorder.emit_sync(event(2))
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert "1\n2\n" == target.read_text()


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_time_out_that_is_no_positive_number_is_refused(timeout):
    """The bound must be one."""
    with pytest.raises(ValueError, match="positive"):
        Recorder([], timeout_seconds=timeout)


def test_what_cannot_be_called_is_no_sink():
    """A sink that is no callable is refused when the recorder is made, not when it is needed."""
    with pytest.raises(TypeError):
        Recorder(["audit.jsonl"])


def test_a_loop_thread_that_nobody_holds_ends():
    """The loop of a recorder that is gone is closed, and its thread with it."""
    thread = LoopThread()
    loop = thread.loop()
    gone = weakref.ref(thread)
    del thread
    gc.collect()
    for _ in range(500):
        if loop.is_closed():
            break
        time.sleep(0.01)

    assert gone() is None
    assert loop.is_closed()


def test_an_exit_raised_on_the_loop_thread_is_the_waiters_and_the_loop_goes_on():
    """SystemExit in a coroutine reaches whoever waits for it and does not end the loop."""
    thread = LoopThread()

    async def leaves():
        raise SystemExit(3)

    async def answers():
        return 42

    with pytest.raises(SystemExit):
        run_on(thread.loop(), leaves(), timeout_seconds=5)

    assert 42 == run_on(thread.loop(), answers(), timeout_seconds=5)
    thread.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_thread_that_died_is_replaced():
    """A task that ends the loop from within does not leave the sync door without one."""
    thread = LoopThread()
    first = thread.loop()

    def leave():
        raise SystemExit

    running = next(each for each in threading.enumerate() if each.ident == thread._latest.ident)
    first.call_soon_threadsafe(leave)
    running.join(5)

    async def answers():
        return 42

    assert 42 == run_on(thread.loop(), answers(), timeout_seconds=5)
    assert first is not thread.loop()
    thread.close()
