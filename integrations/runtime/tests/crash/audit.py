"""Holds a run that has ended to its promise: what happened, what was reported, and what was not.

Three witnesses are compared for each effect: the rows in the database outside of the store, what
the journal says became of the call, and what the model was told of it.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, field

from workers import EFFECTS


@dataclass
class Figures:
    """What came of a number of kills; `twice`, `unreported` and `wrong` have to be empty."""

    kills: int = 0
    kills_from_outside: int = 0
    runs: int = 0
    superseded: int = 0
    expected: int = 0
    once: int = 0
    uncertain_not_done: int = 0
    uncertain_done: int = 0
    permitted_again: int = 0
    twice: int = 0
    unreported: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether nothing happened twice, and nothing without a word."""
        return not (self.twice or self.unreported or self.wrong)

    def as_json(self) -> str:
        """Give the figures in one line."""
        return json.dumps(asdict(self))

    def judge(self, place, run_id: str, ended: dict) -> None:
        """Count what became of each effect of a run that has ended."""
        self.runs += 1
        if ended["code"]:
            self.wrong.append(f"{run_id} ended as {ended['code']}: {ended['error']}")
            return
        rows, told = rows_of(place, run_id), told_of(ended["answer"])
        for key, count in Counter(key for keys in rows.values() for key in keys).items():
            claims = ended["claims"].get(key, 0)
            if count > claims:
                self.wrong.append(f"{run_id}: {count} bodies ran on {claims} claims of {key}")
        for name in EFFECTS:
            found = rows.pop(name, [])
            self.expected += 1
            ran_again = ended["lost"].get(name)
            if ran_again and place.policy != "again":
                self.wrong.append(f"{run_id}: {name} ran again, which nobody permitted")
            self._judge_effect(run_id, name, found, ran_again, told.get(name))
        if rows:
            self.wrong.append(f"{run_id}: {sorted(rows)} happened, which the policy denies")
        if not str(told.get("erase")).startswith("[denied]"):
            self.wrong.append(
                f"{run_id}: of what was denied the model was told {told.get('erase')!r}"
            )

    def _judge_effect(self, run_id, name, keys, ran_again, told) -> None:
        """Count one effect: by its rows' keys, and by whether it ran again after it was lost."""
        is_lost = ran_again is False
        if (told == f"{name} done") is is_lost:
            self.wrong.append(f"{run_id}: of {name} (lost: {is_lost}) the model was told {told!r}")
        if ran_again and len(set(keys)) == 1:
            self.permitted_again += 1
        elif len(keys) > 1:
            self.twice += 1
            self.wrong.append(f"{run_id}: {name} happened {len(keys)} times")
        elif is_lost and keys:
            self.uncertain_done += 1
        elif is_lost:
            self.uncertain_not_done += 1
        elif keys:
            self.once += 1
        else:
            self.unreported += 1
            self.wrong.append(f"{run_id}: {name} never happened, and nobody said so")


def prepare(place) -> None:
    """Make the database of the effects."""
    with closing(sqlite3.connect(place.effects)) as database, database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE effects (run TEXT, name TEXT, key TEXT, pid INTEGER)")


def rows_of(place, run_id: str) -> dict[str, list[str]]:
    """Give the keys of the rows of each effect of a run."""
    found: dict[str, list[str]] = {}
    for name, key, _ in _rows(place, run_id):
        found.setdefault(name, []).append(key)
    return found


def doers(place, run_id: str) -> set[int]:
    """Give the processes that inserted the rows of a run."""
    return {pid for _, _, pid in _rows(place, run_id)}


def _rows(place, run_id: str):
    with closing(sqlite3.connect(place.effects, timeout=60)) as database:
        return database.execute(
            "SELECT name, key, pid FROM effects WHERE run = ?", (run_id,)
        ).fetchall()


def told_of(answer: str) -> dict[str, str]:
    """Give what the models of a run were told of each effect."""
    told = json.loads(answer)
    nested = told.pop("helper", "")
    # An agent inside of a tool that ended without an answer was told nothing that we know of.
    return told | (json.loads(nested) if nested.startswith("{") else {})
