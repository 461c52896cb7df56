"""A session as it is kept between two turns: all that another process needs to go on with it.

It holds the working set, and says how much of the execution chain it covers; it is no record of
what happened. Written as core's `SessionRecord`, and read back strictly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adjudge import SessionRecord, StoreError
from adjudge.integration import canonical_json, parse_canonical
from adjudge_runtime.kernel._lifecycle import RunState
from adjudge_runtime.kernel._steps import Step, read_time, step_from_body, step_to_body

__all__ = ["SessionSnapshot", "session_from_record", "session_to_record", "step_to_text"]


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """One session as it was saved last.

    `steps` and `summary` are the scratchpad's. `covers` is how many records of the chain are in it.
    `model_calls`, `tokens_used` and `cost_micros` count the whole life. `acting` is a step whose
    tool has no result yet: `has_begun` where its body may have run, `pending` the id under which it
    waits for approval. `tools` are those that were proposed, by name.
    """

    session_id: str
    tenant: str
    user_id: str
    goal: str
    state: RunState
    created_at: datetime
    updated_at: datetime
    version: int = 0
    steps: tuple[Step, ...] = ()
    summary: str = ""
    compactions: int = 0
    covers: int = 0
    next_index: int = 1
    model_calls: int = 0
    tokens_used: int = 0
    cost_micros: int = 0
    pending_question: str | None = None
    acting: Step | None = None
    has_begun: bool = False
    pending: str | None = None
    answer: str | None = None
    breach: str | None = None
    tools: tuple[str, ...] = ()


def session_to_record(
    snapshot: SessionSnapshot, *, steps: Sequence[str] | None = None
) -> SessionRecord:
    """Write a session for a `SessionStore`; `steps` are the texts of its steps, if they are known.

    A step is one text in it: saving a session costs little however many steps it shows.
    """
    body = {name: getattr(snapshot, name) for name in _READERS}
    body["state"] = snapshot.state.value
    body["steps"] = list(map(step_to_text, snapshot.steps) if steps is None else steps)
    body["tools"] = list(snapshot.tools)
    body["acting"] = None if snapshot.acting is None else step_to_body(snapshot.acting)
    return SessionRecord(snapshot.session_id, snapshot.version, body)


def step_to_text(step: Step) -> str:
    """Write a step as a session has it."""
    return canonical_json(step_to_body(step))


def session_from_record(record: SessionRecord) -> SessionSnapshot:
    """Read a session of a kernel; raises `StoreError`, which names the field, for others."""
    where = f"The session {record.session_id!r}"
    odd = sorted(record.body.keys() ^ _READERS.keys())
    if odd:
        raise StoreError(f"{where} is none of a kernel's: {odd[0]} is missing or unknown.")
    fields = {name: read(record.body[name], f"{where}: {name}") for name, read in _READERS.items()}
    return SessionSnapshot(session_id=record.session_id, version=record.version, **fields)


def _a(*kinds: type) -> Callable[[Any, str], Any]:
    def read(value: Any, where: str) -> Any:
        if type(value) not in kinds or (type(value) is int and value < 0):
            raise StoreError(f"{where} is {value!r}, which no session has.")
        return value

    return read


def _state(value: Any, where: str) -> RunState:
    try:
        return RunState(value)
    except ValueError:
        raise StoreError(f"{where} is {value!r}, which no session has.") from None


def _moment(value: Any, where: str) -> datetime:
    moment = read_time(value, where)
    if moment is None:
        raise StoreError(f"{where} is missing.")
    return moment


def _steps(value: Any, where: str) -> tuple[Step, ...]:
    return tuple(_step_of_text(each, where) for each in _items(value, where))


def _step_of_text(text: Any, where: str) -> Step:
    try:
        body = parse_canonical(text)
    except ValueError as error:
        raise StoreError(f"{where} has a step that {error}.") from None
    return step_from_body(body, where=where)


def _step(value: Any, where: str) -> Step | None:
    return None if value is None else step_from_body(value, where=where)


def _names(value: Any, where: str) -> tuple[str, ...]:
    return tuple(_TEXT(each, where) for each in _items(value, where))


def _items(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise StoreError(f"{where} is {value!r}, which is no list.")
    return value


_TEXT = _a(str)
_COUNT = _a(int)
_MAYBE_TEXT = _a(str, type(None))
_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "tenant": _TEXT,
    "user_id": _TEXT,
    "goal": _TEXT,
    "state": _state,
    "created_at": _moment,
    "updated_at": _moment,
    "steps": _steps,
    "summary": _TEXT,
    "compactions": _COUNT,
    "covers": _COUNT,
    "next_index": _COUNT,
    "model_calls": _COUNT,
    "tokens_used": _COUNT,
    "cost_micros": _COUNT,
    "pending_question": _MAYBE_TEXT,
    "acting": _step,
    "has_begun": _a(bool),
    "pending": _MAYBE_TEXT,
    "answer": _MAYBE_TEXT,
    "breach": _MAYBE_TEXT,
    "tools": _names,
}
