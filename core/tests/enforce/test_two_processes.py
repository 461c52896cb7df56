"""A pause that is resumed in real other processes, over one SQLite file."""

import asyncio
import json
import os
import subprocess
import sys

from adjudge._enforcement.approvals import pause_approval
from adjudge._ledger.entries import EntryState
from adjudge._ledger.sqlite import SQLiteLedger
from adjudge._types import ApprovalDecision, Outcome

RULES = [{"id": "r0", "match": "always", "decision": "approve_required"}]

WORKER = """
import asyncio, json, os, sys, time
from pathlib import Path
from adjudge._enforcement.approvals import pause_approval
from adjudge._enforcement.guard import ToolGuard
from adjudge._ledger.sqlite import SQLiteLedger
from adjudge._enforcement.tools import ToolSet, tool
from adjudge._types import ApprovalDecision
from adjudge.policy import compile_policy

path, pending, spy, mode = sys.argv[1:]

@tool(name="pay")
async def pay(to: str, amount: int = 5):
    with open(spy, "a") as file:
        file.write(f"{os.getpid()} {to} {amount}\\n")
    if mode == "crash":
        os._exit(9)
    return "paid"

async def main():
    guard = ToolGuard(
        policy=compile_policy({"version": 1, "rules": json.loads(sys.stdin.readline())}),
        tools=ToolSet.from_functions(pay),
        on_approval=pause_approval(SQLiteLedger(path)),
    )
    print("ready", flush=True)
    sys.stdin.readline()
    call = await guard.resume(pending, ApprovalDecision(True, "ana"))
    print(json.dumps([os.getpid(), call.outcome.value, call.result.code]), flush=True)

asyncio.run(main())
"""


class Worker:
    """A process that resumes when it is told to."""

    def __init__(self, *args):
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._process.stdin.write(json.dumps(RULES) + "\n")
        self._process.stdin.flush()

    def wait_until_ready(self):
        """Wait until it needs only the word to go."""
        assert self._process.stdout.readline() == "ready\n"

    def go(self):
        """Tell it to resume."""
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def answer(self):
        """Give what it says, None where it died."""
        said, _ = self._process.communicate(timeout=60)
        return json.loads(said) if said else None


def pause(bench, path):
    """Pause a call in this process."""
    guard = bench.guard(*RULES, on_approval=pause_approval(SQLiteLedger(path)))
    return guard, asyncio.run(guard.check("pay", {"to": "x"}))


def test_two_processes_that_resume_at_once_run_the_body_once(bench, tmp_path):
    """Clause 24: one goes on, the other is told so, and the body ran once, in another process."""
    path, spy = tmp_path / "ledger.sqlite", tmp_path / "spy"
    _, call = pause(bench, path)
    workers = [Worker(path, call.pending.id, spy, "run") for _ in range(2)]
    for worker in workers:
        worker.wait_until_ready()
    for worker in workers:
        worker.go()

    answers = [worker.answer() for worker in workers]
    runs = spy.read_text().splitlines()

    assert sorted(outcome for _, outcome, _ in answers) == ["completed", "denied"]
    assert len(runs) == 1
    assert len({os.getpid(), *(pid for pid, _, _ in answers)}) == 3
    assert bench.ran == []


def test_a_process_that_dies_in_the_body_leaves_the_call_uncertain(bench, tmp_path):
    """Law 6, fault B025: after a crash the call is uncertain, and nobody runs it again."""
    path, spy = tmp_path / "ledger.sqlite", tmp_path / "spy"
    guard, call = pause(bench, path)
    worker = Worker(path, call.pending.id, spy, "crash")
    worker.wait_until_ready()
    worker.go()
    died = worker.answer()

    again = [
        asyncio.run(guard.resume(call.pending.id, ApprovalDecision(True, "ana"))) for _ in range(2)
    ]
    entry = SQLiteLedger(path).get(call.pending.id)

    assert died is None
    assert [item.outcome for item in again] == [Outcome.DENIED] * 2
    assert [item.result.code for item in again] == ["uncertain"] * 2
    assert entry.state is EntryState.CLAIMED
    assert len(spy.read_text().splitlines()) == 1
    assert bench.ran == []


def test_a_process_with_another_ledger_denies(bench, tmp_path):
    """A process whose guard cannot see the entry denies."""
    spy = tmp_path / "spy"
    _, call = pause(bench, tmp_path / "ledger.sqlite")
    worker = Worker(tmp_path / "other.sqlite", call.pending.id, spy, "run")
    worker.wait_until_ready()
    worker.go()

    _, outcome, code = worker.answer()

    assert (outcome, code) == ("denied", "unknown_approval")
    assert not spy.exists()
