"""Trying one cell: run it as its kind says and give every difference from what was expected.

Nothing here knows pytest, so that the suite's own tests can try a wrong driver and count its
faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge import ToolGuard
from adjudge_conformance.bench import Bench, script_of
from adjudge_conformance.cells import Cell
from adjudge_conformance.driver import Driver, Outcome, Scene
from adjudge_conformance.observe import compared, expected_of, observed_of, ran_lines
from adjudge_conformance.resumptions import Resumptions
from adjudge_conformance.transparency import differences_when_governed
from adjudge_conformance.wire import Exchange, ScriptedServer
from adjudge_conformance.worker import Job, Workers

__all__ = ["Trial"]


@dataclass(frozen=True)
class Trial:
    """Whom to try, with which guard, on which server, in which processes."""

    driver: type[Driver[Any]]
    server: ScriptedServer
    workers: Workers
    guard_class: type[ToolGuard] = ToolGuard

    def differences(self, cell: Cell, folder: Path) -> list[str]:
        """Try a cell in an empty folder; no line means that it holds."""
        folder.mkdir(parents=True, exist_ok=True)
        kinds: Mapping[str, Callable[[Cell, Path], list[str]]] = {
            "verdict": self._verdict,
            "pause": self._pause,
            "transparent": self._transparent,
        }
        return kinds[cell.case.kind](cell, folder)

    def scene(self, bench: Bench, *, governed: bool) -> Scene:
        """Give what is built: the same with a guard and without, but for the suite's own tests."""
        return bench.scene()

    def _verdict(self, cell: Cell, folder: Path) -> list[str]:
        bench = Bench(cell, folder)
        exchange = self._open(bench)
        outcome = self._run(bench, exchange, governed=True)
        return compared(expected_of(cell), observed_of(bench, exchange, outcome))

    def _pause(self, cell: Cell, folder: Path) -> list[str]:
        bench = Bench(cell, folder)
        exchange = self._open(bench)
        job = Job.of(self.driver, self.guard_class, bench, exchange.base_url)
        started = self.workers.start(job)
        if not started.paused:
            return [f"the run did not pause, but gave {started.final!r}", started.error]
        return Resumptions(self.workers, job, exchange, started).problems()

    def _transparent(self, cell: Cell, folder: Path) -> list[str]:
        def take(name: str, *, governed: bool) -> dict[str, Any]:
            bench = Bench(cell, folder / name)
            bench.folder.mkdir()
            exchange = self._open(bench)
            outcome = self._run(bench, exchange, governed=governed)
            return {
                "requests": [request.raw.decode() for request in exchange.requests],
                "ran": ran_lines(bench),
                "problems": exchange.problems,
                "transcript": self._transcript(outcome),
            }

        return differences_when_governed(take, self.driver.scrubs, runs=cell.runs)

    def _open(self, bench: Bench) -> Exchange:
        script = script_of(bench.cell, helper_argument=self.driver.helper_argument)
        return self.server.open(script, api=bench.cell.api, log=bench.wire_log)

    def _run(self, bench: Bench, exchange: Exchange, *, governed: bool) -> Outcome:
        driver = self.driver()
        guard = bench.guard(self.guard_class) if governed else None
        try:
            scene = self.scene(bench, governed=governed)
            target = driver.build(scene, exchange.base_url, guard)
            return driver.run(target, bench.cell.style)
        except (Exception, asyncio.CancelledError) as error:
            # What a framework raises is an observation: it is compared, never lost.
            return Outcome(raised=error)
        finally:
            if guard is not None:
                guard.close()

    def _transcript(self, outcome: Outcome) -> dict[str, Any]:
        if outcome.raised is not None:
            return {"raised": _chain(outcome.raised)}
        told = self.driver().transcript(outcome)
        return {**told, "final": outcome.final, "stream": list(outcome.stream)}


def _chain(error: BaseException | None) -> list[str]:
    chain = []
    while error is not None:
        chain.append(f"{type(error).__qualname__}: {error}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return chain
