"""What a workflow may be given, what a worker may be made of, and how runs end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge import MemoryLedger, MemoryRunStore, Principal, SQLiteLedger, SQLiteRunStore
from adjudge_dbos import (
    QUEUE,
    WORKFLOW,
    AgentSetup,
    GovernedRuns,
    OrderError,
    RunOrder,
    start,
)

from .world import World

ORDER = RunOrder("payer", "1", "run", Principal("service", "desk", "The desk"))


def test_an_order_is_the_same_after_its_json() -> None:
    """Nothing is lost on the way to a worker."""
    assert ORDER == RunOrder.from_json(ORDER.to_json())


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {**ORDER.to_json(), "code": "import os"},
        {**ORDER.to_json(), "agent": 7},
        {**ORDER.to_json(), "agent": ""},
        {**ORDER.to_json(), "run_id": " "},
        {**ORDER.to_json(), "task": "a\0b"},
        {**ORDER.to_json(), "task": "\ud800"},
        {**ORDER.to_json(), "principal": None},
        {**ORDER.to_json(), "principal": {"kind": "root", "id": "x", "name": None}},
        {**ORDER.to_json(), "principal": {"kind": ["user"], "id": "x", "name": None}},
        {**ORDER.to_json(), "principal": {"kind": "user", "id": None, "name": None}},
        {**ORDER.to_json(), "principal": {"kind": "user", "id": "x", "name": 1}},
    ],
)
def test_what_is_no_order_is_refused(value: object) -> None:
    """The error says what is wrong with it."""
    with pytest.raises(OrderError):
        RunOrder.from_json(value)


def test_a_worker_of_nonsense_is_refused(tmp_path: Any) -> None:
    """What does not outlive a process, no agents and bad numbers are errors at once."""
    good: dict[str, Any] = {
        "agents": {"a": lambda order: None},
        "store": SQLiteRunStore(tmp_path / "runs.db"),
        "ledger": SQLiteLedger(tmp_path / "ledger.db"),
    }
    bad: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"store": MemoryRunStore()}, ValueError, "MemoryRunStore"),
        ({"ledger": MemoryLedger()}, ValueError, "MemoryLedger"),
        ({"agents": {}}, ValueError, "no agents"),
        ({"agents": {"": len}}, ValueError, "name"),
        ({"agents": {"a": "b"}}, TypeError, "function"),
        ({"watch_seconds": 0}, ValueError, "watch_seconds"),
        ({"store_attempts": 0}, ValueError, "store_attempts"),
    ]
    for change, error, text in bad:
        given = {**good, **change}
        with pytest.raises(error, match=text):
            GovernedRuns(given.pop("agents"), **given)


def test_what_cannot_be_run_ends_with_a_code(world: World) -> None:
    """An order that is none, an agent that nobody has and one that cannot be set up run nothing."""
    world.worker("one")
    world.client.enqueue(
        {"workflow_name": WORKFLOW, "queue_name": "one", "workflow_id": "no order"},
        {"agent": "payer", "pickle": "cos\nsystem"},
    )
    start(world.client, RunOrder("nobody", "1", "no agent"), queue="one")
    start(world.client, RunOrder("broken", "1", "no model"), queue="one")
    codes = [world.result(each)["code"] for each in ("no order", "no agent", "no model")]

    assert ["bad_order", "unknown_agent", "setup_failed"] == codes
    assert [] == world.paid()


def test_a_cancellation_passes_the_setting_up(tmp_path: Any) -> None:
    """It is no failure of the agent that is being made."""

    def leave(order: RunOrder) -> AgentSetup:
        raise asyncio.CancelledError

    store, ledger = SQLiteRunStore(tmp_path / "runs.db"), SQLiteLedger(tmp_path / "ledger.db")
    runs = GovernedRuns({"payer": leave}, store=store, ledger=ledger)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(runs._attempt(RunOrder("payer", "1", "run").to_json()))
    store.close()
    ledger.close()


def test_a_run_that_could_not_be_set_up_is_rewound(world: World) -> None:
    """The same run goes on once there is a worker that can."""
    world.worker("one", stopped=True)
    start(world.client, RunOrder("payer", "1", "run"), queue="one")
    stopped = world.result("run")
    world.worker("two")
    world.client.rewind_workflow("run", queue_name="two")

    assert ("cancelled", "paid 1") == (stopped["code"], world.result("run")["final_answer"])
    assert "the operator stopped this worker" in str(stopped["error"])


def test_an_order_that_comes_twice_is_one_run(world: World) -> None:
    """The second is no other run, also where its task is another."""
    world.worker("one")
    start(world.client, RunOrder("payer", "1", "run"), queue="one")
    start(world.client, RunOrder("payer", "2", "run"), queue="one")

    assert "paid 1" == world.result("run")["final_answer"]
    assert [1] == [count for _, count in world.paid()]


def test_a_large_answer_arrives_whole(world: World) -> None:
    """A megabyte is kept in the journal and given back by DBOS."""
    world.worker("one")
    start(world.client, RunOrder("payer", "1 1000000", "run"), queue="one")

    assert "x" * 1_000_000 == world.result("run")["final_answer"]


def test_a_cancelled_run_stops_between_bodies_and_can_go_on(world: World) -> None:
    """No body is torn: what began is finished and kept, and the rest is done after `resume`."""
    one = world.worker("one")
    start(world.client, RunOrder("payer", "300", "run"), queue="one")
    one.until("paid 0")
    world.client.cancel_workflow("run")
    one.tell("end")
    assert 0 == one.ended()
    done = len(world.paid())
    world.worker("two", queues=["two", QUEUE])
    world.client.resume_workflow("run", queue_name="two")
    told = world.result("run")

    assert 1 <= done < 300
    assert ("paid 300", []) == (told["final_answer"], told["uncertain"])
    assert [1] * 300 == [count for _, count in world.paid()]
