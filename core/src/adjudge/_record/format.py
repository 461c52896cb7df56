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
from collections.abc import Callable, Mapping, Set
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import PurePath
from typing import Any, TypeVar
from uuid import UUID

from adjudge._types import AuditEvent
from adjudge._values import MAX_INT_DIGITS, FrozenDict, FrozenList, OpaqueValue

__all__ = [
    "RECORD_FIELDS",
    "EventTexts",
    "Kept",
    "PlainDict",
    "event_to_record",
    "record_line",
    "to_json",
]

RECORD_FIELDS = ("correlation_id", "bundle_id", "seq", "kind", "timestamp", "body")
_MAX_INT = 10**MAX_INT_DIGITS
_MAX_NESTING = 128
_MAX_KNOWN = 4096
_FEW = 64
_SHORT = 1024
_MILLION = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_K = TypeVar("_K", bound="str | tuple[str, ...]")
_V = TypeVar("_V")
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


class Kept(dict[_K, _V]):
    """What a function gave for the last some thousand keys, looked up without a call."""

    def __init__(self, function: Callable[[_K], _V]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: _K) -> _V:
        found = self._function(key)
        # What shows a secret (None) is not kept, nor what is long: names and texts are a model's.
        if found is not None and len(key) <= _FEW and sum(map(len, key)) <= _SHORT:
            if len(self) >= _MAX_KNOWN:
                self.clear()
            self[key] = found
        return found


class EventTexts:
    """Writes events as `record_line(event_to_record(event))` does.

    The fields come in their sorted order, so nothing is made but the text, and what many events
    have in common is kept: the ids of a guard's, and the second.
    """

    __slots__ = ("_ids", "_second")

    def __init__(self) -> None:
        self._ids = Kept(_ids_text)
        # One value, so that threads may share it.
        self._second = (_EPOCH, _EPOCH, "")

    def text(self, event: AuditEvent, prev_hash: str | None = None) -> str:
        """Give the text of an event, with its `prev_hash` if it has one."""
        return self.open_text(event, prev_hash) + "}"

    def open_text(self, event: AuditEvent, prev_hash: str | None) -> str:
        """Give the text without its closing brace."""
        body = event.body
        written = body.text if type(body) is PlainDict else record_line(to_json(body))
        ids = self._ids[event.bundle_id, event.correlation_id, event.kind]
        seq = event.seq if type(event.seq) is int else f"{event.seq:d}"
        when = event.timestamp
        begin, end, shown = self._second
        if type(when) is not datetime or when.tzinfo is not UTC:
            shown, rest = when.isoformat(), ""
        elif begin < when < end:
            # Six digits; to name a width takes several times as long.
            rest = f"{_MILLION + when.microsecond}+00:00"[1:]
        else:
            shown, rest = self._next_second(when), ""
        if prev_hash is None:
            return f'{{"body":{written}{ids}"seq":{seq},"timestamp":"{shown}{rest}"'
        return (
            f'{{"body":{written}{ids}"prev_hash":"{prev_hash}","seq":{seq},'
            f'"timestamp":"{shown}{rest}"'
        )

    def _next_second(self, when: datetime) -> str:
        begin = when.replace(microsecond=0)
        second = begin.isoformat().removesuffix("+00:00") + "."
        self._second = (begin, begin + _SECOND, second)
        # A whole second is written without a fraction.
        return when.isoformat()


def _ids_text(ids: tuple[str, str, str]) -> str:
    bundle, correlation, kind = map(_quoted, ids)
    return f',"bundle_id":{bundle},"correlation_id":{correlation},"kind":{kind},'


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
