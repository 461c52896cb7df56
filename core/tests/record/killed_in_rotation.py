"""A writer that is killed at each line of code that a rotation runs; run as a script by the tests.

Argument: a folder. For each line of code a record is made and brought to its size, a forked writer
is killed when it comes to that line, the record is verified, two other writers go on, and it is
verified again. Prints how often a writer was killed, and in how many cases the full file had two
names then.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import adjudge._record
from adjudge._record.chain import hash_chained_sink
from adjudge._record.verification import verify_chain
from adjudge._types import AuditEvent

SIZE = 400
OURS = str(Path(adjudge._record.__file__).parent)


def event(name, seq):
    """An event that says who wrote it."""
    return AuditEvent(name, "bundle", seq, "step.proposed", datetime.now(UTC), {})


def killed(path, lines):
    """Write one event in a forked process that dies at the line with this number."""
    child = os.fork()
    if child == 0:
        left = count(lines, -1)

        def trace(frame, kind, argument):
            if not frame.f_code.co_filename.startswith(OURS):
                return None
            if kind == "line" and next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sink = hash_chained_sink(path, rotate_bytes=SIZE)
        sys.settrace(trace)
        sink(event("victim", 0))
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def go_through(path, lines):
    """Kill a writer at one line; say whether it was, and whether the full file had two names."""
    path.parent.mkdir()
    # One writer does not know that the record is rotated.
    writers = [hash_chained_sink(path), hash_chained_sink(path, rotate_bytes=SIZE)]
    for seq in (0, 1):
        writers[0](event("other", seq))
    died = killed(path, lines)
    two_names = path.stat().st_nlink > 1
    result = verify_chain(path)
    assert result.intact, (lines, result)
    for seq in (2, 3):
        writers[(seq + lines) % 2](event("other", seq))
    result = verify_chain(path)
    assert result.intact, (lines, result)
    written = [
        json.loads(line)
        for file in result.files
        for line in Path(file).read_bytes().splitlines()
        if not line.endswith(b"\x18")
    ]
    seen = [record["seq"] for record in written if record["correlation_id"] == "other"]
    assert seen == [0, 1, 2, 3], (lines, seen)
    full = list(path.parent.glob("audit.0*.jsonl"))
    assert full, lines
    assert len(full) == len({file.stat().st_ino for file in full}), lines
    assert not path.with_name(".audit.jsonl.next").exists(), lines
    return died, two_names


def main() -> None:
    """Go through all lines."""
    kills = with_two_names = 0
    for lines in count():
        died, two_names = go_through(Path(sys.argv[1]) / str(lines) / "audit.jsonl", lines)
        if not died:
            break
        kills += 1
        with_two_names += two_names
    print(kills, with_two_names)


if __name__ == "__main__":
    main()
