"""Quicker ways to make the frozen values of which each step makes several.

The `__init__` of a frozen dataclass goes around its own `__setattr__` for each field. An open twin
has plain ones, given by position and all of them; once its `__class__` is the frozen one it is
that value. What is made so was checked before, or is the loop's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, make_dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from adjudge import StepRecord
from adjudge.integration import FrozenDict
from adjudge_runtime._values import Message, ToolCall, Usage

__all__ = ["are_plain", "proposed", "recorded", "said_by_agent", "told_by_tool"]

_SMALL = 2**63


def _open(frozen: type[Any]) -> Any:
    """Give a dataclass with the same fields, and so the same layout, whose fields can be set."""
    return make_dataclass(frozen.__name__, [item.name for item in fields(frozen)], slots=True)


_OpenMessage = _open(Message)
_OpenRecord = _open(StepRecord)
_OpenToolCall = _open(ToolCall)


def proposed(
    tool: str, args: Mapping[str, Any] | str, call_id: str, *, usage: Usage | None = None
) -> ToolCall:
    """Give a call with an id; in a conversation it is one without what it cost."""
    call: ToolCall = _OpenToolCall(tool, args, call_id, usage)
    call.__class__ = ToolCall
    return call


def said_by_agent(text: str, calls: tuple[ToolCall, ...]) -> Message:
    """Give the message of an agent that proposes calls."""
    message: Message = _OpenMessage("assistant", text, None, None, calls)
    message.__class__ = Message
    return message


def told_by_tool(text: str, call: ToolCall) -> Message:
    """Give the message with what came of a call."""
    message: Message = _OpenMessage("tool", text, call.tool, call.call_id, ())
    message.__class__ = Message
    return message


def recorded(
    place: tuple[str, int],
    kind: str,
    key: str,
    body: Mapping[str, Any],
    *,
    foreign: tuple[object, ...] | None = None,
) -> StepRecord:
    """Give the record of a step at a place of a journal, of now.

    Kind and key are the journal's own. `foreign` are those of the body's values that somebody else
    made, where all others are the journal's own or frozen; None says nothing of any. Raises
    `TypeError` or `ValueError` for a run or a body that no record can have.
    """
    run_id, seq = place
    now = datetime.now(UTC)
    if foreign is None or not are_plain(foreign) or not _is_plain_run(run_id):
        return StepRecord(run_id, seq, kind, key, body, now)
    record: StepRecord = _OpenRecord(run_id, seq, kind, key, FrozenDict(body), now)
    record.__class__ = StepRecord
    return record


def are_plain(values: Iterable[object]) -> bool:
    """Whether freezing would change, and refuse, none of these values."""
    for value in values:
        kind = type(value)
        if kind is str:
            if not value.isascii():  # type: ignore[attr-defined]
                return False
        elif kind is int:
            if not -_SMALL < value < _SMALL:  # type: ignore[operator]
                return False
        elif kind is float:
            if not isfinite(value):  # type: ignore[arg-type]
                return False
        elif kind is not bool and value is not None:
            return False
    return True


def _is_plain_run(run_id: str) -> bool:
    return run_id != "" and run_id.isascii() and run_id.isprintable()
