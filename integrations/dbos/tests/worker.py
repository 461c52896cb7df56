"""One worker, in a process of its own: `python worker.py SETTINGS`, settings being JSON.

Prints `ready` once DBOS runs, and a line for each boundary that its runs cross. It kills itself
with SIGKILL at the boundary of the number `die_at`, or so many seconds after the first of them as
`die_after` says; it ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence

import psycopg
from dbos import DBOS

from adjudge import CancelToken, LedgerError, StepRecord, StoreError, ToolSet, compile_policy, tool
from adjudge.integration import LedgerEntry
from adjudge_dbos import AgentSetup, GovernedRuns, RunOrder
from adjudge_postgres import PostgresLedger, PostgresRunStore
from adjudge_runtime import Budget, FinalAnswer, Message, ToolCall, current_idempotency_key

ALLOW = {"id": "all", "match": "always", "decision": "allow"}
ASK = {"id": "ask", "match": {"tool": "pay"}, "decision": "approve_required", "approvers": ["ana"]}


class Boundaries:
    """The places at which this process can be killed."""

    def __init__(self, die_at: int | None, die_after: float | None) -> None:
        self._left = die_at
        self._after = die_after

    def cross(self, name: str) -> None:
        """Say that a boundary was reached, and die there if it is the one."""
        print(name, flush=True)
        if self._after is not None:
            threading.Timer(self._after, _die).start()
            self._after = None
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Watched(PostgresRunStore):
    """A store that tells of each append, before it and after it."""

    boundaries: Boundaries
    fails = 0

    async def append(self, record: StepRecord) -> None:
        """Keep a step."""
        if self.fails and record.kind == "action.result":
            self.fails -= 1
            raise StoreError("the store is not to be had")
        self.boundaries.cross(f"before {record.run_id} {record.kind}")
        await super().append(record)
        self.boundaries.cross(f"after {record.run_id} {record.kind}")


class Failing(PostgresLedger):
    """A ledger that cannot read its runs for a while."""

    fails = 0

    def of_run(self, run: str) -> tuple[LedgerEntry, ...]:
        """Give the entries of a run."""
        if self.fails:
            self.fails -= 1
            raise LedgerError("the ledger is not to be had")
        return super().of_run(run)


def blind() -> None:
    """Let the first look at a workflow's status fail."""
    look = DBOS.get_workflow_status_async
    left = [1]

    async def once(workflow_id: str) -> object:
        if left:
            left.clear()
            print("blind", flush=True)
            raise OSError("the status is not to be had")
        return await look(workflow_id)

    DBOS.get_workflow_status_async = once


class Payer:
    """Pays as often as its task says, and then says so; it depends on the conversation alone."""

    name = "payer"

    def __init__(self, think: Callable[[], object]) -> None:
        self._think = think

    async def step(self, conversation: Sequence[Message]) -> ToolCall | FinalAnswer:
        """Propose the next payment, or answer."""
        await asyncio.to_thread(self._think)
        done = sum(message.role == "tool" for message in conversation)
        times, _, size = conversation[0].content.partition(" ")
        if done < int(times):
            return ToolCall("pay", {"number": done})
        return FinalAnswer("x" * int(size) if size else f"paid {done}")


def main() -> None:
    """Serve until standard input is closed."""
    settings = json.loads(sys.argv[1])
    url, schema = settings["url"], settings["schema"]
    boundaries = Boundaries(settings.get("die_at"), settings.get("die_after"))
    store = Watched(url, schema=schema)
    store.boundaries = boundaries
    store.fails = settings.get("fails", 0)
    world = psycopg.connect(url, autocommit=True)
    words: queue.SimpleQueue[str] = queue.SimpleQueue()

    @tool()
    def pay(number: int) -> str:
        """Pay once, in a table that no journal knows."""
        key = current_idempotency_key()
        boundaries.cross(f"body {number}")
        if settings.get("holds"):
            words.get()
        if settings.get("slow"):
            world.execute("SELECT pg_sleep(0.02)")
        world.execute(
            f'INSERT INTO "{schema}".paid (key, worker) VALUES (%s, %s)',
            (key, settings["executor"]),
        )
        boundaries.cross(f"paid {number}")
        return f"paid {number}"

    def think() -> None:
        if settings.get("thinks"):
            print("thinking", flush=True)
            words.get()

    def payer(order: RunOrder) -> AgentSetup:
        rule = ASK if order.agent == "asker" else ALLOW
        return AgentSetup(
            agent=Payer(think),
            budget=Budget.unlimited(),
            cancel=cancel,
            tools=ToolSet.from_functions(pay),
            policy=compile_policy({"version": 1, "rules": [{**rule, **settings.get("rule", {})}]}),
        )

    cancel = CancelToken()
    if settings.get("stopped"):
        cancel.cancel("the operator stopped this worker")

    def broken(order: RunOrder) -> AgentSetup:
        raise RuntimeError("the agent's model is not to be had")

    if settings.get("blind"):
        blind()
    agents = {"payer": payer, "asker": payer, "broken": broken}
    ledger = Failing(url, schema=schema)
    ledger.fails = settings.get("ledger_fails", 0)
    GovernedRuns(
        agents,
        store=store,
        ledger=ledger,
        watch_seconds=settings.get("watch_seconds", 0.1),
        store_attempts=3,
    )
    DBOS(
        config={
            "name": "adjudge-tests",
            "system_database_url": url,
            "executor_id": settings["executor"],
            "application_version": "1",
            "log_level": settings.get("log", "CRITICAL"),
            "notification_listener_polling_interval_sec": 0.1,
        }
    )
    DBOS.listen_queues(settings["queues"])
    DBOS.launch()
    for name in settings["queues"]:
        DBOS.register_queue(name, polling_interval_sec=0.1)
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        words.put(line)
    DBOS.destroy(workflow_completion_timeout_sec=30)


if __name__ == "__main__":
    main()
