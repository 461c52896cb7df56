"""One audit event as plain JSON, and as the text of one line of the record.

Every value has a defined form: JSON values as they are; dates, UUIDs and paths as their text; a
Decimal, a non-finite float, bytes and the like as a one-key object whose key begins with `$`;
anything else as the name of its type alone, never its repr, which may hold an address or a secret.
A key that itself begins with `$` gets another one, so that nothing can pass for such an object.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Set
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import PurePath
from typing import Any
from uuid import UUID

from adjudge._types import AuditEvent
from adjudge._values import MAX_INT_DIGITS, FrozenDict, FrozenList, OpaqueValue

__all__ = ["RECORD_FIELDS", "PlainDict", "event_text", "event_to_record", "record_line", "to_json"]

RECORD_FIELDS = ("correlation_id", "bundle_id", "seq", "kind", "timestamp", "body")
_MAX_INT = 10**MAX_INT_DIGITS
_MAX_NESTING = 128
_THEMSELVES = frozenset({str, bool, type(None)})
_encode = json.JSONEncoder(
    sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
).encode


def event_to_record(event: AuditEvent) -> dict[str, Any]:
    """Give the event as a plain JSON object with the keys `RECORD_FIELDS`, whatever it holds."""
    return {
        "correlation_id": event.correlation_id,
        "bundle_id": event.bundle_id,
        "seq": event.seq,
        "kind": event.kind,
        "timestamp": event.timestamp.isoformat(),
        "body": to_json(event.body),
    }


def event_text(event: AuditEvent, prev_hash: str | None = None) -> str:
    """Write an event as `record_line(event_to_record(event))` does, with its `prev_hash` if it has.

    The fields come in their sorted order, so nothing is made but the text.
    """
    body = event.body
    if type(body) is PlainDict:
        written = body.text
    else:
        written = record_line(to_json(body))
    link = "" if prev_hash is None else f'"prev_hash":"{prev_hash}",'
    return (
        f'{{"body":{written},"bundle_id":{_quoted(event.bundle_id)},'
        f'"correlation_id":{_quoted(event.correlation_id)},"kind":{_quoted(event.kind)},'
        f'{link}"seq":{event.seq:d},"timestamp":"{event.timestamp.isoformat()}"}}'
    )


def record_line(record: Mapping[str, Any]) -> str:
    """Write a plain JSON object in the one canonical form: sorted keys, ASCII, tight separators."""
    return _encode(record)


def to_json(value: object) -> Any:
    """Give the plain JSON form of any value, as the module says."""
    return _plain(value, ())


class PlainDict(FrozenDict):
    """A frozen object whose JSON form is itself, at any depth; who makes one vouches for that."""

    __slots__ = ("text",)
    text: str
    """Its canonical text."""

    @classmethod
    def of(cls, value: Mapping[str, Any], text: str) -> PlainDict:
        """Make one whose canonical text is known."""
        made = cls(value)
        made.text = text
        return made

    def __getattr__(self, name: str) -> Any:
        """Write the text where nobody has; once it is there, reading it calls nothing."""
        if name != "text":
            raise AttributeError(name)
        self.text = text = _encode(self)
        return text


def _plain(value: object, above: tuple[int, ...]) -> Any:
    kind = type(value)
    if kind in _THEMSELVES or kind is PlainDict:
        return value
    if kind is FrozenDict or kind is FrozenList or kind is dict or kind is list:
        return _plain_container(value, above)
    if isinstance(value, Enum):
        return _plain(value.value, above)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value) if -_MAX_INT < value < _MAX_INT else {"$int": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, Mapping | list | tuple | Set):
        return _plain_container(value, above)
    return _plain_scalar(value)


def _plain_container(value: Any, above: tuple[int, ...]) -> Any:
    if id(value) in above or len(above) >= _MAX_NESTING:
        return {"$cut": "cycle" if id(value) in above else "nesting"}
    above = (*above, id(value))
    if isinstance(value, dict | Mapping):
        return _plain_mapping(value, above)
    if isinstance(value, list | tuple):
        return [_plain(item, above) for item in value]
    return {"$set": sorted((_plain(item, above) for item in value), key=record_line)}


def _plain_mapping(value: Mapping[Any, Any], above: tuple[int, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            pairs = [[_plain(key, above), _plain(item, above)] for key, item in value.items()]
            return {"$map": pairs}
        name = "$" + key if key.startswith("$") else key
        found[name] = item if type(item) in _THEMSELVES else _plain(item, above)
    return found


def _plain_scalar(value: object) -> Any:
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID | PurePath):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, OpaqueValue):
        return {"$secret": True}
    kind = type(value)
    return {"$type": f"{kind.__module__}.{kind.__qualname__}"}
