"""A process that appends to a rotated record from four threads; run as a script by the tests.

Arguments: path, name, events of each thread, and the size at which it rotates (0: it does not).
"""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime

from adjudge._record.chain import hash_chained_sink
from adjudge._record.recorder import Recorder
from adjudge._types import AuditEvent

THREADS = 4


def main() -> None:
    """Write with two threads as a guard does, and with two threads that call the sink."""
    path, name, each, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

    def work(thread):
        sink = hash_chained_sink(path, required=True, rotate_bytes=size or None)
        recorder = Recorder([sink], timeout_seconds=100)
        for index in range(each):
            body = {"thread": thread, "index": index}
            event = AuditEvent(name, "bundle", index, "step.proposed", datetime.now(UTC), body)
            if thread % 2:
                recorder.emit_sync(event)
            else:
                sink.wrapped_sinks[0](event)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
