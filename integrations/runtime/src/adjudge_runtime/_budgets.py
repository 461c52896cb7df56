"""What a run has used so far, held against its budget before each model call.

It counts and compares; it stops nothing by itself but by raising `Stop`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from adjudge import AdjudgeError
from adjudge.integration import (
    FrozenDict,
    FrozenList,
    canonical_json,
    digest,
    freeze_object,
    parse_arguments,
)
from adjudge_runtime._stops import Stop, said
from adjudge_runtime._values import Budget, ToolCall, Usage

__all__ = ["Meter", "described_budget", "is_unbounded"]


def described_budget(budget: Budget) -> dict[str, Any]:
    """Give a budget as JSON, for the record."""
    found = {name: value for name, value in _fields(budget).items() if name != "cost"}
    if budget.cost is not None:
        found["cost"] = getattr(budget.cost, "__qualname__", type(budget.cost).__qualname__)
    return found


def is_unbounded(budget: Budget) -> bool:
    """Whether nothing would ever end a run under a budget."""
    caps = (
        budget.steps,
        budget.duration_seconds,
        budget.tokens,
        budget.input_tokens,
        budget.output_tokens,
        budget.cost_micros,
    )
    return all(cap is None for cap in caps)


def _fields(budget: Budget) -> Mapping[str, Any]:
    return asdict(replace(budget, cost=None))


class Meter:
    """The steps, tokens and money of one run, earlier attempts included."""

    __slots__ = ("_budget", "_deadline", "_proposed", "denials", "steps", "used")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        seconds = budget.duration_seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._proposed: dict[str, int] = {}
        self.denials = 0
        self.steps = 0
        """The model calls that led to calls of tools, all of which were run."""
        self.used: Usage | None = None
        """What was used in all, None where nobody said anything."""

    def priced(self, usage: Usage) -> Usage:
        """Give a usage with its cost, where the budget has a function for that."""
        cost = self._budget.cost
        if cost is None:
            return usage
        try:
            priced = replace(usage, cost_micros=cost(usage))
            if priced.cost_micros is None:
                # A price that nobody knows would never reach a cap.
                raise TypeError("it gave None; give a whole number of 0 or more")
        except Exception as error:
            raise Stop("budget_failed", f"Budget.cost failed: {said(error)}") from error
        return priced

    def add(self, usage: Usage) -> None:
        """Count what a model call, or a whole nested run, used."""
        self.used = usage if self.used is None else self.used + usage

    def check(self) -> None:
        """Raise `Stop` where a cap is reached: the next model call must not be made."""
        budget = self._budget
        if budget.steps is not None and self.steps >= budget.steps:
            raise _exhausted(f"step budget exhausted ({budget.steps})")
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise _exhausted(f"duration budget exhausted ({budget.duration_seconds:g}s)")
        if self.used is not None:
            self._check_usage(self.used)

    def _check_usage(self, used: Usage) -> None:
        budget = self._budget
        into, out = used.input_tokens or 0, used.output_tokens or 0
        for name, cap, count in (
            ("token", budget.tokens, into + out),
            ("input token", budget.input_tokens, into),
            ("output token", budget.output_tokens, out),
            ("cost", budget.cost_micros, used.cost_micros or 0),
        ):
            if cap is not None and count >= cap:
                raise _exhausted(f"{name} budget exhausted ({cap})")

    def propose(self, call: ToolCall, step: int) -> None:
        """Raise `Stop` for a call that the run has proposed too often."""
        most = self._budget.max_repeated_calls
        if most is None:
            return
        # A digest, so that a long run does not keep every argument that it ever saw.
        key = digest([ascii(call.tool), _canonical(call.args)])
        count = self._proposed[key] = self._proposed.get(key, 0) + 1
        if count > most:
            raise Stop(
                "repeated_call",
                f"repeated call limit exhausted ({most}): {call.tool} with identical args",
                step=step,
            )


def _exhausted(error: str) -> Stop:
    return Stop("budget_exhausted", error)


def _canonical(args: Mapping[str, Any] | str) -> str:
    """Write arguments so that the same ones look the same, whoever wrote them."""
    try:
        read = parse_arguments(args) if isinstance(args, str) else freeze_object(args)
        return canonical_json(_plainly(read))
    except AdjudgeError as error:
        # They will be refused; what is refused for the same reason counts as the same.
        return f"refused: {error}"


def _plainly(value: object) -> Any:
    """Write a number in one way: 1, 1.0 and 1e0 are the same."""
    if isinstance(value, FrozenDict):
        return {name: _plainly(item) for name, item in value.items()}
    if isinstance(value, FrozenList):
        return [_plainly(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
