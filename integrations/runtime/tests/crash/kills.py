"""Kills workers in the middle of their runs, goes on with the runs, and counts what happened.

    python integrations/runtime/tests/crash/kills.py --kills 500 [--workers 2] [--store postgres]

kills at boundaries (each once before any comes twice) and at random moments from outside, one to
three times a run. `--boundaries` kills once at each boundary instead, also while a lost call is
being settled. `--races N` has the workers read one run and then go on with it at the same moment;
some of them are killed. The figures are the last line. Ends with 1 where an effect happened twice,
or did not happen and nobody said so.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from audit import Figures, doers, prepare
from processes import UNHARMED, Fate, attempt
from workers import POLICIES, Place

_SERVERS = {"postgres": "ADJUDGE_POSTGRES_URL", "redis": "ADJUDGE_REDIS_URL"}
"""The variables in which `.ci/postgres` and `.ci/redis` name their servers."""

SETTLING = "before effect inner"
"""Where a worker dies so that the next one finds a call that was lost, in the nested run."""

_BESIDE = (" 3.1", " beside")
"""The call beside that run, as its boundaries name it."""


class Killer:
    """Kills the workers of one run after another in one place."""

    def __init__(self, place: Place, *, workers: int, seed: int) -> None:
        self.place = place
        self.workers = workers
        self.figures = Figures()
        self.dice = random.Random(seed)
        self._name = uuid.uuid4().hex[:8]
        self._attempt(self._new_run(), [UNHARMED])  # makes what the store needs
        began = time.monotonic()
        [whole] = self._attempt(self._new_run(), [UNHARMED])
        self.seconds = time.monotonic() - began
        self.boundaries: list[str] = whole["passed"]

    def kill(self, kills: int) -> Iterator[Figures]:
        """Kill so many times; gives the figures after each run."""
        order: list[str] = []
        while self.figures.kills < kills:
            run_id = self._new_run()
            for number in range(self.dice.choice((1, 1, 2, 3))):
                if not order:
                    order = self.dice.sample(self.boundaries, len(self.boundaries))
                is_next = number == 0 and self.dice.random() < 0.7
                first = Fate(order.pop()) if is_next else self._some_fate()
                others = [
                    self._some_fate() if self.dice.random() < 0.3 else UNHARMED
                    for _ in range(self.workers - 1)
                ]
                self._attempt(run_id, [first, *others], tries=1 if self.workers == 1 else 8)
            self._finish(run_id)
            yield self.figures

    def kill_at_each_boundary(self) -> Iterator[Figures]:
        """Kill once at each boundary of a whole run, and of one that settles what was lost."""
        for boundary in self.boundaries:
            run_id = self._new_run()
            self._killed(run_id, boundary)
            self._finish(run_id)
            yield self.figures
        run_id = self._new_run()
        self._killed(run_id, SETTLING)
        for boundary in self._finish(run_id)["passed"]:
            if boundary.endswith(_BESIDE):
                continue  # where it was when the first worker died is chance
            run_id = self._new_run()
            self._killed(run_id, SETTLING)
            self._killed(run_id, boundary)
            self._finish(run_id)
            yield self.figures

    def race(self, races: int) -> Iterator[Figures]:
        """Have workers begin a run, or go on with one, at one moment, some of them mortal.

        A run that is finished would have nothing but winners: nobody has anything to append.
        """
        for number in range(races):
            run_id = self._new_run()
            begun = number % 2 == 1
            if begun:
                self._killed(run_id, self.dice.choice(self.boundaries[:-1]))
            mortal = number % 4 >= 2
            fates = [
                self._some_fate() if mortal and self.dice.random() < 0.5 else UNHARMED
                for _ in range(self.workers)
            ]
            done = doers(self.place, run_id)
            ended = self._attempt(run_id, fates, meets=True)
            self._judge_race(run_id, fates, ended, doers(self.place, run_id) - done)
            self._finish(run_id)
            yield self.figures

    def _judge_race(self, run_id, fates, ended, doing) -> None:
        """Of workers that saw the same run one goes on; the others do nothing at all."""
        told = [each for each in ended if each is not None]
        winners = [each for each in told if each["code"] == ""]
        losers = [each["pid"] for each in told if each["code"] == "superseded"]
        if all(fate == UNHARMED for fate in fates):
            as_it_should = (1, len(fates) - 1) == (len(winners), len(losers))
        else:
            as_it_should = len(winners) <= 1 and len(winners) + len(losers) == len(told)
        if not as_it_should:
            self.figures.wrong.append(f"{run_id}: {len(winners)} won, {len(losers)} lost")
        if len(doing) > 1 or doing.intersection(losers):
            self.figures.wrong.append(f"{run_id}: {doing} were at work, {losers} superseded")

    def _new_run(self) -> str:
        return f"{self._name}-{uuid.uuid4().hex[:12]}"

    def _some_fate(self) -> Fate:
        if self.dice.random() < 0.5:
            return Fate(self.dice.choice(self.boundaries))
        return Fate(kill_after=self.dice.uniform(0, 1.2 * self.seconds))

    def _killed(self, run_id: str, boundary: str) -> None:
        [ended] = self._attempt(run_id, [Fate(boundary)])
        if ended is not None:
            self.figures.wrong.append(f"{run_id}: nobody came to {boundary!r}")

    def _attempt(self, run_id, fates, *, meets=False, tries=1):
        ended = attempt(self.place, run_id, fates, meets=meets, tries=tries)
        for fate, each in zip(fates, ended, strict=True):
            if each is None:
                self.figures.kills += 1
                self.figures.kills_from_outside += fate.kill_after is not None
            else:
                self.figures.superseded += each["superseded"]
        return ended

    def _finish(self, run_id: str):
        """Go on with a run to its end, and judge what it came to."""
        [ended] = self._attempt(run_id, [UNHARMED])
        self.figures.judge(self.place, run_id, ended)
        return ended


def main(options: argparse.Namespace) -> int:
    """Kill, say what was found, and give the exit code."""
    began = shown = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="adjudge-kills-") as folder:
        place = Place(Path(folder), _store_of(options.store, folder), options.policy)
        assert place.opens, "imported here, and opened by the workers alone"
        prepare(place)
        killer = Killer(place, workers=options.workers, seed=options.seed)
        if options.boundaries:
            going_on = killer.kill_at_each_boundary()
        elif options.races:
            going_on = killer.race(options.races)
        else:
            going_on = killer.kill(options.kills)
        for figures in going_on:
            if time.monotonic() - shown > 1:
                shown = time.monotonic()
                sys.stderr.write(f"\r{figures.kills} kills, {figures.runs} runs")
                sys.stderr.flush()
    figures = killer.figures
    sys.stderr.write(f"\r{time.monotonic() - began:.0f} s, {len(killer.boundaries)} boundaries\n")
    for wrong in figures.wrong:
        sys.stderr.write(f"wrong: {wrong}\n")
    print(figures.as_json())
    return 0 if figures.is_good else 1


def _store_of(named: str, folder: str) -> str:
    if named == "sqlite":
        return str(Path(folder, "runs.db"))
    variable = _SERVERS.get(named)
    return named if variable is None else os.environ[variable]


def options_of(arguments: list[str]) -> argparse.Namespace:
    """Read a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--boundaries", action="store_true", help="kill once at each boundary")
    parser.add_argument("--races", type=int, default=0, help="how many races, in place of kills")
    parser.add_argument("--workers", type=int, default=1, help="how many at once on one run")
    parser.add_argument(
        "--store", default="sqlite", help="sqlite, postgres, redis or the URL of a server"
    )
    parser.add_argument("--policy", choices=POLICIES, default="deny", help="on uncertain calls")
    parser.add_argument("--seed", type=int, default=17)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main(options_of(sys.argv[1:])))
