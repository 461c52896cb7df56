"""A worker: told to go by a line, it takes runs from the queue, until it is killed or told to end.

Shows: all that a worker has to have. The agents are functions here and names in the queue; the
journal and the approvals are in PostgreSQL; the queue and the hand-over are those of DBOS. Needs:
`adjudge-dbos`, and a PostgreSQL server; no key, no network.

    python worker.py NAME URL
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import psycopg
from dbos import DBOS

from adjudge import ToolSet, compile_policy, tool
from adjudge_dbos import QUEUE, AgentSetup, GovernedRuns, RunOrder
from adjudge_postgres import PostgresLedger, PostgresRunStore
from adjudge_runtime import FinalAnswer, Message, ToolCall, current_idempotency_key

POLICY = compile_policy(
    {
        "version": 1,
        "rules": [
            {"id": "small-refunds", "match": {"tool": "refund"}, "decision": "allow"},
        ],
    }
)
REFUNDS = 3


class Clerk:
    """Stands for a model: refunds three customers one after the other, and says so."""

    name = "clerk"

    async def step(self, conversation: Sequence[Message]) -> ToolCall | FinalAnswer:
        """Choose by the conversation alone, as whoever goes on with a run has to."""
        told = [message.content for message in conversation if message.role == "tool"]
        if len(told) < REFUNDS:
            return ToolCall("refund", {"customer": len(told) + 1})
        return FinalAnswer("; ".join(told))


def main(name: str, url: str) -> None:
    """Serve the queue."""

    @tool()
    def refund(customer: int) -> str:
        """Refund a customer, by a row in a table that no journal knows."""
        key = current_idempotency_key()
        print(f"{name} begins a refund", flush=True)
        with psycopg.connect(url) as connection:
            connection.execute("SELECT pg_sleep(0.05)")
            connection.execute("INSERT INTO refunds VALUES (%s, %s)", (key, name))
        return f"customer {customer} refunded"

    def clerk(order: RunOrder) -> AgentSetup:
        return AgentSetup(agent=Clerk(), tools=ToolSet.from_functions(refund), policy=POLICY)

    GovernedRuns({"clerk": clerk}, store=PostgresRunStore(url), ledger=PostgresLedger(url))
    DBOS(
        config={
            "name": "refunds",
            "system_database_url": url,
            "executor_id": name,
            "application_version": "1",
            "log_level": "CRITICAL",
        }
    )
    sys.stdin.readline()
    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=2, polling_interval_sec=0.1)
    print(f"{name} is ready", flush=True)
    sys.stdin.read()
    DBOS.destroy()


if __name__ == "__main__":
    main(*sys.argv[1:])
