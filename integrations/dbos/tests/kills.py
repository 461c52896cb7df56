"""Kills workers in the middle of their runs, and counts how often each payment was really made.

Each victim carries out one run and dies by SIGKILL: at a boundary of the journal or of a body, each
boundary once before any comes twice, or some milliseconds after its first. A worker that lives goes
on with the run. `.ci/postgres python -m integrations.dbos.tests.kills --kills 200` is the long one.
"""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from adjudge_dbos import RunOrder, start, take_over
from adjudge_runtime import idempotency_key

from .world import World, fresh_world

PAYMENTS = 3
BOUNDARIES = 30
"""What a run crosses: 12 records, before and after each, and the two ends of three bodies."""
AT_ONCE = 4


@dataclass
class Report:
    """What came of a number of kills; `wrong` has to be empty."""

    kills: int = 0
    payments: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def kill_loop(world: World, kills: int, *, seed: int) -> Report:
    """Kill so many workers, and look at what their runs came to."""
    chance = random.Random(seed)
    boundaries: list[int] = []
    report = Report()
    world.worker("heir")
    for first in range(0, kills, AT_ONCE):
        victims = range(first, min(first + AT_ONCE, kills))
        for number in victims:
            if not boundaries:
                boundaries = chance.sample(range(1, BOUNDARIES + 1), BOUNDARIES)
            by_time = number % 4 == 3
            fate: dict[str, Any] = (
                {"die_after": chance.uniform(0, 0.1)} if by_time else {"die_at": boundaries.pop()}
            )
            # A body that takes its time is what a kill by time is to hit.
            world.begin(f"victim-{number}", **fate, slow=by_time)
        for number in victims:
            _kill(world, number, report)
    return report


def _kill(world: World, number: int, report: Report) -> None:
    run_id, victim = f"run-{number}", f"victim-{number}"
    worker = next(each for each in world.workers if each.executor == victim)
    worker.until("ready")
    start(world.client, RunOrder("payer", str(PAYMENTS), run_id), queue=victim)
    code = worker.ended()
    if code != -9:
        report.wrong.append(f"{victim} ended with {code}, and was to be killed")
    report.kills += 1
    taken = take_over(world.client, victim, queue="heir")
    if taken != [run_id]:
        report.wrong.append(f"{victim} left {taken}")
    told = world.result(run_id)
    if told["final_answer"] != f"paid {PAYMENTS}":
        report.wrong.append(f"{run_id} ended as {told}")
    _count(world, told, report)


def _count(world: World, told: dict[str, Any], report: Report) -> None:
    times: dict[object, Any] = dict(world.paid())
    unknown = {each["step"] for each in told["uncertain"]}
    for step in range(PAYMENTS):
        key = idempotency_key(told["run_id"], step, "pay", {"number": step})
        made = times.get(key, 0)
        said = "uncertain" if step in unknown else "certain"
        report.payments[f"{said}, made {made} times"] += 1
        if made > 1 or (made == 0 and step not in unknown):
            report.wrong.append(f"{told['run_id']}: payment {step} is {said}, made {made} times")


def main() -> None:
    """Run the loop against the server of ADJUDGE_POSTGRES_URL, in a database of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with fresh_world(os.environ["ADJUDGE_POSTGRES_URL"]) as world:
        report = kill_loop(world, options.kills, seed=options.seed)
    print(f"{report.kills} kills, {dict(report.payments)}")
    if report.wrong:
        raise SystemExit("\n".join(report.wrong))


if __name__ == "__main__":
    main()
