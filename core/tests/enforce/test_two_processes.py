"""A pause that is resumed in real other processes, over one SQLite file."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from adjudge._arguments.proposal import ProposedCall
from adjudge._enforcement.approvals import pause_approval
from adjudge._enforcement.runs import GovernedRun
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

    def __init__(self, *args, program=WORKER, rules=RULES):
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._process.stdin.write(json.dumps(rules) + "\n")
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


RUN_WORKER = """
import asyncio, json, os, sys
from dataclasses import replace
from adjudge import SQLiteLedger, ToolGuard, compile_policy, pause_approval
from adjudge.integration import GovernedRun, ProposedCall

path, run, spy, mode = sys.argv[1:]
ledger = SQLiteLedger(path)

class Suspended(BaseException):
    pass

async def body(effective):
    with open(spy, "a") as file:
        file.write(f"{os.getpid()} {effective.args['to']}\\n")
    if mode == "crash":
        os._exit(9)
    return "paid"

async def main():
    guard = ToolGuard(
        policy=compile_policy({"version": 1, "rules": json.loads(sys.stdin.readline())}),
        on_approval=pause_approval(ledger),
    )
    print("ready", flush=True)
    sys.stdin.readline()
    again = GovernedRun(run, ledger.of_run(run))
    call = ProposedCall("pay", '{"to": "x"}', call_id="c1", run=again, control_flow=(Suspended,))
    done = await guard.govern_call(call, body)
    print(json.dumps([os.getpid(), done.outcome.value, done.result.code]), flush=True)

asyncio.run(main())
"""


class Suspended(BaseException):
    """How a framework leaves a body whose inside waits."""


def begin_run(bench, path, body=None, *, answer=True):
    """Leave a run waiting in this process, its call answered or suspended; give guard and run."""
    rules = RULES if body is None else [{**RULES[0], "decision": "allow"}]
    guard = bench.guard(*rules, on_approval=pause_approval(SQLiteLedger(path)))
    run = GovernedRun()
    call = ProposedCall("pay", '{"to": "x"}', call_id="c1", run=run, control_flow=(Suspended,))

    async def begin():
        pending = (await guard.govern_call(call, body)).pending
        if answer:
            await guard.reopen({pending.id: ApprovalDecision(True, "ana")})

    with contextlib.suppress(Suspended):
        asyncio.run(begin())
    return guard, call


async def suspend(_):
    """Leave the body."""
    raise Suspended


@pytest.mark.parametrize("kind", ["answered", "suspended"])
def test_two_processes_that_go_on_with_a_run_at_once_run_the_body_once(bench, tmp_path, kind):
    """Clause 24, law 6: one goes on, the other is told so, whatever the call waited for."""
    path, spy = tmp_path / "ledger.sqlite", tmp_path / "spy"
    suspended = kind == "suspended"
    _, call = begin_run(bench, path, suspend if suspended else None)
    rules = [{**RULES[0], "decision": "allow"}] if suspended else RULES
    workers = [
        Worker(path, call.run.id, spy, "run", program=RUN_WORKER, rules=rules) for _ in range(2)
    ]
    for worker in workers:
        worker.wait_until_ready()
    for worker in workers:
        worker.go()

    answers = [worker.answer() for worker in workers]
    (seen,) = spy.read_text().splitlines()
    codes = {outcome: code for _, outcome, code in answers}

    assert ["completed", "denied"] == sorted(codes)
    assert codes["denied"] in ("uncertain", "approval_spent")
    assert 3 == len({os.getpid(), *(pid for pid, _, _ in answers)})
    assert seen.split()[0] == str(
        next(pid for pid, outcome, _ in answers if outcome == "completed")
    )


def test_a_run_that_dies_in_the_body_leaves_its_call_uncertain(bench, tmp_path):
    """Law 6, fault B025: after a crash nobody goes on with the call, whatever is answered."""
    path, spy = tmp_path / "ledger.sqlite", tmp_path / "spy"
    guard, call = begin_run(bench, path)
    worker = Worker(path, call.run.id, spy, "crash", program=RUN_WORKER)
    worker.wait_until_ready()
    worker.go()
    died = worker.answer()
    ledger = SQLiteLedger(path)
    (entry,) = ledger.of_run(call.run.id)

    async def go_on():
        run = await guard.reopen({entry.id: ApprovalDecision(True, "ana")})
        return await guard.govern_call(replace(call, run=run), suspend)

    again = asyncio.run(go_on())

    assert (None, "uncertain") == (died, again.result.code)
    assert EntryState.CLAIMED is entry.state
    assert 1 == len(spy.read_text().splitlines())


def test_a_run_in_another_ledger_is_a_new_one(bench, tmp_path):
    """A process that cannot see the entries has a call that nobody was asked about."""
    spy = tmp_path / "spy"
    _, call = begin_run(bench, tmp_path / "ledger.sqlite")
    worker = Worker(tmp_path / "other.sqlite", call.run.id, spy, "run", program=RUN_WORKER)
    worker.wait_until_ready()
    worker.go()

    _, outcome, _ = worker.answer()

    assert "pending" == outcome
    assert not spy.exists()
