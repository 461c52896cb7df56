"""A process that appends to a chain from eight threads; run as a script by the tests.

Arguments: path, name, events of each thread, and after how many events in all to stop for ever in
the middle of a write (0: never). Each event that the sink took is printed.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from datetime import UTC, datetime

from adjudge._record import keptfile as _keptfile
from adjudge._record.chain import hash_chained_sink
from adjudge._types import AuditEvent

THREADS = 8


def main() -> None:
    """Write, and print what was taken."""
    path, name, each, stop_after = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    counter = itertools.count(1)
    output = threading.Lock()
    whole_write = _keptfile.write_all

    def write(fd, data):
        if next(counter) == stop_after:
            os.write(fd, data[: len(data) // 2])
            sys.stdout.write("half\n")
            sys.stdout.flush()
            threading.Event().wait()
        whole_write(fd, data)

    _keptfile.write_all = write

    def work(thread):
        sink = hash_chained_sink(path)
        for index in range(each):
            body = {"thread": thread, "index": index}
            sink(AuditEvent(name, "bundle", index, "step.proposed", datetime.now(UTC), body))
            with output:
                sys.stdout.write(f"{thread} {index}\n")
                sys.stdout.flush()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
