"""A worker of its own process: it takes up one session on SQLite, and dies where it is told to.

`python worker.py FOLDER [--die N] [--answer TEXT] [--retry] [--ask]`. What the tools do is a row in
a database beside the session's. The process is killed (-9) at the N-th boundary that it comes to:
before and after each append to the chain, each save of the session and each effect. It ends with 0
where the session is done, 3 where another worker was faster, 4 where it had ended before.
"""

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path

from adjudge import (
    ConcurrentModification,
    SessionExists,
    SQLiteRunStore,
    SQLiteSessionStore,
    ToolGuard,
    ToolSet,
    compile_policy,
    tool,
)
from adjudge_runtime.kernel import AgentKernel, Decision, IllegalTransition

ALLOW = {"id": "all", "match": "always", "decision": "allow"}
RETRY = {
    "id": "again",
    "match": {"context.extra.uncertain_retry": True},
    "decision": "allow",
    "priority": 10,
}


class Boundaries:
    """Counts the boundaries that the process comes to, and dies at one of them."""

    def __init__(self, die):
        self.die = die
        self.count = 0

    def come(self):
        """Come to the next boundary."""
        self.count += 1
        if self.count == self.die:
            os.kill(os.getpid(), signal.SIGKILL)


def mortal(kind, method, boundaries):
    """Give a store of a kind that comes to a boundary before and after one of its methods."""

    async def at_boundaries(self, *args, **named):
        boundaries.come()
        kept = await getattr(kind, method)(self, *args, **named)
        boundaries.come()
        return kept

    return type(f"Mortal{kind.__name__}", (kind,), {method: at_boundaries})


def tools_of(folder, boundaries):
    """Give the tools, whose effects are rows."""
    effects = folder / "effects.db"
    with closing(sqlite3.connect(effects, timeout=30)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS effects (what TEXT)")

    def put(what):
        boundaries.come()
        with closing(sqlite3.connect(effects, timeout=30)) as database, database:
            database.execute("INSERT INTO effects VALUES (?)", (what,))
        boundaries.come()
        return f"did {what}"

    @tool(reversible=False)
    async def transfer(what: str) -> str:
        """Transfer, on the loop."""
        return put(what)

    @tool(reversible=False)
    def ship(what: str) -> str:
        """Ship, in a thread."""
        return put(what)

    return ToolSet.from_functions(transfer, ship)


def model_of(asks):
    """Give a model that depends on what it reads alone."""

    def model(text):
        if asks and "asked a person" not in text:
            return Decision("ask", "not sure", question="shall I?")
        if "transfer" not in text:
            return Decision("act", "first", tool="transfer", arguments={"what": "one"})
        if "ship" not in text:
            return Decision("act", "second", tool="ship", arguments='{"what": "two"}')
        return Decision("finish", "done", answer="both")

    return model


async def main(options):
    """Run the session, and give the exit code."""
    folder, boundaries = options.folder, Boundaries(options.die)
    rules = [RETRY, ALLOW] if options.retry else [ALLOW]
    guard = ToolGuard(policy=compile_policy({"version": 1, "rules": rules}))
    kernel = AgentKernel(
        model_of(options.ask),
        guard=guard,
        tools=tools_of(folder, boundaries),
        store=mortal(SQLiteSessionStore, "save", boundaries)(folder / "kernel.db"),
        chain=mortal(SQLiteRunStore, "append", boundaries)(folder / "kernel.db"),
    )
    with suppress(SessionExists):
        await kernel.create_session(session_id="s", tenant="t", user_id="u", goal="do both")
    try:
        result = await kernel.run("s", resume_answer=options.answer)
    except ConcurrentModification:
        return 3
    except IllegalTransition:
        return 4
    state = result.state.value
    print(json.dumps({"pid": os.getpid(), "state": state, "boundaries": boundaries.count}))
    return 0


def options_of(arguments):
    """Read a command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--die", type=int, default=0)
    parser.add_argument("--answer")
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--ask", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(options_of(sys.argv[1:]))))
