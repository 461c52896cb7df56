"""An exception out of a signal handler, wherever it comes, costs no later event and no lock."""

from __future__ import annotations

import asyncio
import json

import pytest

from adjudge._enforcement.loop import LoopThread, run_on
from adjudge._record.chain import hash_chained_sink
from adjudge._record.recorder import Offer, PromptSink, Recorder
from adjudge._record.sinks import jsonl_sink, required_sink
from adjudge._record.verification import verify_chain

SECONDS = 10


class Declines(PromptSink):
    """A sink of ours that never takes an event at once."""

    def __init__(self, seen):
        self._seen = seen

    def __call__(self, event):
        """Take it."""
        self._seen.append(event.seq)

    def take_at_once(self, offer):
        """Take none."""


class Prompt(PromptSink):
    """A sink of ours that takes all events at once."""

    def __init__(self, seen):
        self._seen = seen

    def __call__(self, event):
        """Take it."""
        self._seen.append(event.seq)

    def take_at_once(self, offer):
        """Take all."""
        self._seen.extend(event.seq for event in offer.events)
        offer.taken = True


def plain(seen):
    """Make a plain function."""
    return lambda event: seen.append(event.seq)


def coroutine(seen):
    """Make a sink that runs on a loop."""

    async def sink(event):
        await asyncio.sleep(0)
        seen.append(event.seq)

    return sink


@pytest.mark.parametrize("make", [plain, coroutine, Declines])
def test_an_interrupt_anywhere_leaves_the_lane_to_the_next_event(event, make, at_each_instruction):
    """No lock stays behind, the event arrives once or never, and the next one is taken."""

    def begin():
        seen = []
        recorder = Recorder([required_sink(make(seen))], timeout_seconds=SECONDS)
        first = event(1)
        return lambda: recorder.emit_sync(first), (recorder, seen)

    def check(about, step):
        recorder, seen = about
        recorder.emit_sync(event(2))

        assert seen in ([1, 2], [2]), step
        assert not recorder._lanes[0].failing
        assert not recorder._lanes[0]._work.late

    at_each_instruction(begin, check)


def test_what_is_offered_goes_to_every_sink_or_to_none(event, at_each_instruction):
    """Once the first sink may have it, an interrupt keeps the events from no other."""

    def begin():
        seen = [[] for _ in range(4)]
        sinks = [Prompt(seen[0]), plain(seen[1]), Declines(seen[2]), Prompt(seen[3])]
        recorder = Recorder(sinks, timeout_seconds=SECONDS)
        offers: list[Offer] = []
        events = (event(1), event(2))
        return lambda: recorder.hand_over(events, offers, in_loop=False), (recorder, offers, seen)

    def check(about, step):
        recorder, offers, seen = about
        recorder.emit_sync(event(3))

        assert [[*([1, 2] if offers else []), 3]] * 4 == seen, step

    at_each_instruction(begin, check)


@pytest.mark.parametrize("make", [hash_chained_sink, jsonl_sink])
def test_an_interrupt_leaves_a_file_to_the_next_event(event, tmp_path, make, at_each_instruction):
    """Where CPython looks for signals, one neither loses nor doubles a line, nor keeps the lock."""
    number = iter(range(10_000))

    def begin():
        path = tmp_path / f"{next(number)}.jsonl"
        recorder = Recorder([required_sink(make(path))], timeout_seconds=SECONDS)
        recorder.emit_sync(event(0))
        offers: list[Offer] = []
        events = (event(1),)
        return lambda: recorder.hand_over(events, offers, in_loop=False), (recorder, offers, path)

    def check(about, step):
        recorder, offers, path = about
        recorder.emit_sync(event(2))

        found = [json.loads(line)["seq"] for line in path.read_bytes().splitlines()]
        assert [0, *([1] if offers else []), 2] == found, step
        assert make is jsonl_sink or verify_chain(path).intact

    at_each_instruction(begin, check, anywhere=False, at_least=20)


def test_an_interrupt_while_a_loop_thread_starts_leaves_it_usable(at_each_instruction):
    """The next who wants the loop gets one that runs."""

    async def answers():
        return 42

    def begin():
        thread = LoopThread()
        return thread.loop, thread

    def check(thread, step):
        assert 42 == run_on(thread.loop(), answers(), timeout_seconds=SECONDS), step
        thread.close()

    at_each_instruction(begin, check, at_least=50)


def test_an_interrupt_while_a_loop_thread_is_closed_leaves_it_usable(at_each_instruction):
    """It can be closed once more, and started again."""

    async def answers():
        return 42

    def begin():
        thread = LoopThread()
        run_on(thread.loop(), answers(), timeout_seconds=SECONDS)
        return thread.close, thread

    def check(thread, step):
        thread.close()
        assert 42 == run_on(thread.loop(), answers(), timeout_seconds=SECONDS), step
        thread.close()

    at_each_instruction(begin, check, at_least=50)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_while_a_result_is_awaited_leaves_the_loop_to_the_next(at_each_instruction):
    """Nothing that the loop's thread needs is kept, and what is awaited runs at most once."""
    thread = LoopThread()

    async def noted(seen):
        seen.append(1)
        await asyncio.sleep(0)
        return len(seen)

    def begin():
        seen = []
        loop = thread.loop()
        return lambda: run_on(loop, noted(seen), timeout_seconds=SECONDS), seen

    def check(seen, step):
        assert 1 == run_on(thread.loop(), noted([]), timeout_seconds=SECONDS), step
        assert len(seen) <= 1

    at_each_instruction(begin, check)
    thread.close()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_in_the_async_door_leaves_the_lane_to_the_next_event(
    event, at_each_instruction
):
    """The same holds for events that are awaited."""

    def begin():
        seen = []
        recorder = Recorder([required_sink(plain(seen))], timeout_seconds=SECONDS)
        first = event(1)
        return lambda: asyncio.run(recorder.emit(first)), (recorder, seen)

    def check(about, step):
        recorder, seen = about
        asyncio.run(recorder.emit(event(2)))

        assert seen in ([1, 2], [2]), step

    at_each_instruction(begin, check, of=["/adjudge/"])
