"""One record, many processes and threads, and a kill in the middle of a write."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from adjudge._record.verification import verify_chain

WRITER = Path(__file__).with_name("chain_writer.py")
THREADS = 8


def start(record, name, each, *, stop_after=0):
    """Start a writing process."""
    command = [sys.executable, str(WRITER), str(record), name, str(each), str(stop_after)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def written(record):
    """What the record holds, by process and thread, in its order."""
    found = defaultdict(list)
    for line in record.read_bytes().splitlines():
        if line.endswith(b"\x18"):
            continue
        value = json.loads(line)
        if value["kind"] == "step.proposed":
            found[value["correlation_id"], value["body"]["thread"]].append(value["body"]["index"])
    return found


def test_two_processes_with_eight_threads_each_make_one_linear_chain(record):
    """Every event of every writer is there, once and in its order, and all of them link."""
    first, second = start(record, "first", 150), start(record, "second", 150)
    for process in (first, second):
        process.communicate(timeout=120)
    result = verify_chain(record)

    assert (0, 0) == (first.returncode, second.returncode)
    assert result.intact, result
    assert 2 * THREADS * 150 == result.lines
    assert () == result.residue
    assert {
        (name, thread): list(range(150))
        for name in ("first", "second")
        for thread in range(THREADS)
    } == written(record)


def test_a_writer_killed_in_the_middle_of_a_write_leaves_residue_and_no_fork(record):
    """After SIGKILL the others go on; what the dead one had been told is written is there."""
    victim = start(record, "victim", 10_000, stop_after=500)
    survivor = start(record, "survivor", 150)
    taken = []
    for line in victim.stdout:
        if line == "half\n":
            break
        taken.append(tuple(map(int, line.split())))
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=60)
    survivor.communicate(timeout=120)
    after = start(record, "after", 1)
    after.communicate(timeout=60)
    result = verify_chain(record)
    found = written(record)

    assert -signal.SIGKILL == victim.returncode
    assert result.intact, result
    assert [True] == [residue.vouched for residue in result.residue]
    assert all(found["survivor", thread] == list(range(150)) for thread in range(THREADS))
    assert all(index in found["victim", thread] for thread, index in taken)
    assert len(result.open_proposals) == result.lines - 1
