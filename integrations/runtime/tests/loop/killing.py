"""Kills workers in the middle of their runs, goes on with the runs, and counts what was done.

Each worker is a process of its own, forked from this one, that has a run in a SQLite store and does
something outside of it: a row in another database. It ends itself with SIGKILL at a boundary:
before and after each record and each row, before each model call. Then the run goes on in another
process.

    python killing.py FOLDER KILLS RACES

prints as JSON what was found; what must not be is an error.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
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

EFFECTS = ("first", "left", "right", "inside")
ALLOW = {"id": "all", "match": "always", "decision": "allow"}
AGAIN = {
    "id": "again",
    "priority": 1,
    "match": {"context.extra.uncertain_retry": True},
    "decision": "allow",
}
STRICT = compile_policy({"version": 1, "rules": [ALLOW]})
RETRYING = compile_policy({"version": 1, "rules": [AGAIN, ALLOW]})


class Boundaries:
    """Counts the boundaries that a worker passes, and kills it at one of them."""

    def __init__(self, kill_at: int | None) -> None:
        self.passed = 0
        self.kill_at = kill_at

    def pass_one(self) -> None:
        """Pass a boundary, or not."""
        self.passed += 1
        if self.passed == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class Store(SQLiteRunStore):
    """A store with a boundary before and after each record."""

    def __init__(self, path: Path, boundaries: Boundaries) -> None:
        super().__init__(path)
        self.boundaries = boundaries

    async def append(self, record):
        """Keep a record, and pass the boundaries around it."""
        self.boundaries.pass_one()
        await super().append(record)
        self.boundaries.pass_one()


class Script:
    """An agent that depends on the conversation alone."""

    def __init__(self, boundaries, *actions):
        self.boundaries = boundaries
        self.actions = actions

    async def step(self, conversation):
        """Choose by how far the conversation has come."""
        self.boundaries.pass_one()
        return self.actions[sum(message.role == "assistant" for message in conversation)]


def made(folder: Path, run_id: str, boundaries: Boundaries, *, retrying: bool):
    """Make the agent and the tools of a run."""

    def put_down(name: str) -> str:
        boundaries.pass_one()
        key = current_idempotency_key() if retrying else os.urandom(8).hex()
        with sqlite3.connect(folder / "effects.db", timeout=30) as database:
            # What a service with idempotency keys does; without one, each call is another.
            database.execute("INSERT OR IGNORE INTO effects VALUES (?, ?, ?)", (run_id, name, key))
        database.close()
        boundaries.pass_one()
        return f"{name} done"

    @tool()
    async def act(name: str) -> str:
        return put_down(name)

    @tool()
    def act_in_thread(name: str) -> str:
        return put_down(name)

    inner = Script(boundaries, ToolCall("act", {"name": "inside"}), FinalAnswer("inner"))
    helper = agent_tool(inner, name="helper", tools=ToolSet([act]))
    agent = Script(
        boundaries,
        ToolCall("act", {"name": "first"}),
        ToolCalls(
            (ToolCall("act_in_thread", {"name": "left"}), ToolCall("act", {"name": "right"}))
        ),
        ToolCall("helper", {"task": "help"}),
        FinalAnswer("done"),
    )
    return agent, ToolSet([act, act_in_thread, helper])


def work(folder: Path, run_id: str, kill_at: int | None, *, retrying: bool) -> tuple[str, int]:
    """Do the work of one worker, in this process; give how it ended and what it passed."""
    boundaries = Boundaries(kill_at)
    store = Store(folder / "runs.db", boundaries)
    agent, tools = made(folder, run_id, boundaries, retrying=retrying)
    result = asyncio.run(
        run_agent(
            agent,
            "work",
            tools=tools,
            policy=RETRYING if retrying else STRICT,
            store=store,
            run_id=run_id,
        )
    )
    store.close()
    return result.code or result.final_answer or "", boundaries.passed


def forked(folder: Path, run_id: str, kill_at: int | None, *, retrying: bool) -> int:
    """Start a worker, and give its process."""
    child = os.fork()
    if child:
        return child
    try:
        ended, passed = work(folder, run_id, kill_at, retrying=retrying)
        (folder / f"{os.getpid()}.json").write_text(json.dumps([ended, passed]))
        os._exit(0)
    except BaseException as error:
        sys.stderr.write(f"{run_id}: {error!r}\n")
        os._exit(1)


def ended(folder: Path, child: int) -> tuple[str, int] | None:
    """Wait for a worker, and give how it ended; None where it was killed."""
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return None
    assert os.WEXITSTATUS(status) == 0, status
    report = folder / f"{child}.json"
    found = json.loads(report.read_text())
    report.unlink()
    return found[0], found[1]


def counted(folder: Path, run_id: str) -> dict[str, int]:
    """Give how many rows there are of each effect of a run."""
    with sqlite3.connect(folder / "effects.db", timeout=30) as database:
        rows = database.execute(
            "SELECT name, COUNT(*) FROM effects WHERE run = ? GROUP BY name", (run_id,)
        ).fetchall()
    database.close()
    return dict.fromkeys(EFFECTS, 0) | dict(rows)


def uncertain(folder: Path, run_id: str) -> set[str]:
    """Give the effects of a run that were reported as uncertain."""
    store = SQLiteRunStore(folder / "runs.db")
    found = set()
    for each in (run_id, f"{run_id}/2.0"):
        for step in replay(asyncio.run(store.load(each))).steps:
            if step.resolved_uncertain and not step.ok:
                found.add(step.args["name"])
    store.close()
    return found


def check(folder: Path, run_id: str, *, retrying: bool) -> int:
    """Hold a run that has ended to its promise, and give how many effects were uncertain."""
    rows, unknown = counted(folder, run_id), uncertain(folder, run_id)
    for name, count in rows.items():
        assert count <= 1, f"{run_id}: {name} was done {count} times"
        assert count == 1 or name in unknown, f"{run_id}: {name} was lost without a word"
    assert not (retrying and unknown), f"{run_id}: {unknown} uncertain in spite of a rule"
    return len(unknown)


def kill(folder: Path, kills: int, found: dict[str, int]) -> None:
    """Kill workers at each boundary in turn, twice in a row now and then, and go on."""
    dice = random.Random(17)
    _, passed = ended(folder, forked(folder, "whole", None, retrying=False)) or ("", 0)
    found["boundaries"] = passed
    number = 0
    while found["kills"] < kills:
        number += 1
        retrying, run_id = number % 2 == 0, f"run-{number}"
        kill_at: int | None = (number - 1) // 2 % passed + 1
        while kill_at is not None:
            ending = ended(folder, forked(folder, run_id, kill_at, retrying=retrying))
            found["kills"] += ending is None
            kill_at = dice.randint(1, passed) if ending is None and dice.random() < 0.3 else None
        ending = ended(folder, forked(folder, run_id, None, retrying=retrying))
        assert ending is not None, run_id
        assert ending[0] == "done", (run_id, ending)
        found["uncertain"] += check(folder, run_id, retrying=retrying)
        found["runs"] += 1


def race(folder: Path, races: int, found: dict[str, int]) -> None:
    """Have two and eight workers race for one run, some of them killed, and go on."""
    dice = random.Random(18)
    for number in range(races):
        workers, run_id = (2, 8)[number % 2], f"race-{number}"
        limits = [dice.randint(1, 60) if dice.random() < 0.3 else None for _ in range(workers)]
        children = [forked(folder, run_id, limit, retrying=False) for limit in limits]
        endings = [ended(folder, child) for child in children]
        found["superseded"] += sum(each is not None and each[0] == "superseded" for each in endings)
        found["kills"] += endings.count(None)
        ending = ended(folder, forked(folder, run_id, None, retrying=False))
        assert ending is not None, run_id
        assert ending[0] == "done", (run_id, ending)
        found["uncertain"] += check(folder, run_id, retrying=False)
        found["races"] += 1


def main(folder: Path, kills: int, races: int) -> None:
    """Kill, race, and say what was found."""
    with sqlite3.connect(folder / "effects.db") as database:
        database.execute("CREATE TABLE effects (run TEXT, name TEXT, key TEXT UNIQUE)")
    database.close()
    names = ("kills", "runs", "races", "superseded", "uncertain", "boundaries")
    found = dict.fromkeys(names, 0)
    kill(folder, kills, found)
    race(folder, races, found)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
