"""Workers that die: what they were doing is done by others, and nothing is done twice."""

from __future__ import annotations

from adjudge_dbos import RunOrder, start, take_over

from .kills import kill_loop
from .world import World


def test_no_payment_is_made_twice_over_many_kills(world: World) -> None:
    """Law 6: each payment is made exactly once, or is reported uncertain and made at most once."""
    report = kill_loop(world, 20, seed=6)

    assert [] == report.wrong
    assert 20 == report.kills
    assert 60 == report.payments.total()


def test_a_restarted_worker_goes_on_with_its_runs(world: World) -> None:
    """A process that comes back under the same executor id needs nobody to hand its runs over."""
    first = world.worker("one", die_at=10)
    start(world.client, RunOrder("payer", "2", "run"), queue="one")
    first.ended()
    world.worker("one")

    assert "paid 2" == world.result("run")["final_answer"]


def test_the_model_is_not_asked_again(world: World) -> None:
    """What was decided before the crash is taken from the journal."""
    first = world.worker("one", die_at=6, thinks=True)
    start(world.client, RunOrder("payer", "1", "run"), queue="one")
    first.until("thinking")
    first.tell("think")
    first.ended()
    heir = world.worker("heir", thinks=True)
    take_over(world.client, "one", queue="heir")
    heir.until("thinking")
    heir.tell("think")

    assert "paid 1" == world.result("run")["final_answer"]
    heir.tell("end")
    assert 0 == heir.ended()
    assert 1 == heir.seen.count("thinking")


def test_a_policy_that_changed_in_between_holds_from_there_on(world: World) -> None:
    """What was done stays done; what is still to do is judged by the heir's policy."""
    victim = world.worker("one", holds=True, die_at=11)
    start(world.client, RunOrder("payer", "2", "run"), queue="one")
    victim.until("body 0")
    victim.tell("pay")
    victim.ended()
    world.worker("heir", rule={"decision": "deny", "reason": "no more"})
    take_over(world.client, "one", queue="heir")
    told = world.result("run")

    assert ("paid 2", 1, []) == (told["final_answer"], told["denials"], told["uncertain"])
    assert 1 == len(world.paid())


def test_a_store_that_fails_for_a_while_ends_nothing(world: World) -> None:
    """The run is tried again; the call whose result was not kept is uncertain, not rerun."""
    world.worker("one", fails=1)
    start(world.client, RunOrder("payer", "2", "run"), queue="one")
    told = world.result("run")

    assert ("", "paid 2") == (told["code"], told["final_answer"])
    assert [{"step": 0, "call": 0, "tool": "pay"}] == told["uncertain"]
    assert [1, 1] == [count for _, count in world.paid()]


def test_a_store_that_fails_for_good_ends_the_run(world: World) -> None:
    """After so many attempts the run ends with the code of it, and can be rewound."""
    world.worker("one", fails=3)
    start(world.client, RunOrder("payer", "1", "run"), queue="one")
    told = world.result("run")
    world.client.rewind_workflow("run", queue_name="one")
    again = world.result("run")

    assert ("store_failed", "") == (told["code"], again["code"])
    assert [1] == [count for _, count in world.paid()]
