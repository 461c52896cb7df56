"""The quotas of a session, which the kernel holds: no model gets to decide its own limits."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite

__all__ = ["BudgetBreach", "Budgets"]


@dataclass(frozen=True, slots=True)
class BudgetBreach:
    """Which quota ended a session (`steps`, `tokens`, `cost` or `deadline`), and where it stood."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Budgets:
    """How far a session may go; looked at before each model call, None is no quota.

    - `max_steps`: model calls, over the session's whole life.
    - `max_tokens`: tokens in and out, over the session's whole life.
    - `max_cost_micros`: money, in millionths of a unit, over the session's whole life.
    - `deadline_seconds`: time since this `run` began; waiting for people does not count.

    A quota that is used up allows no further call. What cannot be one raises `TypeError` or
    `ValueError`.
    """

    max_steps: int | None = 12
    max_tokens: int | None = 20_000
    max_cost_micros: int | None = 500_000
    deadline_seconds: float | None = 30.0

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            kinds = (int, float) if name == "deadline_seconds" else (int,)
            if value is None:
                continue
            if type(value) not in kinds:
                raise TypeError(
                    f"Budgets.{name} is {value!r}; give a number, or None for no limit."
                )
            if not isfinite(value) or value <= 0:
                raise ValueError(f"Budgets.{name} is {value!r}; give a positive number, or None.")

    def breach(
        self, *, steps: int, tokens: int, cost_micros: int, seconds: float
    ) -> BudgetBreach | None:
        """Give the first quota that is used up, None where another model call may be made."""
        for kind, used, quota, unit in (
            ("steps", steps, self.max_steps, "model calls"),
            ("tokens", tokens, self.max_tokens, "tokens"),
            ("cost", cost_micros, self.max_cost_micros, "millionths"),
            ("deadline", seconds, self.deadline_seconds, "seconds"),
        ):
            if quota is not None and used >= quota:
                return BudgetBreach(kind, f"{used:g} of {quota:g} {unit} are used")
        return None
