"""Events that a sink of ours can take at once are written by the caller; all others by its lane."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from adjudge import CallContext, Principal, ToolGuard, ToolSet, compile_policy, tool
from adjudge._arguments.proposal import ProposedCall
from adjudge._record import keptfile
from adjudge._record.chain import hash_chained_sink
from adjudge._record.keptfile import KeptFile, is_local
from adjudge._record.recorder import PromptSink, Recorder
from adjudge._record.sinks import jsonl_sink, required_sink
from adjudge._record.verification import verify_chain
from adjudge.errors import RecordError

SHORT = 0.15
MAKERS = [hash_chained_sink, jsonl_sink]
HOLDER = """
import sys
from pathlib import Path
from adjudge._record.filelock import locked_for_append
with locked_for_append(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""
ALLOW = {"version": 1, "rules": [{"id": "all", "match": "always", "decision": "allow"}]}


def seqs(record):
    """The numbers of the calls in a record, in its order."""
    return [json.loads(line)["seq"] for line in record.read_bytes().splitlines()]


def open_files():
    """What this process has open."""
    return {str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()}


def until(condition):
    """Wait for what another thread is about to do."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()


@pytest.fixture
def held(record):
    """Hold the lock of the record in another process; calling it lets go."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(record)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"

    def release():
        process.communicate("\n", timeout=10)

    yield release
    process.kill()
    process.communicate()


@pytest.fixture
def writes(monkeypatch):
    """Every write to a record, as the number of lines in it."""
    done = []
    write_all = keptfile.write_all

    def counted(fd, data):
        done.append(data.count(b"\n"))
        write_all(fd, data)

    monkeypatch.setattr(keptfile, "write_all", counted)
    return done


@pytest.mark.parametrize("make", MAKERS)
def test_a_local_file_is_written_by_the_caller(event, record, make, writes):
    """Several events go out in one write, in the caller's own thread."""
    recorder = Recorder([make(record)])
    recorder.emit_sync(event(1), event(2))
    recorder.emit_sync(event(3))

    assert [1, 2, 3] == seqs(record)
    assert [2, 1] == writes


@pytest.mark.parametrize("make", MAKERS)
def test_both_ways_write_the_same_bytes(event, tmp_path, make):
    """Who wrote a line does not show in it."""
    events = [event(1, args={"é": [1, 2.5, None], "$a": "b"}), event(2, "action.completed")]
    sink = make(tmp_path / "lane")
    for item in events:
        sink(item)
    Recorder([make(tmp_path / "caller")]).emit_sync(*events)

    assert (tmp_path / "lane").read_bytes() == (tmp_path / "caller").read_bytes()


async def test_a_lock_that_another_process_holds_is_waited_for_by_the_lane(event, record, held):
    """The caller waits no longer than the time-out, and the events arrive in their order."""
    recorder = Recorder([hash_chained_sink(record)], timeout_seconds=SHORT)
    started = time.monotonic()
    for seq in range(5):
        await recorder.emit(event(seq))
    waited = time.monotonic() - started
    held()
    await recorder.emit(event(5))
    until(lambda: len(record.read_bytes().splitlines()) == 6)
    await recorder.emit(event(6))

    assert SHORT <= waited < 10 * SHORT
    assert list(range(7)) == seqs(record)
    assert verify_chain(record).intact


async def test_a_required_record_that_is_locked_denies_until_it_is_free(record, held):
    """Law 4: no body runs on a decision that could not be put down in time."""
    ran = []

    @tool()
    async def note(text: str) -> str:
        ran.append(text)
        return text

    guard = ToolGuard(
        policy=compile_policy(ALLOW),
        tools=ToolSet.from_functions(note),
        sinks=[hash_chained_sink(record, required=True)],
    )
    guard._recorder.timeout_seconds = SHORT
    denied = await guard.check("note", {"text": "a"})
    held()
    until(lambda: len(record.read_bytes().splitlines()) == 3)
    allowed = await guard.check("note", {"text": "b"})

    assert ("record_failed", ["b"]) == (denied.result.code, ran)
    assert allowed.allowed
    assert verify_chain(record).intact


def test_a_pipe_without_a_reader_is_bounded(event, tmp_path):
    """What is no regular file is left to the lane, which may hang; the lines come in order."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    recorder = Recorder([jsonl_sink(pipe)], timeout_seconds=SHORT)
    started = time.monotonic()
    recorder.emit_sync(event(0))
    recorder.emit_sync(event(1))
    waited = time.monotonic() - started
    found = []
    while len(found) < 2:  # each line comes in an opening of its own
        found += pipe.read_text().splitlines()

    assert SHORT <= waited < 10 * SHORT
    assert [0, 1] == [json.loads(line)["seq"] for line in found]


def test_who_reads_a_pipe_sees_no_end_before_an_event(event, tmp_path, monkeypatch):
    """Nobody opens a pipe only to find out what it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found, opened = [], []
    open_file = os.open

    def noted(path, *args, **kwargs):
        opened.append(str(path))
        return open_file(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", noted)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    Recorder([jsonl_sink(pipe)]).emit_sync(event(7))
    reader.join(10)

    assert [7] == [json.loads(text)["seq"] for text in found]
    assert str(pipe) not in opened


def test_a_file_that_was_moved_away_is_not_written_to(event, record):
    """The very next event begins a chain of its own at the path."""
    recorder = Recorder([hash_chained_sink(record)])
    recorder.emit_sync(event(1))
    old = record.rename(record.with_suffix(".1"))
    recorder.emit_sync(event(2))
    new = record.rename(record.with_suffix(".2"))
    recorder.emit_sync(event(3))

    assert [[1], [2], [3]] == [seqs(old), seqs(new), seqs(record)]
    assert all(verify_chain(path).intact for path in (old, new, record))


def test_a_file_that_was_replaced_is_not_written_to(event, record):
    """Where another writer has begun a new file at the path, the chain of that one goes on."""
    recorder = Recorder([hash_chained_sink(record)])
    recorder.emit_sync(event(1))
    old = record.rename(record.with_suffix(".1"))
    hash_chained_sink(record)(event(2))
    recorder.emit_sync(event(3))

    assert [[1], [2, 3]] == [seqs(old), seqs(record)]
    assert verify_chain(record).intact


class Slow(PromptSink):
    """A sink that declines the first event, and then blocks its lane while its gate is shut."""

    def __init__(self):
        self.seen = []
        self.entered, self.gate = threading.Event(), threading.Event()

    def __call__(self, event):
        """Take an event, once the gate is open."""
        self.entered.set()
        self.gate.wait(10)
        self.seen.append(event.seq)

    def take_at_once(self, offer):
        """Take all but the very first."""
        if self.entered.is_set():
            self.seen.extend(event.seq for event in offer.events)
            offer.taken = True


@pytest.mark.parametrize("timeout_seconds", [SHORT, 10])
def test_no_event_overtakes_one_that_waits(event, timeout_seconds):
    """While the lane is at work, or late, events queue behind it."""
    sink = Slow()
    recorder = Recorder([sink], timeout_seconds=timeout_seconds)
    emitters = []
    for seq in range(3):
        emitters.append(threading.Thread(target=recorder.emit_sync, args=(event(seq),)))
        emitters[-1].start()
        assert sink.entered.wait(10)
        until(lambda: sink.seen or len(recorder._lanes[0]._work.jobs) == len(emitters))
    sink.gate.set()
    for emitter in emitters:
        emitter.join(10)
    until(lambda: len(sink.seen) == 3)
    recorder.emit_sync(event(3))

    assert [0, 1, 2, 3] == sink.seen


def test_writers_in_turn_make_one_chain(event, record):
    """The end of the record is read again where somebody else has written to it."""
    first, second = (Recorder([hash_chained_sink(record)]) for _ in range(2))
    sink = hash_chained_sink(record)
    for seq in range(0, 30, 3):
        first.emit_sync(event(seq))
        second.emit_sync(event(seq + 1))
        sink(event(seq + 2))

    assert list(range(30)) == seqs(record)
    assert verify_chain(record).intact


def test_threads_with_one_sink_make_one_chain(event, record):
    """Threads that write in their own names neither lose nor mix events."""
    recorder = Recorder([hash_chained_sink(record)])

    def work(number):
        for index in range(50):
            recorder.emit_sync(event(100 * number + index))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = seqs(record)

    assert verify_chain(record).intact
    assert sorted(found) == [100 * number + index for number in range(8) for index in range(50)]
    for number in range(8):
        own = [seq for seq in found if seq // 100 == number]
        assert own == sorted(own)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_none_of_the_parents_open_file(event, record):
    """It shares no lock with its parent, which may be killed, and writes to the same chain."""
    recorder = Recorder([hash_chained_sink(record)])
    recorder.emit_sync(event(1))
    child = os.fork()
    if child == 0:
        shared = str(record) in open_files()
        try:
            recorder.emit_sync(event(2))
        finally:
            os._exit(shared)
    _, status = os.waitpid(child, 0)
    recorder.emit_sync(event(3))

    assert 0 == status
    assert [1, 2, 3] == seqs(record)
    assert verify_chain(record).intact


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_no_lock_of_another_thread_of_its_parent(event, record, monkeypatch):
    """Else whoever wants the file would wait for the child once the parent is killed."""
    sink = hash_chained_sink(record)
    inside, go_on = threading.Event(), threading.Event()
    write_all = keptfile.write_all

    def halted(fd, data):
        inside.set()
        go_on.wait(10)
        write_all(fd, data)

    monkeypatch.setattr(keptfile, "write_all", halted)
    writer = threading.Thread(target=sink, args=(event(1),))
    writer.start()
    assert inside.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(str(record) in open_files())
    _, status = os.waitpid(child, 0)
    go_on.set()
    writer.join(10)

    assert 0 == status
    assert [1] == seqs(record)


def test_an_interrupt_while_the_file_is_opened_leaves_nothing_open(event, record, monkeypatch):
    """A descriptor that nobody knows would never be closed."""
    recorder = Recorder([hash_chained_sink(record)])

    def interrupted(fd):
        raise KeyboardInterrupt

    monkeypatch.setattr(keptfile, "is_local", interrupted)
    with pytest.raises(KeyboardInterrupt):
        recorder.emit_sync(event(1))
    until(lambda: record.stat().st_size)

    assert str(record) not in open_files()
    assert [1] == seqs(record)


def test_a_file_that_was_cut_and_grew_to_the_same_size_is_linked_to_its_own_end(event, record):
    """What was known of the end of a file counts only while its bytes are there."""
    recorder = Recorder([hash_chained_sink(record)])
    recorder.emit_sync(event(1))
    size = record.stat().st_size
    record.write_bytes(b"")
    hash_chained_sink(record)(event(2))
    assert size == record.stat().st_size
    recorder.emit_sync(event(3))

    assert [2, 3] == seqs(record)
    assert verify_chain(record).intact


@pytest.mark.parametrize("make", MAKERS)
def test_a_sink_that_is_gone_has_closed_its_file(event, record, make):
    """Nothing stays open behind a sink."""
    recorder = Recorder([make(record)])
    recorder.emit_sync(event(1))
    while_there = str(record) in open_files()
    del recorder
    gc.collect()

    assert while_there
    assert str(record) not in open_files()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("make", MAKERS)
def test_an_interrupt_neither_loses_nor_doubles_an_event(event, record, make, after, monkeypatch):
    """Ctrl-C in the middle of a write is the caller's; the events are out all the same."""
    write_all = keptfile.write_all

    def interrupted(fd, data):
        monkeypatch.setattr(keptfile, "write_all", write_all)
        if after:
            write_all(fd, data)
        raise KeyboardInterrupt

    recorder = Recorder([required_sink(make(record)), jsonl_sink(record.with_suffix(".2"))])
    monkeypatch.setattr(keptfile, "write_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        recorder.emit_sync(event(1), event(2))
    until(lambda: record.with_suffix(".2").exists() and len(seqs(record)) >= 2)
    recorder.emit_sync(event(3))

    assert [1, 2, 3] == seqs(record)
    until(lambda: len(seqs(record.with_suffix(".2"))) == 3)


def test_a_full_disk_is_a_failure_and_no_wait(event, record, monkeypatch):
    """What goes wrong in the caller's thread counts as it would in the lane's."""
    write_all = keptfile.write_all

    def full(fd, data):
        raise OSError(28, "No space left on device")

    recorder = Recorder([hash_chained_sink(record, required=True)])
    monkeypatch.setattr(keptfile, "write_all", full)
    with pytest.raises(RecordError, match="No space left"):
        recorder.emit_sync(event(1))
    monkeypatch.setattr(keptfile, "write_all", write_all)
    recorder.emit_sync(event(2))

    assert [2] == seqs(record)
    assert verify_chain(record).intact


def test_only_regular_files_of_this_machine_are_local(tmp_path):
    """A pipe, a file of /proc and what cannot be told are none."""
    reading, writing = os.pipe()
    with (tmp_path / "file").open("w") as file, Path("/proc/self/status").open() as process:
        found = [is_local(file.fileno()), is_local(process.fileno()), is_local(writing)]
    os.close(reading)
    os.close(writing)

    assert [True, False, False] == found


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_that_is_not_local_is_opened_by_the_lane_alone(event, record, make, monkeypatch):
    """What may be on a network hangs nobody but the lane, and is not asked about twice."""
    asked = []
    monkeypatch.setattr(keptfile, "is_local", lambda fd: asked.append(threading.current_thread()))
    recorder = Recorder([make(record)])
    for seq in range(3):
        recorder.emit_sync(event(seq))

    assert [0, 1, 2] == seqs(record)
    assert 1 == len(asked)


def test_a_path_that_cannot_be_opened_is_left_to_the_lane(tmp_path):
    """Whoever waits for it learns why it cannot be."""
    assert KeptFile(tmp_path / "missing" / "audit.jsonl").ready(lock=True) is None


async def test_a_proposal_and_its_judgment_are_one_write_before_the_body(record, writes):
    """A body that runs finds on the record what it was proposed and allowed as."""
    seen = []

    @tool()
    async def look() -> None:
        seen.extend(json.loads(line)["kind"] for line in record.read_bytes().splitlines())

    guard = ToolGuard(
        policy=compile_policy(ALLOW),
        tools=ToolSet.from_functions(look),
        sinks=[hash_chained_sink(record, required=True)],
    )
    await guard.check("look", {})

    assert ["step.proposed", "policy.evaluated"] == seen
    assert [2, 1] == writes


async def test_a_proposal_is_on_record_before_anything_of_somebody_else_runs(record, writes):
    """A Python rule may hang or end the process: then the record says which call that was."""
    seen = []

    def rule(request, context):
        seen.extend(json.loads(line)["kind"] for line in record.read_bytes().splitlines())

    @tool()
    async def look() -> None:
        """Do nothing."""

    guard = ToolGuard(
        policy=compile_policy(ALLOW, python_rules=[rule], python_rule_priorities={"rule": 9}),
        tools=ToolSet.from_functions(look),
        sinks=[hash_chained_sink(record)],
    )
    await guard.check("look", {})

    assert ["step.proposed"] == seen
    assert [1, 1, 1] == writes


async def test_a_proposal_is_on_record_before_a_path_is_resolved(tmp_path, record, monkeypatch):
    """A file system may hang: then the record says which call asked for it."""
    seen = []
    resolve = os.path.realpath

    def slow(path):
        seen.extend(json.loads(line)["kind"] for line in record.read_bytes().splitlines())
        return resolve(path)

    @tool()
    async def read(path: str) -> None:
        """Do nothing."""

    monkeypatch.setattr("adjudge._enforcement.drivers.os.path.realpath", slow)
    guard = ToolGuard(
        policy=compile_policy(
            {
                "version": 1,
                "rules": [
                    {"id": "in", "match": {"args.path.under": str(tmp_path)}, "decision": "allow"}
                ],
            }
        ),
        tools=ToolSet.from_functions(read),
        sinks=[hash_chained_sink(record)],
    )
    await guard.check("read", {"path": str(tmp_path / "a")})

    assert "step.proposed" in seen
    assert "policy.evaluated" not in seen


async def test_a_proposal_is_on_record_before_the_framework_refuses_it(record):
    """Arguments that get no verdict are the framework's to answer, which is code of others."""
    seen = []

    async def execute(effective):
        seen.extend(json.loads(line)["kind"] for line in record.read_bytes().splitlines())
        raise ValueError("no such number")

    guard = ToolGuard(policy=compile_policy(ALLOW), sinks=[hash_chained_sink(record)])
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    call = ProposedCall("count", {"n": "many"}, schema=schema, schema_is_enforced=True)
    with pytest.raises(ValueError, match="no such number"):
        await guard.govern_call(call, execute)

    assert ["step.proposed"] == seen


async def test_calls_that_a_rule_decides_alike_have_each_their_own_judgment(record):
    """What is the same for many calls is kept, and what is not is of the call."""

    @tool()
    async def first() -> None:
        """Do nothing."""

    @tool()
    async def second() -> None:
        """Do nothing."""

    guard = ToolGuard(
        policy=compile_policy(ALLOW),
        tools=ToolSet.from_functions(first, second),
        sinks=[hash_chained_sink(record)],
    )
    who = Principal("user", "ana")
    for name in ("first", "second", "first"):
        for place in ("dev", "prod"):
            await guard.check(name, {}, context=lambda place=place: CallContext(who, place))
    judged = [
        (line["body"]["tool"], line["body"]["environment"])
        for line in map(json.loads, record.read_bytes().splitlines())
        if line["kind"] == "policy.evaluated"
    ]

    assert judged == [
        (name, place) for name in ("first", "second", "first") for place in ("dev", "prod")
    ]
