"""Rotation: a full file gets a number, and the chain goes on in a new one, whoever writes."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from adjudge._record import filelock as _filelock
from adjudge._record import keptfile
from adjudge._record import rotation as _rotation
from adjudge._record.chain import hash_chained_sink
from adjudge._record.recorder import Recorder
from adjudge._record.verification import verify_chain
from adjudge.errors import RecordError

HERE = Path(__file__).parent


def numbered(record):
    """The full files of a record, in their order."""
    return sorted(record.parent.glob("audit.0*.jsonl"))


def lines_of(*files):
    """What the files hold, without what torn writes left."""
    return [
        json.loads(line)
        for file in files
        for line in file.read_bytes().splitlines()
        if not line.endswith(b"\x18")
    ]


def refuse(*args, **kwargs):
    """Stand for a system call that is not permitted."""
    raise OSError(1, "Operation not permitted")


def test_a_full_file_gets_a_number_and_the_path_is_the_newest(event, record):
    """The first full file is number 1; the chain goes on at the path."""
    sink = hash_chained_sink(record, rotate_bytes=500)
    sink(event(1))
    sink(event(2))
    sink(event(3))
    (full,) = numbered(record)

    assert "audit.000001.jsonl" == full.name
    assert [1, 2] == [line["seq"] for line in lines_of(full)]
    assert ["record.continued", "step.proposed"] == [line["kind"] for line in lines_of(record)]
    assert verify_chain(record).intact


def test_the_new_file_says_what_came_before(event, record):
    """Its first record has the earlier file's name, its head, and how many came before, in all."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    for seq in range(4):
        sink(event(seq))
    first, second, third = numbered(record)
    start, _ = lines_of(record)

    assert {
        "file": third.name,
        "head": lines_of(third)[-1]["hash"],
        "records": 5,
    } == start["body"]
    assert start["prev_hash"] == start["body"]["head"]
    assert [1, 2, 2] == [len(lines_of(file)) for file in (first, second, third)]


def test_a_record_is_never_without_an_event_after_its_beginning(event, record):
    """A size that no event fits in gives files with one event each, and no endless loop."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    for seq in range(5):
        sink(event(seq))

    assert 4 == len(numbered(record))
    assert [0, 1, 2, 3, 4] == [
        line["seq"]
        for line in lines_of(*numbered(record), record)
        if line["kind"] == "step.proposed"
    ]


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "1"])
def test_a_size_that_is_none_is_refused(record, size):
    """A wrong setting shows when the sink is made."""
    with pytest.raises(ValueError, match="rotate_bytes"):
        hash_chained_sink(record, rotate_bytes=size)


def test_a_writer_that_does_not_rotate_follows(event, record):
    """Who was opened without a size goes on in the new file, through either way of writing."""
    plain = hash_chained_sink(record)
    recorder = Recorder([hash_chained_sink(record)])
    rotating = hash_chained_sink(record, rotate_bytes=1)
    for seq in range(3):
        plain(event(seq))
        recorder.emit_sync(event(seq + 10))
        rotating(event(seq + 20))
    result = verify_chain(record)

    assert result.intact, result
    assert 3 == len(numbered(record))
    assert 9 + 3 == result.lines


def test_a_guards_own_way_rotates_too(event, record):
    """What is handed over through a recorder rotates, and each event is there once."""
    recorder = Recorder([hash_chained_sink(record, required=True, rotate_bytes=700)])
    for seq in range(20):
        recorder.emit_sync(event(seq))
    seen = [
        line["seq"]
        for line in lines_of(*numbered(record), record)
        if line["kind"] == "step.proposed"
    ]

    assert list(range(20)) == seen
    assert len(numbered(record)) > 3
    assert verify_chain(record).intact


def test_an_event_cannot_pass_for_a_continuation(event, record):
    """The record's own kind of event is refused from outside."""
    with pytest.raises(RecordError):
        hash_chained_sink(record)(event(1, "record.continued"))


def test_numbers_go_on_when_earlier_files_were_taken_away(event, record):
    """An archived file's number is not given again: the chain knows it."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    for seq in range(3):
        sink(event(seq))
    for file in numbered(record):
        file.unlink()
    sink(event(3))

    assert ["audit.000003.jsonl"] == [file.name for file in numbered(record)]


def test_a_name_that_is_taken_is_left_alone(event, record):
    """A foreign file under the next number keeps its content; the full file gets a later one."""
    foreign = record.with_name("audit.000001.jsonl")
    foreign.write_text("mine")
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(1))
    sink(event(2))

    assert "mine" == foreign.read_text()
    assert [1] == [line["seq"] for line in lines_of(record.with_name("audit.000002.jsonl"))]


def test_what_a_crash_left_of_a_rotation_is_taken_up(event, record):
    """A number that the full file has already is its number; half a new file is no hindrance."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(1))
    record.with_name("audit.000001.jsonl").hardlink_to(record)
    half = record.with_name(".audit.jsonl.next")
    half.write_text("half")
    sink(event(2))

    assert ["audit.000001.jsonl"] == [file.name for file in numbered(record)]
    assert not half.exists()
    assert (True, 3) == (verify_chain(record).intact, verify_chain(record).lines)


@pytest.mark.parametrize("torn", [b'{"body":{"a', b'{"body":{"a\0\0\0'])
def test_a_torn_end_is_vouched_for_before_the_file_is_left(event, record, torn):
    """What a crash left at the end of a full file stays in it, with its voucher."""
    sink = hash_chained_sink(record, rotate_bytes=200)
    sink(event(1))
    with record.open("ab") as file:
        file.write(torn)
    sink(event(2))
    result = verify_chain(record)

    assert result.intact, result
    assert [True] == [residue.vouched for residue in result.residue]
    assert b"record.residue" in numbered(record)[0].read_bytes()
    assert 4 == result.lines


def test_an_end_without_its_newline_is_ended_before_the_file_is_left(event, record):
    """A last line that lacks its newline alone is a whole record, and is counted."""
    sink = hash_chained_sink(record, rotate_bytes=200)
    sink(event(1))
    record.write_bytes(record.read_bytes()[:-1])
    sink(event(2))
    result = verify_chain(record)

    assert (True, 3, ()) == (result.intact, result.lines, result.residue)
    assert 1 == len(numbered(record))


def test_a_modified_end_is_not_hidden_by_rotation(event, record):
    """Tampering with the full file shows where it was done."""
    sink = hash_chained_sink(record, rotate_bytes=200)
    sink(event(1))
    sink(event(2))
    full = numbered(record)[0]
    full.write_bytes(full.read_bytes().replace(b'"seq":1', b'"seq":7'))
    result = verify_chain(record)

    assert ("hash_mismatch", 1, str(full)) == (result.code, result.broken_at, result.broken_in)


def test_the_new_file_has_the_mode_of_the_old_one(event, record):
    """Who could read and write the record still can, and nobody else."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(1))
    record.chmod(0o640)
    sink(event(2))

    assert [0o640] * 2 == [file.stat().st_mode & 0o777 for file in (record, *numbered(record))]


def test_a_link_to_the_record_stays_one(event, record, tmp_path):
    """Where the path is a symbolic link, the files lie side by side where it leads."""
    (tmp_path / "there").mkdir()
    record.symlink_to(tmp_path / "there" / "audit.jsonl")
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(1))
    sink(event(2))

    assert record.is_symlink()
    assert [] == numbered(record)
    assert 1 == len(numbered(tmp_path / "there" / "audit.jsonl"))
    assert 3 == verify_chain(record).lines


def test_a_file_that_cannot_be_rotated_grows_and_loses_nothing(event, record, monkeypatch, caplog):
    """Where the file system has no hard links, the record goes on, and the log says so.

    It is tried again when the file has grown by as much once more, and then works if it can.
    """
    sink = hash_chained_sink(record, rotate_bytes=600)
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, "adjudge"):
        patch.setattr(_rotation.os, "link", refuse)
        for seq in range(5):
            sink(event(seq))
    tried = caplog.text.count("cannot be rotated")
    for seq in range(5, 9):
        sink(event(seq))
    result = verify_chain(record)

    assert 1 == tried
    assert (True, 12) == (result.intact, result.lines)
    assert [6, 2, 2] == [len(lines_of(file)) for file in numbered(record)]


def test_a_torn_end_is_vouched_for_once_where_rotation_fails(event, record, monkeypatch):
    """The end is read again after a rotation that was given up."""
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(1))
    with record.open("ab") as file:
        file.write(b'{"body":{')
    monkeypatch.setattr(_rotation.Path, "replace", refuse)
    sink(event(2))
    result = verify_chain(record)

    assert (True, 3) == (result.intact, result.lines)
    assert 1 == len(result.residue)


def test_the_count_is_right_where_a_closing_lies_across_two_reads(event, record, monkeypatch):
    """However the file is cut into pieces, torn lines are not counted."""
    monkeypatch.setattr(_rotation, "_STEP", 1)
    sink = hash_chained_sink(record)
    sink(event(1))
    with record.open("ab") as file:
        file.write(b'{"body":{')
    sink(event(2))
    hash_chained_sink(record, rotate_bytes=1)(event(3))

    assert 3 == lines_of(record)[0]["body"]["records"]
    assert verify_chain(record).intact


def test_a_waiting_writer_goes_on_in_the_new_file(event, record):
    """Threads that all find the file full rotate it as often as it is full, and no more."""
    sinks = [hash_chained_sink(record, rotate_bytes=3000) for _ in range(8)]

    def write(worker):
        for index in range(25):
            sinks[worker](event(worker * 100 + index))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = verify_chain(record)

    assert result.intact, result
    assert 200 + len(numbered(record)) == result.lines
    assert all(file.stat().st_size >= 3000 for file in numbered(record))


def test_writers_that_wait_do_not_all_look_again_at_each_rotation(event, record, monkeypatch):
    """Each event opens the file that is full and the new one, however many writers wait."""
    waiting, opened = [], []
    lock, open_file = _filelock._lock, _filelock._open
    monkeypatch.setattr(_filelock, "_lock", lambda file: (waiting.append(file), lock(file)))
    monkeypatch.setattr(_filelock, "_open", lambda path: (opened.append(path), open_file(path))[1])
    sinks = [hash_chained_sink(record, rotate_bytes=1) for _ in range(16)]
    sinks[0](event(0))
    threads = [
        threading.Thread(target=sink, args=(event(seq),)) for seq, sink in enumerate(sinks, 1)
    ]
    with _filelock.locked_for_append(record):
        waiting.clear()
        for thread in threads:
            thread.start()
        end = time.monotonic() + 10
        while len(waiting) < len(threads) and time.monotonic() < end:
            time.sleep(0.005)
        opened.clear()
    for thread in threads:
        thread.join()
    result = verify_chain(record)

    assert (True, 33) == (result.intact, result.lines)
    assert len(opened) <= 2 * len(threads)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_keeps_nobody_waiting_for_a_turn(event, record, monkeypatch):
    """It has none of what another thread of its parent had open."""
    sink = hash_chained_sink(record, rotate_bytes=10_000)
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
        names = (str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.exists())
        os._exit(any(record.name in name for name in names))
    _, status = os.waitpid(child, 0)
    go_on.set()
    writer.join(10)

    assert 0 == status
    assert record.with_name(".audit.jsonl.turn").exists()


def test_where_there_can_be_no_turnstile_writers_go_on_without(event, record):
    """What is at its place is left alone."""
    record.with_name(".audit.jsonl.turn").mkdir()
    sink = hash_chained_sink(record, rotate_bytes=1)
    sink(event(1))
    sink(event(2))

    assert 1 == len(numbered(record))
    assert verify_chain(record).intact


def test_many_processes_that_rotate_and_one_that_does_not_make_one_chain(record):
    """Every event of every writer is there, once and in its order."""
    command = [sys.executable, str(HERE / "rotating_writer.py"), str(record)]
    processes = [
        subprocess.Popen([*command, name, "60", size])
        for name, size in (("first", "4000"), ("second", "7000"), ("plain", "0"))
    ]
    codes = [process.wait(timeout=120) for process in processes]
    result = verify_chain(record)
    found = defaultdict(list)
    for line in lines_of(*numbered(record), record):
        if line["kind"] == "step.proposed":
            found[line["correlation_id"], line["body"]["thread"]].append(line["body"]["index"])

    assert [0, 0, 0] == codes
    assert result.intact, result
    assert len(numbered(record)) > 10
    assert 3 * 4 * 60 + len(numbered(record)) == result.lines
    assert {
        (name, thread): list(range(60))
        for name in ("first", "second", "plain")
        for thread in range(4)
    } == found


def test_a_writer_killed_anywhere_in_a_rotation_leaves_a_sound_record(tmp_path):
    """SIGKILL at each line of code: the record verifies, others go on in it, and nothing is lost.

    Whether or not the next writer rotates itself, and also where the full file has two names.
    """
    command = [sys.executable, str(HERE / "killed_in_rotation.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert 0 == done.returncode, done.stderr
    kills, two_names = map(int, done.stdout.split())

    assert kills >= 50
    assert two_names >= 5
