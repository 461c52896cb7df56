"""Refuting: whether it is certain that no call meets a formula.

A tableau: conjunctions are gathered, alternatives are tried one by one, and a branch is closed when
no value at some path can give the answers that the branch asks of it. What is not refuted within
the bound on the work counts as possible, so that nothing is ever claimed that was not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adjudge.analysis._linting.conditions import Condition, Steps
from adjudge.analysis._linting.formulas import Answers, Either, Every, Formula
from adjudge.analysis._linting.values import is_possible, possible_cases

__all__ = ["Prover"]

_MOST_WORK = 20_000
_MOST_NESTING = 6
_MOST_KEPT = 50_000

_Asked = dict[object, tuple[Condition, int]]
_Branch = dict[Steps, _Asked]


class _TooMuch(Exception):
    """The bound on the work is reached; nothing is claimed."""


class Prover:
    """Refutes formulas, and remembers what it has found out about the values at one path."""

    def __init__(self) -> None:
        self._possible: dict[object, bool] = {}
        self._known_cases: dict[object, frozenset[str]] = {}
        self._work = 0
        self._nesting = 0

    def refutes(self, *formulas: Formula) -> bool:
        """Whether it is certain that no call meets all these formulas."""
        self._work = 0
        self._nesting = 0
        try:
            return self._closes(formulas, {})
        except (_TooMuch, RecursionError):
            return False

    def _closes(self, goals: Iterable[Formula], branch: _Branch) -> bool:
        """Whether every branch of these goals, beside what the branch holds, is closed."""
        self._work += 20 + len(branch)
        if self._work > _MOST_WORK:
            raise _TooMuch
        waiting, choices = list(goals), list[Either]()
        while waiting:
            goal = waiting.pop()
            if isinstance(goal, Every):
                waiting += goal.parts
            elif isinstance(goal, Either):
                choices.append(goal)
            elif not self._takes(branch, goal):
                return True
        if not choices:
            return not self._is_open(branch)
        return self._closes_choices(choices, branch)

    def _closes_choices(self, choices: Sequence[Either], branch: _Branch) -> bool:
        """Try the alternatives of one choice, the one that leaves fewest."""
        live = [(choice, self._live(choice, branch)) for choice in choices]
        chosen, parts = min(live, key=lambda pair: len(pair[1]))
        rest = [choice for choice, _ in live if choice is not chosen]
        return all(self._closes((part, *rest), _copied(branch)) for part in parts)

    def _live(self, choice: Either, branch: _Branch) -> list[Formula]:
        self._work += len(choice.parts)
        return [
            part
            for part in choice.parts
            if not isinstance(part, Answers) or self._takes(_around(branch, part), part)
        ]

    def _takes(self, branch: _Branch, goal: Answers) -> bool:
        """Add a demand to the branch; False where nothing at its path can meet it any more."""
        condition = goal.condition
        asked = branch.setdefault(condition.path, {})
        before = asked.get(condition.key)
        allowed = goal.allowed if before is None else goal.allowed & before[1]
        if before is not None and before[1] == allowed:
            return True
        asked[condition.key] = (condition, allowed)
        return allowed != 0 and self._is_possible(condition.path, asked)

    def _is_possible(self, path: Steps, asked: _Asked) -> bool:
        key = _key(path, asked)
        known = self._possible.get(key)
        if known is None:
            known = is_possible(path, list(asked.values()), self._refutes_inner)
            if len(self._possible) < _MOST_KEPT:
                self._possible[key] = known
        return known

    def _cases(self, path: Steps, asked: _Asked) -> frozenset[str]:
        key = _key(path, asked)
        known = self._known_cases.get(key)
        if known is None:
            known = possible_cases(path, list(asked.values()), self._refutes_inner)
            if len(self._known_cases) < _MOST_KEPT:
                self._known_cases[key] = known
        return known

    def _refutes_inner(self, formula: Formula) -> bool:
        """Refute a formula about an element, within the same bound."""
        if self._nesting >= _MOST_NESTING:
            return False
        self._nesting += 1
        try:
            return self._closes((formula,), {})
        finally:
            self._nesting -= 1

    def _is_open(self, branch: _Branch) -> bool:
        """Whether the paths of a branch go together: what has keys is an object."""
        for path in branch:
            holders = [path[:length] for length in range(1, len(path)) if path[:length] in branch]
            if not holders:
                continue
            found = self._cases(path, branch[path])
            if "error" in found:
                continue
            for holder in holders:
                holds = "list" if isinstance(path[len(holder)], int) else "object"
                fitting = {holds} if "absent" not in found else {holds, "absent"}
                if not self._cases(holder, branch[holder]) & fitting:
                    return False
        return True


def _key(path: Steps, asked: _Asked) -> object:
    return path, frozenset((each, allowed) for each, (_, allowed) in asked.items())


def _around(branch: _Branch, goal: Answers) -> _Branch:
    path = goal.condition.path
    return {path: dict(branch.get(path, {}))}


def _copied(branch: _Branch) -> _Branch:
    return {path: dict(asked) for path, asked in branch.items()}
