"""Calls that wait for a person, answered from a process that has no agents."""

from __future__ import annotations

import pytest

from adjudge import AnswerError, ApprovalDecision
from adjudge_dbos import RunOrder, answer, start, take_over, waiting

from .world import World

GRANTED = ApprovalDecision(True, "ana")


def ask(world: World, run_id: str = "run", *, queue: str = "one", **settings: object) -> str:
    """Start a run that waits; give the id of what it waits for."""
    if queue not in [each.executor for each in world.workers]:
        world.worker(queue, **settings)
    start(world.client, RunOrder("asker", "1", run_id), queue=queue)
    world.client.get_event(run_id, "adjudge.pending", timeout_seconds=60)
    (pending,) = waiting(world.client, world.ledger, run_id=run_id)[run_id]
    return pending.id


def test_what_waits_is_listed_with_its_arguments(world: World) -> None:
    """The list has every run that waits, and what it asks for is what the ledger has."""
    ids = {ask(world, "a"), ask(world, "b")}
    found = waiting(world.client, world.ledger)

    assert {"a", "b"} == set(found)
    assert ids == {pending.id for each in found.values() for pending in each}
    assert {"number": 0} == dict(found["a"][0].request.args)


def test_a_granted_call_runs_once_where_the_worker_that_asked_is_dead(world: World) -> None:
    """The answer is in the ledger before anybody has taken the run over."""
    asked = ask(world)
    victim = world.workers[0]
    victim.process.kill()
    victim.ended()
    answer(world.client, world.ledger, "run", {asked: GRANTED})
    world.worker("heir")
    take_over(world.client, "one", queue="heir")
    told = world.result("run")

    assert ("paid 1", "heir", 0) == (told["final_answer"], told["executor"], told["denials"])
    assert [1] == [count for _, count in world.paid()]
    assert {} == waiting(world.client, world.ledger)


def test_a_message_alone_grants_nothing(world: World) -> None:
    """Whoever can send one makes the run look at the ledger, and that is all."""
    asked = ask(world)
    world.client.send("run", {asked: True, "granted": True}, topic="adjudge.wake")
    world.workers[0].until("after run run.resumed")

    assert [asked] == [each.id for each in waiting(world.client, world.ledger)["run"]]
    assert [] == world.paid()


def test_a_refused_call_is_not_made(world: World) -> None:
    """The run goes on with a denial."""
    asked = ask(world)
    answer(world.client, world.ledger, "run", {asked: ApprovalDecision(False, "ana")})
    told = world.result("run")

    assert ("paid 1", 1) == (told["final_answer"], told["denials"])
    assert [] == world.paid()


def test_a_question_that_nobody_answers_expires(world: World) -> None:
    """The run wakes by itself, and the call is denied."""
    ask(world, rule={"timeout_seconds": 2})
    told = world.result("run")

    assert ("paid 1", 1) == (told["final_answer"], told["denials"])
    assert [] == world.paid()


def test_an_answer_to_another_run_is_refused(world: World) -> None:
    """It is an error, and no run gets it."""
    asked = ask(world, "a")
    ask(world, "b")
    with pytest.raises(AnswerError, match="another run"):
        answer(world.client, world.ledger, "b", {asked: GRANTED})
    with pytest.raises(AnswerError, match="Nothing waits in the run 'c'"):
        answer(world.client, world.ledger, "c", {asked: GRANTED})

    assert {"a", "b"} == set(waiting(world.client, world.ledger))


def test_the_first_answer_counts(world: World) -> None:
    """One that comes after it changes nothing."""
    asked = ask(world)
    answer(world.client, world.ledger, "run", {asked: ApprovalDecision(False, "ana")})
    answer(world.client, world.ledger, "run", {asked: GRANTED})

    assert 1 == world.result("run")["denials"]
    assert [] == world.paid()


def test_a_ledger_that_fails_for_a_while_ends_nothing(world: World) -> None:
    """The run is tried again, and nothing is granted meanwhile."""
    asked = ask(world)
    world.workers[0].process.kill()
    world.workers[0].ended()
    answer(world.client, world.ledger, "run", {asked: GRANTED})
    world.worker("heir", ledger_fails=1)
    take_over(world.client, "one", queue="heir")

    assert ("", 0) == (world.result("run")["code"], world.result("run")["denials"])
    assert [1] == [count for _, count in world.paid()]


def test_a_run_that_is_cancelled_while_it_waits_does_nothing_with_an_answer(world: World) -> None:
    """The answer is kept, and is there when the run is resumed."""
    asked = ask(world)
    world.client.cancel_workflow("run")
    answer(world.client, world.ledger, "run", {asked: GRANTED})
    world.workers[0].tell("end")
    assert 0 == world.workers[0].ended()
    before = world.paid()
    world.worker("two")
    world.client.resume_workflow("run", queue_name="two")

    assert ("paid 1", []) == (world.result("run")["final_answer"], before)
    assert [1] == [count for _, count in world.paid()]
