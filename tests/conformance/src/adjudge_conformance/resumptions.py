"""How a paused run is resumed, as its case says, and what must not run meanwhile.

A saved run is bytes that a client may hold: it is resumed in another process, once or in rounds,
again, at once from two processes, without an answer, and after somebody has changed it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adjudge_conformance.bench import Bench
from adjudge_conformance.driver import Outcome
from adjudge_conformance.observe import (
    compared,
    expected_of,
    observed_of,
    ran_lines,
    waiting_lines,
)
from adjudge_conformance.wire import Exchange
from adjudge_conformance.worker import Job, Report, Workers

__all__ = ["Resumptions"]


@dataclass(frozen=True)
class Resumptions:
    """A run that waits, and the processes in which it may go on."""

    workers: Workers
    job: Job
    exchange: Exchange
    started: Report

    def problems(self) -> list[str]:
        """Resume the run as its case says; no line means that all was as it must be."""
        kinds: Mapping[str, Callable[[], list[str]]] = {
            "once": self._as_expected,
            "again": self._again,
            "at once": self._at_once,
            "natively": self._natively,
            "tampered": self._tampered,
        }
        return kinds[self.bench.cell.case.resumption]()

    @property
    def bench(self) -> Bench:
        """Where the run leaves its traces."""
        return self.job.bench

    def _as_expected(self) -> list[str]:
        """Resume it round by round, and compare all that was seen."""
        problems, ended = self._in_rounds()
        seen = observed_of(self.bench, self.exchange, Outcome(final=ended.final))
        return problems + compared(expected_of(self.bench.cell), seen)

    def _in_rounds(self) -> tuple[list[str], Report]:
        problems: list[str] = []
        last = self.started
        for number in range(1, self.bench.cell.case.rounds + 1):
            early = waiting_lines(self.bench.cell, number)
            problems += [
                f"this ran before anybody had answered: {line}"
                for line in ran_lines(self.bench)
                if line in early
            ]
            if not last.paused:
                return [*problems, f"the run did not wait for round {number} of answers"], last
            resumed = self.workers.resume(self.job, last.saved_bytes, number=number)
            problems += _unless_apart(last, resumed)
            problems += [resumed.error] * bool(resumed.error)
            last = resumed
        return problems, last

    def _again(self) -> list[str]:
        problems = self._as_expected()
        before = ran_lines(self.bench)
        again = self.workers.resume(self.job, self.started.saved_bytes)
        problems += [again.error] * bool(again.error)
        return problems + self._ran_since(before, "when the saved run was resumed again")

    def _at_once(self) -> list[str]:
        """Resume it twice at the same time; which of the two goes on is left open."""
        reports = self.workers.resume_at_once(self.job, self.started.saved_bytes)
        errors = [report.error for report in reports if report.error]
        return errors + _unless_apart(*reports) + self._ran_as_expected()

    def _natively(self) -> list[str]:
        before = ran_lines(self.bench)
        approved = self.workers.approve_natively(self.job, self.started.saved_bytes)
        problems = self._ran_since(before, "when the framework alone had approved")
        return problems + [approved.error] * bool(approved.error) + self._goes_on_all_the_same()

    def _tampered(self) -> list[str]:
        before, saved = ran_lines(self.bench), self.started.saved_bytes
        for was, becomes in self.bench.cell.case.tampers.items():
            if was.encode() not in saved:
                return [f"the saved run does not hold the text {was!r}, so it was not changed"]
            saved = saved.replace(was.encode(), becomes.encode())
        # A framework or an integration may well refuse such a run; nothing more is asked of it.
        self.workers.resume(self.job, saved)
        problems = self._ran_since(before, "when the saved run had been changed")
        return problems + self._goes_on_all_the_same()

    def _goes_on_all_the_same(self) -> list[str]:
        """The run that was saved has lost nothing by what was tried."""
        problems, _ = self._in_rounds()
        return problems + self._ran_as_expected()

    def _ran_as_expected(self) -> list[str]:
        wanted = {"ran": expected_of(self.bench.cell)["ran"]}
        return compared(wanted, {"ran": sorted(ran_lines(self.bench))})

    def _ran_since(self, before: list[str], when: str) -> list[str]:
        return [f"this ran {when}: {line}" for line in ran_lines(self.bench)[len(before) :]]


def _unless_apart(one: Report, other: Report) -> list[str]:
    apart = len({os.getpid(), one.process, other.process}) == 3
    return [] if apart else ["the run was not resumed in a process of its own"]
