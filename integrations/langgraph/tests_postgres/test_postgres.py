"""A graph that waits in PostgreSQL: its checkpoints and the ledger, across two processes.

Needs a server, named by `ADJUDGE_POSTGRES_URL`; `.ci/postgres` starts one. The file is its own
second process: `python test_postgres.py URL FOLDER`.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL

from adjudge import AnswerError, ApprovalDecision, ToolGuard, compile_policy, pause_approval
from adjudge_langgraph import apending, aresume, fan_out_tool_calls, govern, pending, resume
from adjudge_postgres import PostgresLedger

GRANTED = ApprovalDecision(True, "ana")
REFUSED = ApprovalDecision(False, "ana", "no")
THREAD: Any = {"configurable": {"thread_id": "the desk's"}}
GO: Any = {"messages": [("user", "Go.")]}
RULES = [
    {"id": "ask", "match": {"tool": "pay"}, "decision": "approve_required"},
    {"id": "rest", "match": "always", "decision": "allow"},
]
CALLS: Any = [
    {"type": "tool_call", "name": "note", "args": {"text": "x"}, "id": "0"},
    {"type": "tool_call", "name": "pay", "args": {"amount": 1}, "id": "1"},
    {"type": "tool_call", "name": "pay", "args": {"amount": 2}, "id": "2"},
]


class Desk:
    """The graph of one folder and one database, built anew in each process."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder

    def builder(self) -> Any:
        """Build a graph whose model makes three calls in one message."""

        def ran(name: str, value: Any) -> str:
            with (self.folder / "ran.jsonl").open("a") as log:
                log.write(json.dumps([name, value, os.getpid()]) + "\n")
            return f"{name} {value}"

        @tool
        def note(text: str) -> str:
            """Take a note."""
            return ran("note", text)

        @tool
        def pay(amount: int) -> str:
            """Pay."""
            return ran("pay", amount)

        def model(state: MessagesState) -> Any:
            asked = len(state["messages"]) > 1
            return {"messages": [AIMessage("done") if asked else AIMessage("", tool_calls=CALLS)]}

        fan_out = (self.folder / "fan-out").exists()
        builder = StateGraph(MessagesState).add_node("model", model)
        builder.add_node("tools", ToolNode([note, pay])).add_edge("tools", "model")
        route = fan_out_tool_calls() if fan_out else tools_condition
        return builder.add_edge(START, "model").add_conditional_edges("model", route)

    @contextmanager
    def guard(self) -> Iterator[ToolGuard]:
        """Make the guard, whose ledger is in the same database."""
        policy = compile_policy({"version": 1, "rules": RULES})
        with (
            PostgresLedger(self.url) as ledger,
            ToolGuard(policy=policy, on_approval=pause_approval(ledger)) as guard,
        ):
            yield guard

    @contextmanager
    def graph(self) -> Iterator[Any]:
        """Give the governed graph on its checkpoints."""
        with self.guard() as guard, PostgresSaver.from_conn_string(self.url) as saver:
            saver.setup()
            yield govern(self.builder().compile(checkpointer=saver), guard)

    def asked(self) -> dict[int, str]:
        """The ids of the payments that wait."""
        with self.graph() as graph:
            return {each.request.args["amount"]: each.id for each in pending(graph, THREAD)}

    def answer(self, answers: Any) -> None:
        """Go on with the run."""
        with self.graph() as graph:
            resume(graph, THREAD, answers)

    @property
    def bodies(self) -> list[Any]:
        """What ran, in no order, and whether it was here."""
        lines = (self.folder / "ran.jsonl").read_text().splitlines()
        return sorted(
            (name, value, process == os.getpid()) for name, value, process in map(json.loads, lines)
        )


class Started(NamedTuple):
    """A run that another process has started, and that waits; tests work on copies of it."""

    database: str
    folder: Path


@pytest.fixture(scope="module")
def server() -> str:
    """The server."""
    url = os.environ.get("ADJUDGE_POSTGRES_URL")
    if not url:
        pytest.fail("ADJUDGE_POSTGRES_URL names no server; run these under .ci/postgres.")
    return url


@contextmanager
def database(server: str, *, template: str = "template1") -> Iterator[str]:
    """Make a database on the server, and give its name."""
    name = f"t{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL(f"create database {name} template {template}"))
        yield name
        connection.execute(SQL(f"drop database {name} with (force)"))


@pytest.fixture(scope="module", params=["one-task", "fan-out"])
def started(
    server: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    """Have another process start a run."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "fan-out":
        (folder / "fan-out").touch()
    with database(server) as name:
        command = [sys.executable, __file__, make_conninfo(server, dbname=name), str(folder)]
        subprocess.run(command, check=True, timeout=120)
        yield Started(name, folder)


@pytest.fixture
def desk(server: str, started: Started, tmp_path: Path) -> Iterator[Desk]:
    """Such a run, to go on with here."""
    folder = shutil.copytree(started.folder, tmp_path / "run")
    with database(server, template=started.database) as name:
        yield Desk(make_conninfo(server, dbname=name), folder)


def test_answers_reach_their_calls(desk: Desk) -> None:
    """What waits is found in another process; each answer does what it says, and siblings rest."""
    ids = desk.asked()

    desk.answer({ids[2]: GRANTED})
    assert [1] == list(desk.asked())
    desk.answer({ids[1]: REFUSED})

    assert [("note", "x", False), ("pay", 2, True)] == desk.bodies


def test_an_edit(desk: Desk) -> None:
    """An edit runs as it was edited."""
    edit = ApprovalDecision(True, "ana", edited_args={"amount": 7})

    desk.answer({desk.asked()[1]: edit})

    assert [("note", "x", False), ("pay", 7, True)] == desk.bodies


def test_the_same_answers_again(desk: Desk) -> None:
    """An answer grants once, and one that comes after it changes nothing."""
    ids = desk.asked()

    desk.answer(dict.fromkeys(ids.values(), GRANTED))
    desk.answer(dict.fromkeys(ids.values(), REFUSED))

    assert [("note", "x", False), ("pay", 1, True), ("pay", 2, True)] == desk.bodies


def test_a_ledger_elsewhere(desk: Desk) -> None:
    """A process whose ledger is in another schema grants nothing."""
    ids = desk.asked()
    policy = compile_policy({"version": 1, "rules": RULES})
    with (
        PostgresLedger(desk.url, schema="elsewhere") as ledger,
        ToolGuard(policy=policy, on_approval=pause_approval(ledger)) as guard,
        PostgresSaver.from_conn_string(desk.url) as saver,
    ):
        graph = govern(desk.builder().compile(checkpointer=saver), guard)
        with pytest.raises(AnswerError):
            resume(graph, THREAD, {ids[1]: GRANTED})

    assert [("note", "x", False)] == desk.bodies


def test_on_an_event_loop(desk: Desk) -> None:
    """The twins do the same with the checkpointer for coroutines."""

    async def within() -> None:
        with desk.guard() as guard:
            async with AsyncPostgresSaver.from_conn_string(desk.url) as saver:
                graph = govern(desk.builder().compile(checkpointer=saver), guard)
                waiting = await apending(graph, THREAD)
                await aresume(graph, THREAD, {each.id: GRANTED for each in waiting})

    asyncio.run(within())

    assert [("note", "x", False), ("pay", 1, True), ("pay", 2, True)] == desk.bodies


if __name__ == "__main__":
    with Desk(sys.argv[1], Path(sys.argv[2])).graph() as started:
        started.invoke(GO, THREAD)
