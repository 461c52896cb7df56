"""The two processes: they are two, outlive a failure, and find a driver in a test file."""

import os

import pytest

from adjudge import ToolGuard
from adjudge_conformance.bench import Bench, script_of
from adjudge_conformance.case import load_cases
from adjudge_conformance.cells import Cell
from adjudge_conformance.driver import Style
from adjudge_conformance.reference import ReferenceDriver
from adjudge_conformance.spies import Spies
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import Job, Workers


class DriverInATestFile(ReferenceDriver):
    """A driver that no installed module holds."""


class DriverThatFails(ReferenceDriver):
    """A driver whose framework ends in an error."""

    def run(self, target, style):
        """Fail."""
        raise OSError("the framework is broken")


@pytest.fixture
def trial(tmp_path):
    """Start a paused call with a driver, and give the report, the job and the workers."""
    case = next(case for case in load_cases() if case.id == "pause.granted-in-another-process")
    bench = Bench(Cell(case, Style.SYNC, "chat", parallel=False), tmp_path)
    with ScriptedServer() as server, Workers() as workers:
        script = script_of(bench.cell, helper_argument="input")
        exchange = server.open(script, api="chat", log=bench.wire_log)

        def start(driver):
            job = Job.of(driver, ToolGuard, bench, exchange.base_url)
            return workers.start(job), job, workers

        yield start


def test_run_is_resumed_in_another_process(trial):
    """Clause 24: neither part runs in this process, nor both in one."""
    started, job, workers = trial(DriverInATestFile)
    resumed = workers.resume(job, started.saved_bytes)

    assert started.paused
    assert "All done." == resumed.final
    assert 3 == len({os.getpid(), started.process, resumed.process})


def test_body_is_seen_with_the_process_that_ran_it(trial):
    """A spy's trace names the process of the resumption."""
    started, job, workers = trial(ReferenceDriver)
    resumed = workers.resume(job, started.saved_bytes)
    (seen,) = job.bench.spies.sightings

    assert ("pay", resumed.process, 1) == (seen.tool, seen.process, seen.attempt)


def test_failure_is_reported_and_the_worker_goes_on(trial):
    """What a framework raises comes back as text, and the next run finds the worker alive."""
    failed, _, _ = trial(DriverThatFails)
    started, _, _ = trial(ReferenceDriver)

    assert "the framework is broken" in failed.error
    assert started.paused
    assert failed.process == started.process


def test_run_is_resumed_in_two_processes_at_once(trial):
    """Both processes get the same bytes at the same time, and both say what came of it."""
    started, job, workers = trial(ReferenceDriver)
    resumed = workers.resume_at_once(job, started.saved_bytes)

    assert ["All done."] * 2 == [report.final for report in resumed]
    assert 3 == len({os.getpid(), *(report.process for report in resumed)})
    assert ["pay"] == [seen.tool for seen in job.bench.spies.sightings]


def test_rounds_take_turns_between_the_processes(trial):
    """What one process left waiting is taken up by the other."""
    started, job, workers = trial(ReferenceDriver)
    resumed = [
        workers.resume(job, started.saved_bytes, number=number).process for number in (1, 2, 3)
    ]

    assert [started.process] == [pid for pid in resumed if pid != resumed[0]]
    assert resumed[0] == resumed[2]


def test_attempts_at_the_same_call_are_numbered(tmp_path):
    """A second start with the same arguments is attempt 2; other arguments begin again."""
    spies = Spies(tmp_path / "spies.jsonl")
    for name in ("a", "a", "b"):
        spies.saw("body", "read_note", {"name": name})

    assert [1, 2, 1] == [seen.attempt for seen in spies.sightings]
