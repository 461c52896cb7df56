"""Two workers on one run: a worker that was given up lives on, and may do no harm."""

from __future__ import annotations

import asyncio

from adjudge_dbos import RunOrder, start, take_over

from .world import World


def test_who_was_given_up_before_a_decision_executes_nothing(world: World) -> None:
    """The journal refuses its next step, and the run's outcome is that of the heir."""
    lost = world.worker("lost", thinks=True, watch_seconds=3600)
    world.worker("heir")
    start(world.client, RunOrder("payer", "2", "run"), queue="lost")
    lost.until("thinking")
    assert ["run"] == take_over(world.client, "lost", queue="heir")
    told = world.result("run")
    lost.tell("think")
    lost.until("before run model.output")
    lost.tell("end")

    assert 0 == lost.ended()
    assert [] == [line for line in lost.seen if line.startswith(("body", "after run model"))]
    assert (told, "heir") == (world.result("run"), told["executor"])
    assert [1, 1] == [count for _, count in world.paid()]


def test_a_body_that_was_under_way_is_uncertain_to_the_heir(world: World) -> None:
    """It is not run a second time, and what it comes to changes nothing that the heir wrote."""
    lost = world.worker("lost", holds=True, watch_seconds=3600)
    world.worker("heir")
    start(world.client, RunOrder("payer", "2", "run"), queue="lost")
    lost.until("body 0")
    take_over(world.client, "lost", queue="heir")
    told = world.result("run")
    lost.tell("pay")
    lost.until("paid 0")
    lost.tell("end")

    assert 0 == lost.ended()
    assert (told, "heir") == (world.result("run"), told["executor"])
    assert [{"step": 0, "call": 0, "tool": "pay"}] == told["uncertain"]
    assert [("heir", 1), ("lost", 1)] == world.sql(
        "SELECT worker, count(*) FROM adjudge.paid GROUP BY worker ORDER BY worker"
    )


def test_superseded_is_nobodys_outcome(world: World) -> None:
    """A workflow that is still its worker's, and came second at the journal, goes on with it."""
    one = world.worker("one", thinks=True)
    world.worker("two")
    start(world.client, RunOrder("payer", "2", "run"), queue="one")
    one.until("thinking")
    # A fork has the same order, and so the same journal: two workflows are after one run.
    fork = world.client.fork_workflow("run", 1, queue_name="two").workflow_id
    others = world.result(fork)
    one.tell("think")
    one.until("before run model.output")
    told = world.result("run")

    assert [("", "paid 2")] * 2 == [(each["code"], each["final_answer"]) for each in (others, told)]
    assert ["two", "one"] == [others["executor"], told["executor"]]
    assert [1, 1] == [count for _, count in world.paid()]


def test_two_workflows_that_race_on_one_run_both_end(world: World) -> None:
    """Whoever is superseded waits longer each time, so that one gets through."""
    world.worker("one")
    world.worker("two")
    start(world.client, RunOrder("payer", "25", "run"), queue="one")
    fork = world.client.fork_workflow("run", 1, queue_name="two").workflow_id
    results = [world.result("run"), world.result(fork)]

    assert [("", "paid 25")] * 2 == [(each["code"], each["final_answer"]) for each in results]
    assert {1} == {count for _, count in world.paid()}
    assert 25 <= len(world.paid()) + len(results[0]["uncertain"])


def test_who_cannot_see_whose_the_run_is_stops_and_looks_again(world: World) -> None:
    """The attempt is interrupted, the next one goes on with it, and nothing is paid twice."""
    one = world.worker("one", thinks=True, blind=True)
    start(world.client, RunOrder("payer", "1", "run"), queue="one")
    one.until("blind")
    for _ in range(4):
        one.tell("think")
    told = world.result("run")

    assert ("", "paid 1") == (told["code"], told["final_answer"])
    assert "run.resumed" in [record.kind for record in asyncio.run(world.store.load("run"))]
    assert [1] == [count for _, count in world.paid()]
