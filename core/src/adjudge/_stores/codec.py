"""The stores' records as JSON text and back: nothing executable, and nothing taken on trust.

A text that is not exactly as one was written raises `StoreError`, which names the field. What
identifies a row is inside its text as well, so that a text under another's name is found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adjudge._stores.canonical import parse_canonical
from adjudge._stores.records import SessionRecord, StepRecord
from adjudge._values import canonical_json
from adjudge.errors import ArgumentsRefused, StoreError

__all__ = [
    "read_session",
    "read_step",
    "session_record_from_json",
    "session_record_to_json",
    "step_record_from_json",
    "step_record_to_json",
]

_OPAQUE = '{"$secret":true}'
_STEP = ("body", "idempotency_key", "kind", "run_id", "seq", "timestamp")
_SESSION = ("body", "session_id", "version")


def step_record_to_json(record: StepRecord) -> str:
    """Write a step as one line of JSON; raises `StoreError` for a body that holds a secret."""
    fields = {name: getattr(record, name) for name in _STEP}
    fields["timestamp"] = record.timestamp.isoformat()
    return _storable(fields, f"Step {record.seq} of the run {record.run_id!r}")


def step_record_from_json(text: str) -> StepRecord:
    """Read a step; raises `StoreError`, which names the field, for what is none."""
    return _step(text, "The step")


def session_record_to_json(record: SessionRecord) -> str:
    """Write a session as one line of JSON; raises `StoreError` for a body that holds a secret."""
    fields = {name: getattr(record, name) for name in _SESSION}
    return _storable(fields, f"The session {record.session_id!r}")


def session_record_from_json(text: str) -> SessionRecord:
    """Read a session; raises `StoreError`, which names the field, for what is none."""
    return _session(text, "The session")


def read_step(run_id: str, seq: object, text: object) -> StepRecord:
    """Read the step that a store has under a run and a number; `StoreError` for any other."""
    what = f"Step {seq!r} of the run {run_id!r}"
    record = _step(text, what)
    if record.run_id != run_id:
        raise _bad(what, "run_id", f"is {record.run_id!r}")
    if type(seq) is not int or record.seq != seq:
        raise _bad(what, "seq", f"is {record.seq}")
    return record


def read_session(session_id: str, version: object, text: object) -> SessionRecord:
    """Read the session that a store has under an id and a version; `StoreError` for any other."""
    what = f"The session {session_id!r}"
    record = _session(text, what)
    if record.session_id != session_id:
        raise _bad(what, "session_id", f"is {record.session_id!r}")
    if type(version) is not int or version < 1 or record.version != version:
        raise _bad(what, "version", f"is {record.version} and {version!r}")
    return record


def _step(text: object, what: str) -> StepRecord:
    fields = _fields(text, what, _STEP)
    fields["timestamp"] = _moment(fields["timestamp"], what)
    try:
        return StepRecord(**fields)
    except (TypeError, ValueError) as error:
        raise StoreError(f"{what} is not as it was written: {error}") from None


def _session(text: object, what: str) -> SessionRecord:
    try:
        return SessionRecord(**_fields(text, what, _SESSION))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{what} is not as it was written: {error}") from None


def _fields(text: object, what: str, names: tuple[str, ...]) -> dict[str, Any]:
    try:
        found = parse_canonical(text)
    except ValueError as error:
        raise StoreError(f"{what} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise StoreError(f"{what} cannot be read: it is no object.")
    odd = sorted(found.keys() ^ set(names))
    if odd:
        raise _bad(what, odd[0], "is missing or unknown")
    return found


def _moment(value: object, what: str) -> datetime:
    try:
        if not isinstance(value, str):
            raise ValueError
        return datetime.fromisoformat(value)
    except ValueError:
        raise _bad(what, "timestamp", f"is {value!r}") from None


def _storable(fields: Mapping[str, Any], what: str) -> str:
    try:
        text = canonical_json(fields)
    except ArgumentsRefused as error:
        raise StoreError(f"{what} cannot be stored: {error}") from None
    # Inside a text the quotes would be escaped, so this can be nothing but the marker itself.
    if _OPAQUE in text:
        raise StoreError(f"{what} cannot be stored: it holds a secret, which no store gets to see.")
    return text


def _bad(what: str, field: str, why: str) -> StoreError:
    return StoreError(f"{what} is not as it was written: its {field} {why}.")
