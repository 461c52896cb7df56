"""A ledger's entry as JSON text and back: nothing executable, and nothing taken on trust.

Stores keep what never changes as the text of `encode_entry` and the few fields that do beside it.
`decode_entry` checks each of both; an entry that is not exactly as one was written raises
`LedgerError`, which names the field, and grants nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from adjudge._ledger.entries import WAITING, EntryState, LedgerEntry
from adjudge._stores.canonical import parse_canonical
from adjudge._types import ApprovalDecision, Outcome, Principal
from adjudge._values import canonical_json, freeze_object
from adjudge.errors import ArgumentsRefused, LedgerError

__all__ = ["decode_entry", "encode_answers", "encode_entry", "encode_result"]

_VERSION = 1
_OPAQUE = '{"$secret":true}'
_DIGEST = re.compile(r"[0-9a-f]{64}")
_OUTCOMES = frozenset({*(outcome.value for outcome in Outcome), "expired"})
_KINDS = frozenset({"user", "service", "agent"})


def encode_entry(entry: LedgerEntry) -> str:
    """Write what never changes of an entry; raises `LedgerError` for arguments that JSON lacks."""
    who = entry.principal
    fields = {name: getattr(entry, name) for name in _FIELDS if name != "principal"}
    fields["version"] = _VERSION
    fields["principal"] = {"kind": who.kind, "id": who.id, "name": who.name}
    return _storable(fields, f"The entry {entry.id!r}")


def encode_answers(id: str, answers: Sequence[ApprovalDecision]) -> str:
    """Write an entry's answers; raises `LedgerError` for edits that JSON lacks."""
    given = [{name: getattr(answer, name) for name in _ANSWER} for answer in answers]
    return _storable(given, f"The answer to {id!r}")


def encode_result(id: str, result: Mapping[str, Any] | None) -> str | None:
    """Write what a finished call gave; raises `LedgerError` for what JSON lacks."""
    return None if result is None else _storable(result, f"The result of {id!r}")


def _storable(value: object, what: str) -> str:
    try:
        text = canonical_json(value)
    except ArgumentsRefused as error:
        raise LedgerError(f"{what} cannot be stored: {error}") from None
    # Inside a text the quotes would be escaped, so this can be nothing but the marker itself.
    if _OPAQUE in text:
        raise LedgerError(
            f"{what} cannot be stored: it holds a secret, which a ledger never gets to see."
        )
    return text


def decode_entry(
    id: str,
    text: object,
    *,
    expires_at: datetime,
    state: object,
    grants: object,
    answers: object,
    holder: object,
    outcome: object,
    result: object,
) -> LedgerEntry:
    """Read an entry, or raise `LedgerError` naming the field that is not what it should be."""
    fields = _read_object(id, "record", text)
    if fields.keys() != {*_FIELDS, "version"}:
        odd = sorted(fields.keys() ^ {*_FIELDS, "version"})
        raise _bad(id, odd[0], "is missing or unknown")
    if type(fields["version"]) is not int or fields["version"] != _VERSION:
        raise _bad(id, "version", f"is {fields['version']!r}; this version reads {_VERSION}")
    values: dict[str, Any] = {}
    for name, read in _FIELDS.items():
        try:
            values[name] = read(fields[name])
        except (ValueError, ArgumentsRefused) as error:
            raise _bad(id, name, str(error)) from None
    if values["id"] != id:
        raise _bad(id, "id", f"is {values['id']!r}")
    try:
        known = EntryState(_text(state))
    except ValueError:
        raise _bad(id, "state", f"is {state!r}") from None
    entry = LedgerEntry(
        **values,
        expires_at=expires_at,
        state=known,
        grants=_checked(id, "grants", _texts, grants),
        answers=_checked(id, "answers", _answers, answers),
        holder=_checked(id, "holder", _optional(_text), holder),
        outcome=_checked(id, "outcome", _optional(_outcome), outcome),
        result=None if result is None else freeze_object(_read_object(id, "result", result)),
    )
    _check_agreement(entry)
    return entry


def _check_agreement(entry: LedgerEntry) -> None:
    if (entry.outcome is not None) is not (entry.state is EntryState.FINISHED):
        raise _bad(entry.id, "outcome", f"is {entry.outcome!r} in the state {entry.state.value}")
    if entry.state is EntryState.CLAIMED and entry.holder is None:
        raise _bad(entry.id, "holder", "is missing from a claimed entry")
    if entry.state in WAITING and entry.holder is not None:
        raise _bad(entry.id, "holder", f"is {entry.holder!r} although the entry waits")
    if len(entry.grants) > max(1, len(entry.approver_sets)):
        raise _bad(entry.id, "grants", "are more than there are approver sets")
    if len(entry.answers) > max(1, len(entry.approver_sets)):
        raise _bad(entry.id, "answers", "are more than there are approver sets")
    if entry.result is not None and entry.state is not EntryState.FINISHED:
        raise _bad(entry.id, "result", f"is there in the state {entry.state.value}")


def _read_object(id: str, field: str, text: object) -> dict[str, Any]:
    try:
        value = parse_canonical(text)
    except ValueError as error:
        raise _bad(id, field, f"cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise _bad(id, field, "is no object")
    return value


def _bad(id: str, field: str, why: str) -> LedgerError:
    return LedgerError(f"The ledger's entry {id!r} is not as it was written: its {field} {why}.")


def _checked(id: str, field: str, read: Callable[[object], Any], value: object) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise _bad(id, field, str(error)) from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is a {type(value).__name__} and no text")
    return value


def _optional(read: Callable[[object], Any]) -> Callable[[object], Any]:
    return lambda value: None if value is None else read(value)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"is {value!r} and no count")
    return value


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"is a {type(value).__name__} and no object")
    return freeze_object(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"is a {type(value).__name__} and no list")
    return tuple(_text(item) for item in value)


def _text_lists(value: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        raise ValueError(f"is a {type(value).__name__} and no list")
    return tuple(_texts(item) for item in value)


def _hex_digest(value: object) -> str:
    if _DIGEST.fullmatch(_text(value)) is None:
        raise ValueError("is no SHA-256 in hexadecimal")
    return _text(value)


def _outcome(value: object) -> str:
    if value not in _OUTCOMES:
        raise ValueError(f"is {value!r}")
    return _text(value)


def _answers(value: object) -> tuple[ApprovalDecision, ...]:
    given = parse_canonical(value)
    if not isinstance(given, list):
        raise ValueError(f"is a {type(given).__name__} and no list")
    return tuple(_answer(item) for item in given)


def _answer(value: object) -> ApprovalDecision:
    if not isinstance(value, dict) or value.keys() != _ANSWER.keys():
        raise ValueError("holds something that is no answer")
    return ApprovalDecision(**{name: read(value[name]) for name, read in _ANSWER.items()})


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"is {value!r} and no bool")
    return value


def _principal(value: object) -> Principal:
    if not isinstance(value, dict) or value.keys() != {"kind", "id", "name"}:
        raise ValueError("is no object with kind, id and name")
    if value["kind"] not in _KINDS:
        raise ValueError(f"has the kind {value['kind']!r}")
    return Principal(value["kind"], _text(value["id"]), _optional(_text)(value["name"]))


_ANSWER: Mapping[str, Callable[[object], Any]] = {
    "granted": _flag,
    "approver": _text,
    "reason": _text,
    "edited_args": _optional(_object),
}

_FIELDS: Mapping[str, Callable[[object], Any]] = {
    "id": _text,
    "tool": _text,
    "namespace": _optional(_text),
    "args": _object,
    "digest": _hex_digest,
    "principal": _principal,
    "occurrence": _text,
    "policy_id": _text,
    "matched_rules": _texts,
    "approver_sets": _text_lists,
    "correlation_id": _text,
    "seq": _count,
    "call_id": _optional(_text),
    "attempt": _count,
    "environment": _optional(_text),
    "workspace": _text,
    "extra": _object,
    "session": _optional(_object),
    "injected": _object,
    "run": _optional(_text),
    "reason": _text,
    "final_args": _optional(_object),
}
