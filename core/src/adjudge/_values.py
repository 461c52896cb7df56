"""JSON values as Adjudge holds them: frozen once, of strict kinds, with one canonical text.

`freeze` takes what a caller hands over (plain JSON, tuples, Decimal, Enum, dates, UUIDs, paths) and
gives an immutable copy or refuses; `thaw` gives a body fresh plain dicts and lists;
`canonical_json` is the text under every digest (clauses 1, 28, 29).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, NoReturn
from uuid import UUID

from adjudge.errors import ArgumentsRefused

__all__ = [
    "EMPTY",
    "MAX_DEPTH",
    "MAX_INT_DIGITS",
    "FrozenDict",
    "FrozenList",
    "OpaqueValue",
    "canonical_json",
    "digest",
    "freeze",
    "freeze_object",
    "kind_of",
    "thaw",
]

MAX_DEPTH = 64
MAX_INT_DIGITS = 4000
_MAX_INT = 10**MAX_INT_DIGITS
_SMALL = 2**63


def _immutable(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} is immutable; build a new value instead")


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed; it compares, pickles and serialises as one."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = _immutable
    setdefault = update = __ior__ = _immutable

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return (type(self), (dict(self),))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenDict:
        return self


class FrozenList(list[Any]):
    """A list that cannot be changed; it compares, pickles and serialises as one."""

    __slots__ = ()
    __setitem__ = __delitem__ = append = clear = extend = insert = pop = remove = _immutable
    reverse = sort = __iadd__ = __imul__ = _immutable

    def __reduce__(self) -> tuple[type[FrozenList], tuple[list[Any]]]:
        return (type(self), (list(self),))

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenList:
        return self


EMPTY: FrozenDict = FrozenDict()


class OpaqueValue:
    """A secret's place in the arguments: it is there, and it equals nothing, itself included.

    Every test of it but `exists` is an error. It carries nothing of the secret, in no form.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return "<secret>"


def kind_of(value: object) -> str:
    """Name the JSON kind of a frozen value: null, bool, number, string, list, object or secret."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list | tuple):
        return "list"
    if isinstance(value, OpaqueValue):
        return "secret"
    return type(value).__name__


def freeze(value: object, *, where: str = "args") -> Any:
    """Give an immutable copy of a JSON value (clause 1).

    What is none raises `ArgumentsRefused`, which names its place.
    """
    return _freeze(value, where, 0)


def freeze_object(value: Mapping[str, object], *, where: str = "args") -> FrozenDict:
    """Freeze a JSON object; anything else raises `ArgumentsRefused`."""
    if type(value) is not dict and not isinstance(value, Mapping):
        raise ArgumentsRefused(f"{where} is a {kind_of(value)}, not an object with named values.")
    return _freeze_object(value, where, 0)


def _freeze_object(value: Mapping[Any, Any], where: str, depth: int) -> FrozenDict:
    if type(value) is dict:
        # Looked at is what was taken, whatever becomes of the other.
        value = taken = FrozenDict(value)
        for key, item in taken.items():
            kind = type(item)
            if not (
                type(key) is str
                and key.isascii()
                and (
                    (kind is str and item.isascii())
                    or (kind is int and -_SMALL < item < _SMALL)
                    or kind is bool
                    or item is None
                )
            ):
                break
        else:
            return taken
    items: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise ArgumentsRefused(
                f"{where} has the key {key!r}; the keys of an object are strings."
            )
        if not key.isascii():
            _checked_text(key, where)
        items[key] = _freeze(item, f"{where}.{key}", depth + 1)
    return FrozenDict(items)


def _freeze(value: object, where: str, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _checked_text(value, where)  # type: ignore[arg-type]
    if value is None or kind is bool:
        return value
    if kind is int:
        return _checked_int(value, where)  # type: ignore[arg-type]
    if kind is float:
        return _checked_float(value, where)  # type: ignore[arg-type]
    if depth >= MAX_DEPTH:
        raise ArgumentsRefused(f"{where} is nested more than {MAX_DEPTH} levels deep.")
    if kind is dict or isinstance(value, Mapping):
        return _freeze_object(value, where, depth)  # type: ignore[arg-type]
    if isinstance(value, list | tuple):
        return FrozenList(
            _freeze(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)
        )
    return _freeze_scalar(value, where, depth)


def _freeze_scalar(value: object, where: str, depth: int) -> Any:
    if isinstance(value, Enum):
        return _freeze(value.value, where, depth + 1)
    if isinstance(value, str):
        return _checked_text(str.__str__(value), where)
    if isinstance(value, int):
        return _checked_int(int(value), where)
    if isinstance(value, float):
        return _checked_float(float(value), where)
    if isinstance(value, Decimal):
        # A subclass could compare as it likes.
        number = value if type(value) is Decimal else Decimal(value)
        if not number.is_finite():
            raise ArgumentsRefused(f"{where} is {number}; numbers must be finite.")
        return number
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID | PurePath):
        return _checked_text(str(value), where)
    if isinstance(value, OpaqueValue):
        return value
    raise ArgumentsRefused(
        f"{where} is a {type(value).__name__}, which is no JSON value; "
        "pass null, a bool, a number, a string, a list or an object."
    )


def _checked_text(text: str, where: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentsRefused(f"{where} holds a lone surrogate; text must be Unicode.") from None
    return text


def _checked_int(number: int, where: str) -> int:
    if not -_MAX_INT < number < _MAX_INT:
        raise ArgumentsRefused(f"{where} is an integer of more than {MAX_INT_DIGITS} digits.")
    return number


def _checked_float(number: float, where: str) -> float:
    if not math.isfinite(number):
        raise ArgumentsRefused(f"{where} is {number!r}; numbers must be finite.")
    return number


def thaw(value: Any) -> Any:
    """Give a fresh, plain copy: dicts and lists that the receiver may change."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    if isinstance(value, dict | Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


def canonical_json(value: object) -> str:
    """Write a value in its one canonical text (clause 28).

    Sorted keys, ASCII, tight separators; 1 and 1.0 differ; a Decimal is a tagged text. A key that
    begins with `$` gets another `$`, so that no object can pass for a tag. Raises
    `ArgumentsRefused` for what is no JSON value.
    """
    return json.dumps(
        _tagged(freeze(value, where="value")),
        sort_keys=True,
        ensure_ascii=True,
        allow_nan=False,
        separators=(",", ":"),
    )


def _tagged(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            ("$" + key if key.startswith("$") else key): _tagged(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, OpaqueValue):
        return {"$secret": True}
    return value


def digest(value: object) -> str:
    """Give the SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()
