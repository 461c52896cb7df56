"""Many calls at once on one guard: each has its whole record, in its order, and memory is flat."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import tracemalloc
from collections import defaultdict

import pytest

from adjudge import ToolGuard, ToolSet, compile_policy, hash_chained_sink, tool, verify_chain

CALLS = 10_000
# In bytes. What is kept for ever of one call would be more: its events alone are 2,000.
MARGIN_PER_CALL = 20
KINDS = ["step.proposed", "policy.evaluated", "action.completed"]
POLICY = compile_policy(
    {"version": 1, "rules": [{"id": "all", "match": {"tool": "echo"}, "decision": "allow"}]}
)


@tool()
async def echo(number: int) -> int:
    """Let every other call go first."""
    await asyncio.sleep(0)
    return number


@pytest.fixture
def record(tmp_path):
    """The path of a record that is not there yet."""
    return tmp_path / "audit.jsonl"


@pytest.fixture
def guard(record):
    """A guard with a required chain."""
    with ToolGuard(
        policy=POLICY,
        tools=ToolSet.from_functions(echo),
        sinks=[hash_chained_sink(record, required=True)],
    ) as made:
        yield made


def by_call(record):
    """The kinds of the events of each call in a record, and the argument that it was made with."""
    kinds, numbers = defaultdict(list), {}
    for line in record.read_bytes().splitlines():
        event = json.loads(line)
        kinds[event["seq"]].append(event["kind"])
        if event["kind"] == "step.proposed":
            numbers[event["seq"]] = event["body"]["args"]["number"]
    return kinds, numbers


async def all_at_once(guard, count):
    """Make so many calls of which each waits for all the others, and give what they gave."""
    calls = await asyncio.gather(*(guard.check("echo", {"number": n}) for n in range(count)))
    return [call.result.value for call in calls]


async def test_ten_thousand_calls_in_one_loop_are_all_on_record(guard, record):
    """Law 7: nothing is lost, doubled or out of order when every call waits for every other."""
    values = await all_at_once(guard, CALLS)
    kinds, numbers = by_call(record)
    result = verify_chain(record)

    assert list(range(CALLS)) == values
    assert CALLS == len(kinds)
    assert all(found == KINDS for found in kinds.values())
    assert list(range(CALLS)) == sorted(numbers.values())
    assert (True, 3 * CALLS, ()) == (result.intact, result.lines, result.open_proposals)


def test_calls_from_many_threads_are_all_on_record(guard, record):
    """Law 7: the sync door keeps the order of each call, and one chain."""
    threads, each = 16, 40
    values = []

    def work(thread):
        for index in range(each):
            number = thread * each + index
            values.append(guard.check_sync("echo", {"number": number}).result.value)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    kinds, numbers = by_call(record)
    result = verify_chain(record)

    assert list(range(threads * each)) == sorted(values) == sorted(numbers.values())
    assert threads * each == len(kinds)
    assert all(found == KINDS for found in kinds.values())
    assert result.intact


async def test_memory_is_no_higher_after_a_second_round(guard):
    """A guard and its sink keep nothing of the calls that are over."""
    calls = CALLS // 4  # tracing is slow
    await all_at_once(guard, calls)
    used, peaks = [], []
    tracemalloc.start()
    try:
        for _ in range(2):
            tracemalloc.reset_peak()
            await all_at_once(guard, calls)
            gc.collect()
            current, peak = tracemalloc.get_traced_memory()
            used.append(current)
            peaks.append(peak)
    finally:
        tracemalloc.stop()

    assert used[1] - used[0] <= MARGIN_PER_CALL * calls
    assert peaks[1] <= 1.05 * peaks[0]
