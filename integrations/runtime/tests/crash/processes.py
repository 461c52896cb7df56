"""Workers as processes: forked from one that has imported everything, killed, and waited for.

A fork takes some milliseconds where a new interpreter takes half a second. It is a process of its
own all the same: it opens its own connections (the parent never opens a store, and has no threads),
and SIGKILL ends it as it ends any.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass

from workers import work

_SECONDS = 120


@dataclass(frozen=True)
class Fate:
    """How a worker is to end: killed at a boundary, after some seconds, or not killed at all."""

    kill_at: str | None = None
    kill_after: float | None = None


UNHARMED = Fate()


class Meeting:
    """Holds workers until all of them have read the run, and lets them go at once."""

    def __init__(self):
        self._arrived, self._arrive = os.pipe()
        self._wait, self._go = os.pipe()

    def attend(self):
        """Tell that this worker is there, and wait for the others; called by a worker."""
        os.write(self._arrive, b".")
        os.read(self._wait, 1)

    def join(self):
        """Give up the parent's end; called by a worker where it begins."""
        os.close(self._go)

    def let_go(self, workers):
        """Wait for so many workers, and let them go; called by the parent."""
        there = 0
        while there < workers:
            there += len(os.read(self._arrived, workers))
        os.close(self._go)
        for end in (self._arrived, self._arrive, self._wait):
            os.close(end)


@dataclass
class Worker:
    """A process at work on a run, and where it tells how that ended."""

    pid: int
    told: int
    kill_after: float | None

    @classmethod
    def start(cls, place, run_id, fate, *, meeting=None, tries=1):
        """Fork a worker."""
        assert 1 == threading.active_count(), "a fork would leave the locks of threads locked"
        told, tell = os.pipe()
        pid = os.fork()
        if pid:
            os.close(tell)
            return cls(pid, told, fate.kill_after)
        try:
            signal.alarm(_SECONDS)  # one that hangs is found out
            random.seed()
            if meeting is not None:
                meeting.join()
            meet = None if meeting is None else meeting.attend
            ended = work(place, run_id, kill_at=fate.kill_at, meet=meet, tries=tries)
            with os.fdopen(tell, "w") as file:
                json.dump(ended, file)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def end(self, began):
        """Kill the worker if that is its fate; give what it told, None where it was killed."""
        if self.kill_after is not None:
            time.sleep(max(0.0, began + self.kill_after - time.monotonic()))
            os.kill(self.pid, signal.SIGKILL)
        with os.fdopen(self.told) as file:
            told = file.read()
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return None
        if status != 0:
            raise RuntimeError(f"A worker ended with the status {status}, which no test asked for.")
        return json.loads(told)


def attempt(place, run_id, fates, *, meets=False, tries=1):
    """Have a worker for each fate go on with the run at once; give what each told, or None."""
    meeting = Meeting() if meets else None
    began = time.monotonic()
    workers = [Worker.start(place, run_id, fate, meeting=meeting, tries=tries) for fate in fates]
    if meeting is not None:
        meeting.let_go(len(workers))
        began = time.monotonic()
    # First those that are killed from outside, in the order of their deaths.
    order = sorted(workers, key=lambda each: (each.kill_after is None, each.kill_after or 0.0))
    ended = {worker.pid: worker.end(began) for worker in order}
    return [ended[worker.pid] for worker in workers]
