"""The sinks that come with Adjudge."""

from __future__ import annotations

import io
import json
import os
import signal
import threading

import pytest

from adjudge._record import sinks as _sinks
from adjudge._record.format import RECORD_FIELDS
from adjudge._record.sinks import (
    callback_sink,
    jsonl_sink,
    multi_sink,
    noop_sink,
    required_sink,
    stdout_sink,
)


async def test_every_sink_of_ours_may_be_awaited_as_well(event, tmp_path):
    """`sink(event)` does it, and `await sink(event)` is the same."""
    stream = io.StringIO()
    for sink in (noop_sink(), jsonl_sink(stream), stdout_sink(stream=stream)):
        sink(event())
        await sink(event())

    assert 4 == len(stream.getvalue().splitlines())


def test_jsonl_writes_canonical_lines_to_a_path_and_to_a_file(event, tmp_path):
    """jsonl_sink takes a path or an open file, and writes the same line to both."""
    stream = io.StringIO()
    path = tmp_path / "events.jsonl"
    jsonl_sink(path)(event(args={"é": [1, 2.0]}))
    jsonl_sink(stream)(event(args={"é": [1, 2.0]}))
    text = path.read_text("ascii")

    assert stream.getvalue() == text
    assert sorted(RECORD_FIELDS) == list(json.loads(text))
    assert {"args": {"é": [1, 2.0]}, "tool": "t"} == json.loads(text)["body"]


def test_jsonl_lines_of_many_threads_do_not_mix(event, tmp_path):
    """Threads that share a jsonl_sink write whole lines."""
    path = tmp_path / "events.jsonl"
    sink = jsonl_sink(path)
    threads = [
        threading.Thread(target=lambda: [sink(event(seq)) for seq in range(50)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = path.read_text().splitlines()

    assert 400 == len(lines)
    assert all(json.loads(line)["kind"] == "step.proposed" for line in lines)


def test_stdout_prints_one_readable_line(event, capsys):
    """stdout_sink says when, which call, what kind, and the body; a newline in it stays escaped."""
    stdout_sink()(event(3, "action.denied", reason="no\nway"))
    out = capsys.readouterr().out

    assert 1 == len(out.splitlines())
    assert "#3 action.denied [run]" in out
    assert '"reason":"no\\nway"' in out


async def test_callback_takes_sync_and_async_functions(event):
    """callback_sink wraps any callable that takes an event."""
    seen = []

    async def later(item):
        seen.append(("async", item.seq))

    await callback_sink(lambda item: seen.append(("sync", item.seq)))(event(1))
    await callback_sink(later)(event(2))

    assert [("sync", 1), ("async", 2)] == seen


async def test_multi_called_directly_reaches_all_and_then_raises(event):
    """Outside a recorder a multi_sink gives the event to every sink before it raises."""
    seen = []

    def broken(item):
        raise OSError("first")

    with pytest.raises(OSError, match="first"):
        await multi_sink(broken, lambda item: seen.append(item.seq))(event(5))

    assert [5] == seen


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        (required_sink(noop_sink()), True),
        (multi_sink(noop_sink(), required_sink(noop_sink())), True),
        (multi_sink(noop_sink()), False),
        (callback_sink(required_sink(noop_sink())), True),
    ],
)
def test_required_shows_through_every_wrapper(sink, expected):
    """The attribute `required` tells whether any sink inside is."""
    assert expected is sink.required


@pytest.mark.parametrize("make", [callback_sink, multi_sink, required_sink])
def test_what_cannot_be_called_is_refused(make):
    """A sink that is no callable is refused at once."""
    with pytest.raises(TypeError):
        make("audit.jsonl")


@pytest.mark.parametrize("target", [None, 3])
def test_what_cannot_be_written_to_is_no_target(target):
    """A slip is an error where the sink is made, and not at the first event."""
    with pytest.raises(TypeError, match=r"is no path and no open file"):
        jsonl_sink(target)


class Halting(io.StringIO):
    """A stream that halts one thread, in the parent alone, in the middle of a line."""

    def __init__(self, go_on):
        super().__init__()
        self._parent, self._go_on = os.getpid(), go_on
        self.inside = threading.Event()

    def write(self, text):
        """Write, once the parent may go on."""
        if os.getpid() == self._parent:
            self.inside.set()
            self._go_on.wait(10)
        return super().write(text)


@pytest.fixture(params=["stdout_sink", "jsonl_sink", "jsonl_sink to a path"])
def halted(request, tmp_path, monkeypatch):
    """A sink that a thread of this process is in the middle of."""
    go_on = threading.Event()
    stream = Halting(go_on)
    if request.param == "stdout_sink":
        sink = stdout_sink(stream=stream)
    elif request.param == "jsonl_sink":
        sink = jsonl_sink(stream)
    else:
        sink = jsonl_sink(tmp_path / "events.jsonl")
        monkeypatch.setattr(_sinks, "write_all", lambda fd, data: stream.write(data.decode()))

    def write(event):
        thread = threading.Thread(target=sink, args=(event,))
        thread.start()
        assert stream.inside.wait(10)
        return thread

    return sink, write, go_on


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_in_the_middle_of_a_write_can_write(event, halted):
    """It does not wait for a thread that stayed with the parent."""
    sink, write, go_on = halted
    thread = write(event(1))
    child = os.fork()
    if child == 0:
        # A child that hangs is ended.
        signal.alarm(10)
        sink(event(2))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    go_on.set()
    thread.join(10)

    assert 0 == status
