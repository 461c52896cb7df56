"""Processes that die and processes that race: no effect happens twice, and none goes unsaid."""

import asyncio
import importlib.util
import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from adjudge import SQLiteRunStore, SQLiteSessionStore, ToolGuard, ToolSet, compile_policy
from adjudge_runtime.kernel import AgentKernel, IllegalTransition, RunState

WORKER = Path(__file__).with_name("worker.py")
# Eight records of the chain, three saves and two effects, each with a before and an after.
BOUNDARIES = 26


def start(folder, *options):
    """Start a worker of its own process."""
    return subprocess.Popen(
        [sys.executable, str(WORKER), str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(worker):
    """Wait for a worker; give its exit code and what it says."""
    out, err = worker.communicate(timeout=60)
    assert worker.returncode in (0, 3, 4, -signal.SIGKILL), err
    return worker.returncode, json.loads(out) if out else None


def work(folder, *options):
    """Run one worker."""
    return finish(start(folder, *options))


def work_here(folder, *options):
    """Do what a worker does in this process, which is another than the one that died."""
    spec = importlib.util.spec_from_file_location("kernel_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return asyncio.run(module.main(module.options_of([str(folder), *options])))


def effects(folder):
    """Count the effects that happened."""
    with closing(sqlite3.connect(folder / "effects.db")) as database:
        return Counter(what for (what,) in database.execute("SELECT what FROM effects"))


def kernel_of(folder):
    """Give a kernel that looks at what the workers left."""
    policy = compile_policy(
        {"version": 1, "rules": [{"id": "none", "match": "always", "decision": "deny"}]}
    )
    return AgentKernel(
        lambda text: pytest.fail("No model is asked."),
        guard=ToolGuard(policy=policy),
        tools=ToolSet(),
        store=SQLiteSessionStore(folder / "kernel.db"),
        chain=SQLiteRunStore(folder / "kernel.db"),
    )


def acts(folder):
    """Give the tool's steps, by what they were to do."""
    steps = asyncio.run(kernel_of(folder).execution_chain("s"))
    return {
        {"transfer": "one", "ship": "two"}[step.tool]: step for step in steps if step.kind == "act"
    }


def test_an_undisturbed_session_comes_to_every_boundary(tmp_path):
    """There are as many boundaries as the other tests die at, and each effect happens once."""
    code, said = work(tmp_path)

    assert (0, "completed", BOUNDARIES) == (code, said["state"], said["boundaries"])
    assert {"one": 1, "two": 1} == effects(tmp_path)


@pytest.mark.parametrize("boundary", range(1, BOUNDARIES + 1))
def test_a_worker_that_dies_leaves_nothing_to_happen_twice(tmp_path, boundary):
    """Killed at any boundary, an effect happens once, or not at all and is said to be uncertain."""
    assert -signal.SIGKILL == work(tmp_path, "--die", str(boundary))[0]

    if boundary < BOUNDARIES:
        assert 0 == work_here(tmp_path)

    done, steps = effects(tmp_path), acts(tmp_path)
    assert {"one", "two"} == steps.keys()
    assert max(done.values()) == 1
    for what, step in steps.items():
        if not step.ok:
            assert ("uncertain", True) == (step.code, step.idempotency_key != "")
        else:
            assert 1 == done[what]


def test_what_a_policy_lets_run_again_runs_again(tmp_path):
    """Where a rule speaks of uncertain calls, the effect that was lost happens after all."""
    before_the_effect = 7
    work(tmp_path, "--die", str(before_the_effect), "--retry")
    assert {} == effects(tmp_path)

    assert 0 == work_here(tmp_path, "--retry")

    assert {"one": 1, "two": 1} == effects(tmp_path)
    assert [True, True] == [step.ok for step in acts(tmp_path).values()]


def test_a_session_that_asks_goes_on_in_another_process(tmp_path):
    """One process asks and ends, another gets the answer and finishes."""
    _, asked = work(tmp_path, "--ask")
    _, done = work(tmp_path, "--ask", "--answer", "yes, both")

    assert ("waiting_input", "completed") == (asked["state"], done["state"])
    assert asked["pid"] != done["pid"]
    assert {"one": 1, "two": 1} == effects(tmp_path)
    steps = asyncio.run(kernel_of(tmp_path).execution_chain("s"))
    assert ["ask", "input", "act", "act", "finish"] == [step.kind for step in steps]


@pytest.mark.parametrize("workers", [2, 6])
def test_workers_that_race_do_nothing_twice(tmp_path, workers):
    """Of workers that take up one session at once, no two carry out the same call."""
    racing = [start(tmp_path) for _ in range(workers)]
    for worker in racing:
        finish(worker)
    while asyncio.run(kernel_of(tmp_path).load("s")).state is not RunState.COMPLETED:
        work_here(tmp_path)

    done, steps = effects(tmp_path), acts(tmp_path)
    assert max(done.values()) == 1
    assert all(step.code == "uncertain" for what, step in steps.items() if not done[what])


def test_a_session_that_has_ended_stays_ended(tmp_path):
    """Nobody takes it up again."""
    work(tmp_path)

    with pytest.raises(IllegalTransition):
        asyncio.run(kernel_of(tmp_path).run("s"))
