"""What the model of a kernel chooses to do next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from adjudge.integration import freeze_object
from adjudge_runtime._answers import storable

__all__ = ["Decision", "Model", "decision_to_body"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One move: `act` names a tool, `finish` has the answer, `ask` a question to a person.

    `arguments` are named values, or the model's own JSON text, which the guard parses strictly.
    `tokens_in`, `tokens_out` and `cost_micros` (millionths of a unit) are what the model call used.
    What does not fit together raises `TypeError` or `ValueError`.
    """

    kind: Literal["act", "finish", "ask"]
    thought: str
    tool: str | None = None
    arguments: Mapping[str, Any] | str | None = None
    answer: str | None = None
    question: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0

    def __post_init__(self) -> None:
        if self.kind not in _NEEDS:
            raise ValueError(f"Decision.kind is {self.kind!r}; give act, finish or ask.")
        if not isinstance(self.thought, str):
            raise TypeError(f"Decision.thought is {self.thought!r}; give a string.")
        for name in ("tool", "answer", "question"):
            value = getattr(self, name)
            needed = _NEEDS[self.kind] == name
            if needed and (not isinstance(value, str) or (not value and name != "answer")):
                raise ValueError(f"A decision to {self.kind} needs its {name}; give a string.")
            if not needed and value is not None:
                raise ValueError(f"A decision to {self.kind} has no {name}; it is {value!r}.")
        for name in ("tokens_in", "tokens_out", "cost_micros"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(f"Decision.{name} is {value!r}; give a whole number from 0.")
        self._take_arguments()

    def _take_arguments(self) -> None:
        given = self.arguments
        if self.kind != "act":
            if given is not None:
                raise ValueError(f"A decision to {self.kind} has no arguments; it is {given!r}.")
        elif given is None or isinstance(given, Mapping):
            # Later changes to the mapping are none to what was decided.
            object.__setattr__(self, "arguments", freeze_object(given or {}, where="arguments"))
        elif not isinstance(given, str):
            raise TypeError(f"Decision.arguments is {given!r}; give named values, or JSON text.")


_NEEDS = {"act": "tool", "finish": "answer", "ask": "question"}

Model = Callable[[str], Decision | Awaitable[Decision]]
"""Chooses the next move, having read the goal and the scratchpad; it may be async."""


def decision_to_body(decision: Decision) -> dict[str, Any]:
    """Give a decision as a JSON object, with texts that every store takes."""
    body = {field.name: getattr(decision, field.name) for field in fields(decision)}
    return {
        name: storable(value) if isinstance(value, str) else value for name, value in body.items()
    }
