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
from pathlib import PurePath
from typing import Any
from uuid import UUID

from adjudge._types import AuditEvent
from adjudge._values import MAX_INT_DIGITS, OpaqueValue

__all__ = ["RECORD_FIELDS", "event_to_record", "record_line", "to_json"]

RECORD_FIELDS = ("correlation_id", "bundle_id", "seq", "kind", "timestamp", "body")
_MAX_INT = 10**MAX_INT_DIGITS
_MAX_NESTING = 128


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
    return json.dumps(
        record, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
    )


def to_json(value: object) -> Any:
    """Give the plain JSON form of any value, as the module says."""
    return _plain(value, ())


def _plain(value: object, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
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
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {
                ("$" + key if key.startswith("$") else key): _plain(item, above)
                for key, item in value.items()
            }
        return {"$map": [[_plain(key, above), _plain(item, above)] for key, item in value.items()]}
    if isinstance(value, Set):
        return {"$set": sorted((_plain(item, above) for item in value), key=record_line)}
    return [_plain(item, above) for item in value]


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
