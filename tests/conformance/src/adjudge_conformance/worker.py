"""Starting a run in one process and resuming it in another, with nothing in common but files.

Run as `python -m adjudge_conformance.worker start|resume JOB RESULT`, which the suite does by
itself.
"""

from __future__ import annotations

import base64
import contextlib
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

__all__ = ["Job", "OneProcess", "Report", "Workers", "main", "module_in"]

_TIME_LIMIT = 120.0
"""Seconds that one part of a run may take."""
_Order = dict[str, Any]
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

    @property
    def saved_bytes(self) -> bytes:
        """The paused run, as the driver saved it."""
        return base64.b64decode(self.saved)


class Workers:
    """Two processes of their own: a run that one of them left waiting is resumed in the other.

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
            _end(worker)

    def start(self, job: Job) -> Report:
        """Run the cell until it ends or waits for a person."""
        return self._ask({"first": _order("start", job)})[0]

    def resume(self, job: Job, saved: bytes, *, number: int = 1) -> Report:
        """Go on with a saved run and the answers of a round, in the process that did not save it.

        Rounds are counted from 1.
        """
        job.saved.write_bytes(saved)
        process = "second" if number % 2 else "first"
        return self._ask({process: _order("resume", job, number)})[0]

    def resume_at_once(self, job: Job, saved: bytes) -> list[Report]:
        """Go on with a saved run in both processes at the same time."""
        job.saved.write_bytes(saved)
        return self._ask(dict.fromkeys(("first", "second"), _order("resume", job)))

    def approve_natively(self, job: Job, saved: bytes) -> Report:
        """Go on with a saved run that nobody but the framework was told to approve."""
        job.saved.write_bytes(saved)
        return self._ask({"second": _order("approve natively", job)})[0]

    def _ask(self, orders: Mapping[str, _Order]) -> list[Report]:
        """Send each process its order, then wait for all of them."""
        asked = [self._send(process, order) for process, order in orders.items()]
        return [_received(worker) for worker in asked]

    def _send(self, process: str, order: _Order) -> subprocess.Popen[str]:
        worker = self._running.get(process)
        if worker is not None and worker.poll() is not None:
            _end(worker)
            worker = None
        if worker is None:
            command = [sys.executable, "-c", _PROGRAM]
            worker = self._running[process] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(order) + "\n")
        worker.stdin.flush()
        return worker


class OneProcess(Workers):
    """What a suite must not accept: runs are resumed in the process that asks."""

    def _ask(self, orders: Mapping[str, _Order]) -> list[Report]:
        """Do in this very process whatever is not the start."""
        if any(order["verb"] == "start" for order in orders.values()):
            return super()._ask(orders)
        return [_carried_out(order) for order in orders.values()]


def start(job: Job, number: int) -> Report:
    """Run the agent until it ends or waits."""
    driver, scene, guard = _set_up(job, resumed=False)
    with guard:
        outcome = driver.run(driver.build(scene, job.base_url, guard), job.bench.cell.style)
        return _report(driver, outcome)


def resume(job: Job, number: int) -> Report:
    """Go on with the answers of a round."""
    driver, scene, guard = _set_up(job, resumed=True)
    with guard:
        target = driver.build(scene, job.base_url, guard)
        given = _answers(job, driver, number)
        return _report(driver, driver.resume(target, job.saved.read_bytes(), given))


def approve_natively(job: Job, number: int) -> Report:
    """Go on without any answer to the guard."""
    driver, scene, guard = _set_up(job, resumed=True)
    with guard:
        target = driver.build(scene, job.base_url, guard)
        return _report(driver, driver.approve_natively(target, job.saved.read_bytes()))


def main() -> None:
    """Do what each line of the standard input asks for, and answer with a `Report` in a line."""
    answers = sys.stdout
    # Whatever a framework prints must not be taken for an answer.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        order = json.loads(line)
        sys.path[:] = order["job"]["path"]
        answers.write(json.dumps(asdict(_carried_out(order))) + "\n")
        answers.flush()


def _order(verb: str, job: Job, number: int = 1) -> _Order:
    return {"verb": verb, "job": asdict(job), "round": number}


def _end(worker: subprocess.Popen[str]) -> None:
    """Let a worker end that has nothing more to do, or has died."""
    assert worker.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        worker.stdin.close()
    worker.wait(_TIME_LIMIT)
    assert worker.stdout is not None
    worker.stdout.close()


def _received(worker: subprocess.Popen[str]) -> Report:
    assert worker.stdout is not None
    watchdog = threading.Timer(_TIME_LIMIT, worker.kill)
    watchdog.start()
    answer = worker.stdout.readline()
    watchdog.cancel()
    if not answer:
        return Report(process=worker.pid, error="the worker ended before the run did")
    return Report(**json.loads(answer))


def _carried_out(order: _Order) -> Report:
    parts = {"start": start, "resume": resume, "approve natively": approve_natively}
    try:
        return parts[order["verb"]](Job(**order["job"]), order["round"])
    except Exception:
        # The suite compares what happened; a worker that only died would say nothing.
        return Report(process=os.getpid(), error=traceback.format_exc())


def _set_up(job: Job, *, resumed: bool) -> tuple[Driver[Any], Scene, ToolGuard]:
    guard = job.bench.guard(_found(job.guard), resumed=resumed)
    return _found(job.driver)(), job.bench.scene(resumed=resumed), guard


def _report(driver: Driver[Any], outcome: Outcome) -> Report:
    saved = driver.save(outcome) if outcome.paused else b""
    text = base64.b64encode(saved).decode()
    return Report(os.getpid(), paused=outcome.paused, final=outcome.final, saved=text)


def _answers(job: Job, driver: Driver[Any], number: int) -> list[GivenAnswer]:
    """The case's answers of a round, each for the first call of its tool that has none yet."""
    bench = job.bench
    script = script_of(bench.cell, helper_argument=driver.helper_argument)
    sent = Exchange(script, api=job.api, base_url=job.base_url, log=bench.wire_log).requests
    begun = {request.model: request.conversation for request in sent}
    waiting = [answer for answer in bench.cell.case.answers if answer.round == number]
    given = []
    for model, turns in ((MAIN, bench.cell.case.proposes), (HELPER, bench.cell.case.helper)):
        for turn, proposals in enumerate(turns):
            ids = script.ids(model, turn, begun.get(model, ""))
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
        approver=answer.approver,
        reason=answer.reason,
        edited_args=answer.args if answer.does == "edit" else None,
    )


def _place_of(cls: type) -> dict[str, str]:
    return {
        "module": cls.__module__,
        "file": _file_of(cls),
        "name": cls.__qualname__,
    }


def _file_of(cls: type) -> str:
    if cls.__module__ in sys.modules:
        return inspect.getfile(cls)
    # A test may have loaded the file by its path; the code of the methods still knows it.
    return next(
        each.__code__.co_filename for each in vars(cls).values() if inspect.isfunction(each)
    )


def _found(place: Mapping[str, str]) -> Any:
    """A class, from its module or, where that is a test file, from the file itself."""
    try:
        module = importlib.import_module(place["module"])
        if getattr(module, "__file__", None) != place["file"]:
            raise ImportError(place["module"])
    except ImportError:
        module = module_in(place["file"])
    found: Any = module
    for name in place["name"].split("."):
        found = getattr(found, name)
    return found


def module_in(file: str) -> ModuleType:
    """Give the module in a file that cannot be imported by its name, each time the same."""
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
