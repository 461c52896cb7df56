"""Starting a run in one process and resuming it in another, with nothing in common but files.

Run as `python -m adjudge_conformance.worker start|resume JOB RESULT`, which the suite does by
itself.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from adjudge import ApprovalDecision, ToolGuard
from adjudge_conformance.bench import HELPER, MAIN, Bench, script_of
from adjudge_conformance.case import Answer, Case
from adjudge_conformance.cells import Cell
from adjudge_conformance.driver import Driver, GivenAnswer, Outcome, Scene, Style
from adjudge_conformance.wire import Api, Exchange

__all__ = ["Job", "Report", "main", "resume_elsewhere", "resume_here", "start_elsewhere"]

_TIME_LIMIT = 120.0


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


def start_elsewhere(job: Job) -> Report:
    """Run the cell in a process of its own until it ends or waits for a person."""
    return _in_a_process("start", job)


def resume_elsewhere(job: Job, started: Report) -> Report:
    """Go on in another process with what the first one saved."""
    (Path(job.folder) / "saved.bin").write_bytes(base64.b64decode(started.saved))
    return _in_a_process("resume", job)


def resume_here(job: Job, started: Report) -> Report:
    """Go on in the process that is running, which a suite must not accept."""
    (Path(job.folder) / "saved.bin").write_bytes(base64.b64decode(started.saved))
    return resume(job)


def _in_a_process(verb: str, job: Job) -> Report:
    folder = Path(job.folder)
    order, result = folder / "job.json", folder / f"{verb}.json"
    order.write_text(json.dumps(asdict(job)), encoding="utf-8")
    command = [sys.executable, "-m", "adjudge_conformance.worker", verb, str(order), str(result)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False)
    if not result.exists():
        return Report(process=0, error=f"the worker left no result: {done.stderr}")
    return Report(**json.loads(result.read_text(encoding="utf-8")))


def start(job: Job) -> Report:
    """The first process's part."""
    driver, scene, guard = _set_up(job, resumed=False)
    outcome = driver.run(driver.build(scene, job.base_url, guard), job.bench.cell.style)
    saved = driver.save(outcome) if outcome.paused else b""
    return _report(outcome, saved)


def resume(job: Job) -> Report:
    """The second process's part."""
    driver, scene, guard = _set_up(job, resumed=True)
    saved = (Path(job.folder) / "saved.bin").read_bytes()
    target = driver.build(scene, job.base_url, guard)
    return _report(driver.resume(target, saved, _answers(job, driver)))


def main(arguments: list[str]) -> None:
    """Do one part and leave a `Report` in a file, also of a failure."""
    verb, order, result = arguments
    job = Job(**json.loads(Path(order).read_text(encoding="utf-8")))
    sys.path[:] = [*job.path]
    try:
        report = {"start": start, "resume": resume}[verb](job)
    except Exception:
        # The suite compares what happened; a worker that only died would say nothing.
        report = Report(process=os.getpid(), error=traceback.format_exc())
    Path(result).write_text(json.dumps(asdict(report)), encoding="utf-8")


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
                answer = next((a for a in waiting if a.tool == proposal.tool), None)
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
        spec = importlib.util.spec_from_file_location("driver_under_test", place["file"])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    found: Any = module
    for name in place["name"].split("."):
        found = getattr(found, name)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
