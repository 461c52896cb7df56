"""One turn of a session, and what it costs to show it to a model.

Values alone: nothing here runs, keeps or forgets anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adjudge import StoreError
from adjudge.integration import freeze_object

__all__ = ["Step", "default_summarizer", "estimate_tokens", "step_from_body", "step_to_body"]

_LONGEST_QUOTE = 400


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text has: one for four characters, rounded up.

    The same text always costs the same. Give the tokenizer of your model in its place where an
    estimate does not do.
    """
    return (len(text) + 3) // 4


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: what the model thought, what it did, and what came of it.

    `arguments` are those that the model proposed, as values or as its own JSON text. `observation`
    is what it was told, `error` what it was told in place of a result (a denial, a failure).
    `verdict` and `code` are the guard's. Times are aware, tokens counts, money millionths.
    """

    index: int
    thought: str
    tool: str | None = None
    arguments: Mapping[str, Any] | str | None = None
    observation: str | None = None
    error: str | None = None
    verdict: str = ""
    code: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.arguments is not None and not isinstance(self.arguments, str):
            object.__setattr__(self, "arguments", freeze_object(self.arguments, where="arguments"))

    def render(self) -> str:
        """Write the step for a model; no text within it can pass for another step."""
        lines = [f"[{self.index}] thought: {_within(self.thought)}"]
        if self.tool is not None:
            given = self.arguments
            said = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
            lines.append(f"  action: {_within(self.tool)} {_within(said)}")
        if self.observation is not None:
            lines.append(f"  observation: {_within(self.observation)}")
        if self.error is not None:
            lines.append(f"  error: {_within(self.error)}")
        return "\n".join(lines)


def default_summarizer(steps: Sequence[Step]) -> str:
    """Summarize steps without a model: the tools that were used, and the last result, cut short."""
    tools = sorted({step.tool for step in steps if step.tool})
    last = next((step.observation for step in reversed(steps) if step.observation), "")
    before = next((step.observation for step in steps if step.index == 0), None)
    own = [step for step in steps if step.index > 0]
    said = (
        f"steps {own[0].index} to {own[-1].index} used {', '.join(tools) or 'no tools'}; "
        f"last result: {_cut(last)}"
    )
    return said if before is None else f"{_cut(before)}\n{said}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}[...]"


def _within(text: str) -> str:
    """Indent what follows a line's end, so that it does not begin a line of ours."""
    return "\n    ".join(text.splitlines()) if text else text


_FIELDS = (
    "index",
    "thought",
    "tool",
    "arguments",
    "observation",
    "error",
    "verdict",
    "code",
    "tokens_in",
    "tokens_out",
    "cost_micros",
)
_TIMES = ("started_at", "ended_at")
_COUNTS = ("index", "tokens_in", "tokens_out", "cost_micros")
_TEXTS = ("thought", "verdict", "code")
_TEXTS_OR_NONE = ("tool", "observation", "error")


def step_to_body(step: Step) -> dict[str, Any]:
    """Give a step as a JSON object."""
    body = {name: getattr(step, name) for name in _FIELDS}
    for name in _TIMES:
        moment = getattr(step, name)
        body[name] = None if moment is None else moment.isoformat()
    return body


def step_from_body(body: object, *, where: str) -> Step:
    """Read a step; raises `StoreError`, which names the field, for what is none."""
    if not isinstance(body, Mapping) or body.keys() != {*_FIELDS, *_TIMES}:
        raise StoreError(f"{where} is no step: {body!r}.")
    _check(body, where)
    fields: dict[str, Any] = {name: body[name] for name in _FIELDS}
    for name in _TIMES:
        fields[name] = read_time(body[name], f"{where}.{name}")
    return Step(**fields)


def _check(body: Mapping[str, Any], where: str) -> None:
    wrong = [name for name in _COUNTS if type(body[name]) is not int or body[name] < 0]
    wrong += [name for name in _TEXTS if not isinstance(body[name], str)]
    wrong += [name for name in _TEXTS_OR_NONE if not isinstance(body[name], str | None)]
    if not isinstance(body["arguments"], str | Mapping | None):
        wrong.append("arguments")
    if wrong:
        raise StoreError(f"{where}.{wrong[0]} is {body[wrong[0]]!r}, which no step has.")


def read_time(value: object, where: str) -> datetime | None:
    """Read a time that may be missing; raises `StoreError` for what is none."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise StoreError(f"{where} is {value!r}, which is no time.") from None
    if moment.utcoffset() is None:
        raise StoreError(f"{where} is {value!r}, a time in no zone.")
    return moment
