"""The hash-chained sink: one linear chain, whoever writes and however often it starts anew."""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading

import pytest

from adjudge._record import filelock as _filelock
from adjudge._record.chain import GENESIS_HASH, hash_chained_sink
from adjudge._record.recorder import Recorder
from adjudge._record.verification import verify_chain
from adjudge.errors import RecordError


def test_an_independent_reader_can_check_the_chain(event, record):
    """A line's hash is the SHA-256 of its bytes without the hash, and the next one names it."""
    sink = hash_chained_sink(record)
    for seq in range(3):
        sink(event(seq))
    previous = GENESIS_HASH
    for line in record.read_bytes().splitlines():
        text, _, rest = line.rpartition(b',"hash":"')
        assert hashlib.sha256(text + b"}").hexdigest() == rest.removesuffix(b'"}').decode()
        assert previous == json.loads(line)["prev_hash"]
        previous = json.loads(line)["hash"]

    assert previous == verify_chain(record).head


def test_a_restart_goes_on_where_the_record_ends(event, record):
    """A new sink on an old file continues its chain."""
    for seq in range(3):
        hash_chained_sink(record)(event(seq))
    result = verify_chain(record)

    assert result.intact
    assert 3 == result.lines


def test_two_sinks_on_one_path_take_turns_on_one_chain(event, record):
    """A sink reads the tail again when another one has written."""
    first, second = hash_chained_sink(record), hash_chained_sink(record)
    for seq in range(4):
        (first, second)[seq % 2](event(seq))

    assert verify_chain(record).intact


def test_an_open_file_names_its_path(event, record):
    """A file opened by the caller gives its path; what is written is the same chain."""
    with record.open("w") as file:
        hash_chained_sink(file)(event())

    assert 1 == verify_chain(record).lines


@pytest.mark.parametrize("target", [io.StringIO(), 7, None])
def test_a_target_without_a_path_is_refused(target):
    """A chain must be able to read its own end."""
    with pytest.raises(RecordError):
        hash_chained_sink(target)


def test_a_file_descriptors_name_is_no_path():
    """A file opened by its number has no path either."""
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as file, pytest.raises(RecordError):
        hash_chained_sink(file)


def test_a_path_that_cannot_be_opened_is_refused_when_the_sink_is_made(tmp_path):
    """A wrong path shows at once, not at the first call."""
    with pytest.raises(RecordError):
        hash_chained_sink(tmp_path / "missing" / "audit.jsonl")


def test_a_system_without_file_locks_is_refused(record, monkeypatch):
    """Without locks several writers would fork the chain, so there is no sink at all."""
    monkeypatch.setattr(_filelock, "_HAS_LOCKS", False)
    with pytest.raises(RecordError, match="jsonl_sink"):
        hash_chained_sink(record)


def test_making_a_sink_does_not_wait_for_another_writer(record):
    """A writer that holds the lock delays an event, never the making of a sink."""
    with _filelock.locked_for_append(record):
        hash_chained_sink(record)


def test_what_is_no_regular_file_is_refused(tmp_path):
    """A chain on a pipe or a device could not be read back."""
    with pytest.raises(RecordError):
        hash_chained_sink(os.devnull)


def test_a_file_that_holds_something_else_is_left_alone(event, record):
    """A sink pointed at a foreign file writes nothing into it."""
    record.write_text("name,amount\nada,1\n")
    with pytest.raises(RecordError):
        hash_chained_sink(record)(event())

    assert "name,amount\nada,1\n" == record.read_text()


def test_a_change_of_directory_does_not_move_the_record(event, tmp_path, monkeypatch):
    """A relative path is the one that it was when the sink was made."""
    monkeypatch.chdir(tmp_path)
    sink = hash_chained_sink("audit.jsonl")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    sink(event())

    assert verify_chain(tmp_path / "audit.jsonl").intact


def test_a_record_that_is_moved_away_is_begun_anew(event, record):
    """After a rotation the next event begins a chain of its own, and the old one stays whole."""
    sink = hash_chained_sink(record)
    sink(event(1))
    old = record.rename(record.with_suffix(".1"))
    sink(event(2))

    assert 1 == verify_chain(old).lines
    assert 1 == verify_chain(record).lines


def test_a_record_that_is_moved_away_while_a_writer_waits_is_not_written_to(
    event, record, monkeypatch
):
    """Who gets the lock of a file that is no longer at the path opens the one that is."""
    sink = hash_chained_sink(record)
    waiting = threading.Event()
    lock = _filelock._lock

    def announced(file):
        waiting.set()
        lock(file)

    with _filelock.locked_for_append(record):
        monkeypatch.setattr(_filelock, "_lock", announced)
        writer = threading.Thread(target=sink, args=(event(),))
        writer.start()
        assert waiting.wait(10)
        old = record.rename(record.with_suffix(".1"))
    writer.join(10)

    assert b"" == old.read_bytes()
    assert 1 == verify_chain(record).lines


def test_the_chain_goes_on_after_tampering_which_stays_visible(event, record, caplog):
    """A modified end neither stops the record nor is hidden by what follows."""
    hash_chained_sink(record)(event(1))
    hash_chained_sink(record)(event(2))
    record.write_bytes(record.read_bytes().replace(b'"seq":2', b'"seq":9'))
    sink = hash_chained_sink(record)
    sink(event(3))
    sink(event(4))
    result = verify_chain(record)

    assert 4 == len(record.read_bytes().splitlines())
    assert (2, "hash_mismatch") == (result.broken_at, result.code)
    assert 1 == caplog.text.count("is not as it was written")


def test_an_event_cannot_pass_for_a_residue(event, record):
    """The record's own kind of event is refused from outside."""
    with pytest.raises(RecordError):
        hash_chained_sink(record)(event(1, "record.residue"))


def test_required_makes_its_failure_count(event, record):
    """hash_chained_sink(required=True) raises RecordError through a recorder."""
    recorder = Recorder([hash_chained_sink(record, required=True)])
    record.unlink()
    record.mkdir()

    with pytest.raises(RecordError):
        recorder.emit_sync(event())


def test_eight_threads_on_eight_sinks_make_one_chain(event, record):
    """Threads with sinks of their own exclude each other as processes do."""

    def write(worker):
        sink = hash_chained_sink(record)
        for index in range(50):
            sink(event(worker * 1000 + index))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = verify_chain(record)

    assert result.intact
    assert 400 == result.lines


def test_the_end_of_a_long_line_is_found(event, record):
    """The tail is read back as far as it takes to find the last whole line."""
    sink = hash_chained_sink(record)
    sink(event(1, args={"text": "x" * 300_000}))
    hash_chained_sink(record)(event(2))

    assert verify_chain(record).intact
