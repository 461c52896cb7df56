"""What a worker does that may be killed anywhere: a run in a store, and rows outside of it.

The run has seven steps: calls alone and side by side, async ones and ones in threads, one that is
denied, and an agent inside of a tool. What a tool does is a row in a database of which the store
knows nothing and that takes any number of the same. A worker comes to a boundary before and after
each record that it appends and each row that it inserts, and kills itself (-9) where it is told to.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from adjudge import SQLiteRunStore, ToolSet, compile_policy, tool
from adjudge_runtime import (
    FinalAnswer,
    ToolCall,
    ToolCalls,
    agent_tool,
    current_idempotency_key,
    replay,
    run_agent,
)

EFFECTS = ("first", "left", "right", "inner", "deep", "beside", "last")
NESTED = "/nested/3.0"
"""What the run of the agent inside of a tool adds to the name of its run."""

_NEVER = {"id": "never", "priority": 9, "match": {"tool": "erase"}, "decision": "deny"}
_ALL = {"id": "all", "match": "always", "decision": "allow"}
_LOST = {"id": "lost", "priority": 5, "match": {"context.extra.uncertain_retry": True}}
POLICIES = {
    "deny": [_NEVER, {**_LOST, "decision": "deny", "reason": "ask what became of it"}, _ALL],
    "silent": [_NEVER, _ALL],
    "again": [_NEVER, {**_LOST, "decision": "allow"}, _ALL],
}
"""What may become of a call whose outcome a crash lost; `silent` has never heard of such calls."""


@dataclass
class Place:
    """Where workers find their run, and what may become of what a crash lost."""

    folder: Path
    store: str
    policy: str = "deny"

    @property
    def effects(self) -> Path:
        """The database of the rows."""
        return self.folder / "effects.db"

    def open_store(self):
        """Open the store, with connections of this process alone."""
        return self.opens(self.store)

    @cached_property
    def opens(self):
        """What opens the store; looking it up imports it, which a worker need not do again."""
        if self.store.startswith(("postgres:", "postgresql:")):
            from adjudge_postgres import PostgresRunStore

            return PostgresRunStore
        if self.store.startswith(("redis:", "rediss:", "unix:")):
            from adjudge_redis import RedisRunStore

            return RedisRunStore
        return partial(SQLiteRunStore, busy_seconds=60)


@dataclass
class Boundaries:
    """What a worker has come to, by name; it dies at one of them."""

    kill_at: str | None = None
    passed: list[str] = field(default_factory=list)

    def come_to(self, name: str) -> None:
        """Come to a boundary, and go on or not."""
        self.passed.append(name)
        if name == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalStore:
    """A store with a boundary before and after each record.

    `meet`, if given, is called when the run has been read for the first time.
    """

    durable = True

    def __init__(self, store, run_id, boundaries, meet):
        self._store = store
        self._run_id = run_id
        self._boundaries = boundaries
        self._meet: Callable[[], None] | None = meet

    async def append(self, record):
        """Keep a record, between two boundaries."""
        place = f"{record.kind}{record.run_id.removeprefix(self._run_id)}"
        if "step" in record.body:
            place += f" {record.body['step']}"
        if "call" in record.body:
            place += f".{record.body['call']}"
        self._boundaries.come_to(f"before {place}")
        await self._store.append(record)
        self._boundaries.come_to(f"after {place}")

    async def load(self, run_id):
        """Give the records of a run."""
        records = await self._store.load(run_id)
        meet, self._meet = self._meet, None
        if meet is not None:
            meet()
        return records


class Script:
    """An agent that depends on the conversation alone; it answers with all that it was told."""

    def __init__(self, *actions):
        self._actions = actions

    async def step(self, conversation):
        """Choose by how far the conversation has come."""
        step = sum(message.role == "assistant" for message in conversation)
        if step < len(self._actions):
            return self._actions[step]
        about = {
            call.call_id: call.args.get("name", call.tool)
            for message in conversation
            for call in message.tool_calls
        }
        told = {
            about[message.tool_call_id]: message.content
            for message in conversation
            if message.role == "tool"
        }
        return FinalAnswer(json.dumps(told))


def do(name):
    """Propose an effect on the event loop."""
    return ToolCall("do", {"name": name})


def do_in_thread(name):
    """Propose an effect from plain code, which runs in a thread."""
    return ToolCall("do_in_thread", {"name": name})


def made(place, run_id, boundaries):
    """Give the agent of the run, and its tools."""

    def put_down(name: str) -> str:
        boundaries.come_to(f"before effect {name}")
        row = (run_id, name, current_idempotency_key(), os.getpid())
        with closing(sqlite3.connect(place.effects, timeout=60)) as database, database:
            # A killed process loses nothing of this, and no test cuts the power.
            database.execute("PRAGMA synchronous = OFF")
            database.execute("INSERT INTO effects VALUES (?, ?, ?, ?)", row)
        boundaries.come_to(f"after effect {name}")
        return f"{name} done"

    @tool(name="do")
    async def on_the_loop(name: str) -> str:
        return put_down(name)

    @tool(name="do_in_thread")
    def in_a_thread(name: str) -> str:
        return put_down(name)

    @tool()
    def erase() -> str:
        return put_down("erase")

    effects = ToolSet([on_the_loop, in_a_thread])
    helper = agent_tool(Script(do_in_thread("inner"), do("deep")), name="helper", tools=effects)
    agent = Script(
        do("first"),
        ToolCalls((do_in_thread("left"), do("right"))),
        ToolCall("erase", {}),
        ToolCalls((ToolCall("helper", {"task": "help"}), do("beside"))),
        ToolCall("erase", {}),
        do_in_thread("last"),
    )
    return agent, ToolSet([on_the_loop, in_a_thread, erase, helper])


def work(place, run_id, *, kill_at=None, meet=None, tries=1):
    """Go on with the run, in this process; tell how that ended.

    A worker that is superseded takes the run up again after a moment, as long as it has `tries`.
    """
    boundaries = Boundaries(kill_at)
    store = place.open_store()
    agent, tools = made(place, run_id, boundaries)
    policy = compile_policy({"version": 1, "rules": POLICIES[place.policy]})

    async def attempt():
        kept = MortalStore(store, run_id, boundaries, meet)
        return await run_agent(agent, "work", tools=tools, policy=policy, store=kept, run_id=run_id)

    async def attempts():
        superseded = 0
        result = await attempt()
        while result.code == "superseded" and superseded < tries - 1:
            superseded += 1
            await asyncio.sleep(random.uniform(0, 0.05))
            result = await attempt()
        return {
            "pid": os.getpid(),
            "code": result.code,
            "error": result.error,
            "answer": result.final_answer,
            "superseded": superseded + (result.code == "superseded"),
            "passed": boundaries.passed,
            **(await settled(store, run_id) if result.code == "" else {}),
        }

    try:
        return asyncio.run(attempts())
    finally:
        store.close()


async def settled(store, run_id):
    """Give whether each effect that was lost ran again, and how often each key was claimed."""
    journals = [await store.load(each) for each in (run_id, run_id + NESTED)]
    lost = {
        step.args["name"]: step.ok
        for records in journals
        for step in replay(records).steps
        if step.resolved_uncertain
    }
    claims = Counter(
        record.idempotency_key
        for records in journals
        for record in records
        if record.kind == "action.intent"
    )
    return {"lost": lost, "claims": claims}
