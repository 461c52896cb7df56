"""Starting a run in one process and resuming it in another, with nothing in common but files.

Run as `python -m adjudge_conformance.worker start|resume JOB RESULT`, which the suite does by
itself.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from adjudge import ApprovalDecision, ToolGuard
from adjudge_conformance.bench import HELPER, MAIN, Bench, script_of
from adjudge_conformance.case import Answer, Case
from adjudge_conformance.cells import Cell
from adjudge_conformance.driver import Driver, GivenAnswer, Outcome, Scene, Style
from adjudge_conformance.wire import Api, Exchange

__all__ = ["Job", "OneProcess", "Report", "Workers", "main"]

_TIME_LIMIT = 120.0
"""Seconds that one part of a run may take."""
_PROGRAM = "from adjudge_conformance.worker import main; main()"


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker needs to know, as JSON."""

    driver: Mapping[str, str]
    guard: Mapping[str, str]
    case: Mapping[str, Any]
    style: Style
    api: Api
    parallel: bool
    folder: str
    base_url: str
    path: tuple[str, ...]

    @classmethod
    def of(
        cls,
        driver: type[Driver[Any]],
        guard: type[ToolGuard],
        bench: Bench,
        base_url: str,
    ) -> Self:
        """Describe a cell so that another process can try it."""
        cell = bench.cell
        return cls(
            driver=_place_of(driver),
            guard=_place_of(guard),
            case=cell.case.model_dump(mode="json"),
            style=cell.style,
            api=cell.api,
            parallel=cell.parallel,
            folder=str(bench.folder),
            base_url=base_url,
            path=tuple(sys.path),
        )

    @property
    def saved(self) -> Path:
        """The file in which the paused run is kept."""
        return Path(self.folder) / "saved.bin"

    @property
    def bench(self) -> Bench:
        """The bench, found again."""
        case = Case.model_validate(self.case)
        return Bench(Cell(case, Style(self.style), self.api, self.parallel), Path(self.folder))


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker did: its process, and how the run stands."""

    process: int
    paused: bool = False
    final: str | None = None
    saved: str = ""
    error: str = ""


class Workers:
    """Two processes of their own: one in which runs start, one in which they are resumed.

    Both live as long as the suite, because a process for each cell would cost a second each;
    nothing goes from one to the other but files. A context manager; a worker is started when it is
    needed.
    """

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._running.values():
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait(_TIME_LIMIT)
            assert worker.stdout is not None
            worker.stdout.close()

    def start(self, job: Job) -> Report:
        """Run the cell until it ends or waits for a person."""
        return self._ask("start", job)

    def resume(self, job: Job, started: Report) -> Report:
        """Go on, in the other process, with what the first one saved."""
        job.saved.write_bytes(base64.b64decode(started.saved))
        return self._ask("resume", job)

    def _ask(self, verb: str, job: Job) -> Report:
        worker = self._running.get(verb)
        if worker is None or worker.poll() is not None:
            command = [sys.executable, "-c", _PROGRAM]
            worker = self._running[verb] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps({"verb": verb, "job": asdict(job)}) + "\n")
        worker.stdin.flush()
        watchdog = threading.Timer(_TIME_LIMIT, worker.kill)
        watchdog.start()
        answer = worker.stdout.readline()
        watchdog.cancel()
        if not answer:
            return Report(process=worker.pid, error="the worker ended before the run did")
        return Report(**json.loads(answer))


class OneProcess(Workers):
    """What a suite must not accept: runs are resumed in the process that asks."""

    def resume(self, job: Job, started: Report) -> Report:
        """Go on in this very process."""
        job.saved.write_bytes(base64.b64decode(started.saved))
        return resume(job)


def start(job: Job) -> Report:
    """The first process's part."""
    driver, scene, guard = _set_up(job, resumed=False)
    with guard:
        outcome = driver.run(driver.build(scene, job.base_url, guard), job.bench.cell.style)
        saved = driver.save(outcome) if outcome.paused else b""
    return _report(outcome, saved)


def resume(job: Job) -> Report:
    """The second process's part."""
    driver, scene, guard = _set_up(job, resumed=True)
    with guard:
        target = driver.build(scene, job.base_url, guard)
        outcome = driver.resume(target, job.saved.read_bytes(), _answers(job, driver))
    return _report(outcome)


def main() -> None:
    """Do what each line of the standard input asks for, and answer with a `Report` in a line."""
    answers = sys.stdout
    # Whatever a framework prints must not be taken for an answer.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        order = json.loads(line)
        try:
            job = Job(**order["job"])
            sys.path[:] = [*job.path]
            report = {"start": start, "resume": resume}[order["verb"]](job)
        except Exception:
            # The suite compares what happened; a worker that only died would say nothing.
            report = Report(process=os.getpid(), error=traceback.format_exc())
        answers.write(json.dumps(asdict(report)) + "\n")
        answers.flush()


def _set_up(job: Job, *, resumed: bool) -> tuple[Driver[Any], Scene, ToolGuard]:
    guard = job.bench.guard(_found(job.guard), resumed=resumed)
    return _found(job.driver)(), job.bench.scene(), guard


def _report(outcome: Outcome, saved: bytes = b"") -> Report:
    text = base64.b64encode(saved).decode()
    return Report(os.getpid(), paused=outcome.paused, final=outcome.final, saved=text)


def _answers(job: Job, driver: Driver[Any]) -> list[GivenAnswer]:
    """The case's answers, each for the first call of its tool that has none yet."""
    bench = job.bench
    script = script_of(bench.cell, helper_argument=driver.helper_argument)
    sent = Exchange(script, api=job.api, base_url=job.base_url, log=bench.wire_log).requests
    begun = {request.model: request.conversation for request in sent}
    waiting = list(bench.cell.case.answers)
    given = []
    for model, turns in ((MAIN, bench.cell.case.proposes), (HELPER, bench.cell.case.helper)):
        for number, proposals in enumerate(turns):
            ids = script.ids(model, number, begun.get(model, ""))
            for proposal, call_id in zip(proposals, ids, strict=False):
                args = proposal.args or {}
                answer = next((a for a in waiting if a.is_about(proposal.tool, args)), None)
                if answer is not None:
                    waiting.remove(answer)
                    given.append(GivenAnswer(call_id, answer.tool, _decision(answer)))
    return given


def _decision(answer: Answer) -> ApprovalDecision:
    return ApprovalDecision(
        granted=answer.does != "refuse",
        approver="ana",
        reason=answer.reason,
        edited_args=answer.args if answer.does == "edit" else None,
    )


def _place_of(cls: type) -> dict[str, str]:
    return {
        "module": cls.__module__,
        "file": inspect.getfile(cls),
        "name": cls.__qualname__,
    }


def _found(place: Mapping[str, str]) -> Any:
    """A class, from its module or, where that is a test file, from the file itself."""
    try:
        module = importlib.import_module(place["module"])
        if getattr(module, "__file__", None) != place["file"]:
            raise ImportError(place["module"])
    except ImportError:
        module = _module_in(place["file"])
    found: Any = module
    for name in place["name"].split("."):
        found = getattr(found, name)
    return found


def _module_in(file: str) -> ModuleType:
    name = f"driver_in_{hashlib.sha256(file.encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            # Half a module must not be found the next time.
            del sys.modules[name]
            raise
    return sys.modules[name]
