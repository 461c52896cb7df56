"""A call that waits in one process and goes on in another, over PostgreSQL."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

from adjudge import (
    ApprovalDecision,
    Outcome,
    ToolGuard,
    ToolSet,
    compile_policy,
    pause_approval,
    tool,
)
from adjudge.integration import EntryState, GovernedRun, ProposedCall, Replay
from adjudge_postgres import PostgresLedger

RULE = {"id": "r0", "match": "always", "decision": "approve_required"}
POLICY = compile_policy({"version": 1, "rules": [RULE]})
GRANT = ApprovalDecision(True, "ana")

WORKER = """
import asyncio, json, os, sys
from adjudge import ApprovalDecision, ToolGuard, ToolSet, compile_policy, pause_approval, tool
from adjudge.integration import GovernedRun, ProposedCall
from adjudge_postgres import PostgresLedger

url, schema, kind, pending, spy, mode = sys.argv[1:]

@tool(name="pay")
async def pay(to: str):
    with open(spy, "a") as file:
        file.write(f"{os.getpid()} {to}\\n")
    if mode == "hang":
        print(os.getpid(), flush=True)
        await asyncio.sleep(600)
    return "paid"

rules = [{"id": "r0", "match": "always", "decision": "approve_required"}]
guard = ToolGuard(
    policy=compile_policy({"version": 1, "rules": rules}),
    tools=ToolSet.from_functions(pay),
    on_approval=pause_approval(PostgresLedger(url, schema=schema)),
)

async def resume():
    return await guard.resume(pending, ApprovalDecision(True, "ana"))

async def go_on():
    run = GovernedRun(pending, guard.ledger.of_run(pending))
    call = ProposedCall("pay", '{"to": "x"}', call_id="c1", run=run)
    return await guard.govern_call(call, lambda effective: pay(**effective.args))

print("ready", flush=True)
sys.stdin.readline()
done = asyncio.run(resume() if kind == "call" else go_on())
print(json.dumps([os.getpid(), done.outcome.value, done.result.code]), flush=True)
"""


@tool(name="pay")
def pay(to: str) -> str:
    """Pay somebody; never in this process."""
    raise AssertionError(to)


class Desk:
    """A guard over the ledger, a call that waits in it, and processes that go on with it."""

    def __init__(self, url, schema, folder):
        self._url, self._schema, self._spy = url, schema, folder / "spy"
        self.ledger = PostgresLedger(url, schema=schema)
        self.guard = ToolGuard(
            policy=POLICY,
            tools=ToolSet.from_functions(pay),
            on_approval=pause_approval(self.ledger),
        )

    def leave_waiting(self, kind):
        """Leave a call waiting, or a run whose call is answered; give the id that it goes on by."""
        if kind == "call":
            return asyncio.run(self.guard.check("pay", {"to": "x"})).pending.id
        run = GovernedRun()
        call = ProposedCall("pay", '{"to": "x"}', call_id="c1", run=run)

        async def begin():
            pending = (await self.guard.govern_call(call, self.never)).pending
            await self.guard.reopen({pending.id: GRANT})

        asyncio.run(begin())
        return run.id

    async def never(self, effective):
        """Fail, because the body has no business in this process."""
        raise AssertionError(effective)

    def start(self, kind, pending, mode="run"):
        """Start a process that goes on when it is told to."""
        arguments = [self._url, self._schema, kind, pending, str(self._spy), mode]
        return subprocess.Popen(
            [sys.executable, "-c", WORKER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ran(self):
        """Give which processes ran the body."""
        if not self._spy.exists():
            return []
        return [int(line.split()[0]) for line in self._spy.read_text("utf-8").splitlines()]


def go(*processes):
    """Tell processes to go on, once all of them need no more than that."""
    for process in processes:
        assert "ready\n" == process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def answer(process):
    """Give what it says in the end, None where it died."""
    said, _ = process.communicate(timeout=60)
    return json.loads(said) if said else None


@pytest.fixture
def desk(url, schema, tmp_path):
    """Make a desk with an empty ledger."""
    return Desk(url, schema, tmp_path)


@pytest.mark.parametrize("kind", ["call", "run"])
def test_two_processes_that_go_on_at_once_run_the_body_once(desk, kind):
    """Clause 24: one goes on, the other is told so, and the body ran once, in another process."""
    pending = desk.leave_waiting(kind)
    workers = [desk.start(kind, pending) for _ in range(2)]
    go(*workers)

    answers = [answer(worker) for worker in workers]
    by_outcome = {outcome: (process, code) for process, outcome, code in answers}

    assert ["completed", "denied"] == sorted(by_outcome)
    assert by_outcome["denied"][1] in ("uncertain", "approval_spent")
    assert [by_outcome["completed"][0]] == desk.ran()
    assert os.getpid() not in {process for process, _, _ in answers}


@pytest.mark.parametrize("kind", ["call", "run"])
def test_a_process_that_is_killed_in_the_body_leaves_the_call_uncertain(desk, kind):
    """Law 6, fault B025: between claim and settling nobody knows, so nobody runs it again."""
    pending = desk.leave_waiting(kind)
    worker = desk.start(kind, pending, "hang")
    go(worker)
    assert f"{worker.pid}\n" == worker.stdout.readline()
    worker.kill()
    assert answer(worker) is None
    again = desk.start(kind, pending)

    go(again)

    assert [again.pid, "denied", "uncertain"] == answer(again)
    assert [worker.pid] == desk.ran()
    entries = desk.ledger.of_run(pending) if kind == "run" else (desk.ledger.get(pending),)
    assert [EntryState.CLAIMED] == [entry.state for entry in entries]


def test_a_process_with_another_schema_knows_nothing_of_it(desk, url, schema, execute):
    """What one ledger holds is no approval in another."""
    pending = desk.leave_waiting("call")
    other = Desk.__new__(Desk)
    other.__dict__ |= {**desk.__dict__, "_schema": f"{schema} b"}
    try:
        worker = other.start("call", pending)
        go(worker)

        assert [worker.pid, "denied", "unknown_approval"] == answer(worker)
    finally:
        execute("DROP SCHEMA {schema} CASCADE", schema=f"{schema} b")


def test_many_calls_of_one_loop_are_claimed_once_each(url, schema):
    """The guard's async door uses the ledger in threads, and its loop goes on meanwhile."""
    paid = []

    @tool(name="pay")
    async def pay_once(to: str) -> str:
        paid.append(to)
        return to

    guard = ToolGuard(
        policy=POLICY,
        tools=ToolSet.from_functions(pay_once),
        on_approval=pause_approval(PostgresLedger(url, schema=schema)),
    )

    async def work():
        names = [f"n{n}" for n in range(20)]
        waiting = await asyncio.gather(*(guard.check("pay", {"to": name}) for name in names))
        twice = [each.pending.id for each in waiting] * 2
        return await asyncio.gather(*(guard.resume(each, GRANT) for each in twice))

    done = [each.outcome for each in asyncio.run(work())]

    assert [20, 20] == [done.count(Outcome.COMPLETED), done.count(Outcome.DENIED)]
    assert sorted(f"n{n}" for n in range(20)) == sorted(paid)


def test_the_sync_door_does_the_same(url, schema):
    """Without a loop, in the caller's own thread."""
    paid = []

    @tool(name="pay")
    def pay_once(to: str) -> str:
        paid.append(to)
        return to

    guard = ToolGuard(
        policy=POLICY,
        tools=ToolSet.from_functions(pay_once),
        on_approval=pause_approval(PostgresLedger(url, schema=schema)),
    )
    waiting = guard.check_sync("pay", {"to": "x"}).pending

    outcomes = [guard.resume_sync(waiting.id, GRANT).outcome for _ in range(2)]

    assert [Outcome.COMPLETED, Outcome.DENIED] == outcomes
    assert ["x"] == paid


def test_what_a_call_gave_is_given_again_and_nothing_runs(desk, url, schema):
    """A run that starts over finds each finished call where the ledger has it, as it was."""
    allowing = compile_policy({"version": 1, "rules": [{**RULE, "decision": "allow"}]})
    guard = ToolGuard(policy=allowing, ledger=desk.ledger)
    replay = Replay(keep=lambda ended: {"value": ended}, give=lambda kept: kept["value"])
    value = {"to": "é \0", "amount": 1.10}
    run = GovernedRun()

    def propose(run):
        return ProposedCall(
            "pay", '{"to": "x"}', call_id="c1", run=run, key="task", attempt=1, replay=replay
        )

    async def body(effective):
        return value

    async def both():
        first = await guard.govern_call(propose(run), body)
        ledger = PostgresLedger(url, schema=schema)
        elsewhere = ToolGuard(policy=allowing, ledger=ledger)
        again = GovernedRun(run.id, ledger.of_run(run.id))
        return first, await elsewhere.govern_call(propose(again), desk.never)

    first, second = asyncio.run(both())

    assert [False, True] == [first.replayed, second.replayed]
    assert value == second.result.value
    assert ["to", "amount"] == list(second.result.value)
