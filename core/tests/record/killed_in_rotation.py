"""A writer that is killed at each line of code that a rotation runs; run as a script by the tests.

Argument: path. Each time the record is brought to its size, a forked writer is killed at the next
line, the record is verified, and another writer goes on. Prints how many were killed, in how many
cases the full file had two names then, and how many events were taken.
"""

from __future__ import annotations

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

SIZE = 900
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
        sink(event("victim", lines))
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def main() -> None:
    """Go through all lines."""
    path = Path(sys.argv[1])
    # One writer does not know that the record is rotated.
    writers = [hash_chained_sink(path), hash_chained_sink(path, rotate_bytes=SIZE)]
    taken = two_names = 0
    for lines in count():
        while not path.exists() or path.stat().st_size < SIZE:
            writers[0](event("other", taken))
            taken += 1
        died = killed(path, lines)
        two_names += path.stat().st_nlink > 1
        result = verify_chain(path)
        assert result.intact, (lines, result)
        writers[lines % 2](event("other", taken))
        taken += 1
        if not died:
            break
    print(lines, two_names, taken)


if __name__ == "__main__":
    main()
