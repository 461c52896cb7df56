"""A JSON Schema normaliser: the arguments as a lax validator hands them to the body.

For frameworks that show us raw arguments and a schema only. It fills in defaults and coerces
scalars as pydantic's lax mode does, and only where that is unambiguous; anything else stays as the
model sent it. It never changes its input and is no validator: it promises nothing about values
without `problems`. What a schema cannot express (default factories, validators, aliases, sets) it
does not see.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge._values import MAX_INT_DIGITS, FrozenDict, freeze, freeze_object, kind_of
from adjudge.errors import ArgumentsRefused

__all__ = ["Normalised", "normalise"]

_MAX_HOPS = 32
_MAX_STEPS = 200_000
_MAX_FROM_FLOAT = 2.0**63
_SCALARS = frozenset({"null", "boolean", "integer", "number", "string"})
_OWN_MEANING = frozenset({"$ref", "type", "properties", "anyOf", "oneOf", "enum", "const"})
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})
_DIGITS = "[0-9]+(?:_[0-9]+)*"
_INTEGER = re.compile(rf"[+-]?{_DIGITS}(?:\.0+)?")
_NUMBER = re.compile(rf"[+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?")
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_CONSTRAINTS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"}
)


@dataclass(frozen=True, slots=True)
class Normalised:
    """Arguments after normalising.

    `args` are the arguments that the body gets; `given` names those that the model itself sent.
    `problems` are violations that pydantic's lax mode is certain to reject where a type has no
    validators of its own; `doubts` are those that some validators accept (a value outside an enum,
    a key that the schema does not know).
    """

    args: FrozenDict
    given: frozenset[str]
    problems: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def normalise(
    schema: Mapping[str, Any], args: Mapping[str, Any], *, coerce: bool = True
) -> Normalised:
    """Fill in the defaults and coerce the scalars of one call's arguments.

    With `coerce` False scalars stay as sent: right for a body that no validator stands before.
    Raises `ArgumentsRefused` where the arguments are no JSON values, or would become one that is
    none (the text "nan" for a number).
    """
    sent = freeze_object(args)
    found = _Found()
    value = _Reader(schema, coerce).value(schema, sent, "args", found)
    return Normalised(
        freeze_object(value), frozenset(sent), tuple(found.problems), tuple(found.doubts)
    )


@dataclass(slots=True)
class _Found:
    problems: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Reading:
    value: Any
    doubts: list[str]
    constrained: bool


@dataclass(frozen=True, slots=True)
class _Reader:
    root: Mapping[str, Any]
    coerce: bool
    steps: Iterator[int] = field(default_factory=itertools.count)

    def value(self, schema: Any, value: Any, where: str, found: _Found, hops: int = 0) -> Any:
        """Normalise one value under one schema; `hops` counts the unions that describe it."""
        if next(self.steps) > _MAX_STEPS:
            raise ArgumentsRefused(f"{where} is too large to be read against its schema.")
        schema = self._resolved(schema)
        if not isinstance(schema, Mapping) or hops > _MAX_HOPS:
            return value
        alternatives = _alternatives(schema)
        if alternatives is not None:
            return self._union(alternatives, value, where, found, hops + 1)
        members = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(members, list):
            if not any(_same(value, member) for member in members):
                found.doubts.append(f"{where} is none of the values that its schema lists.")
            return value
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, value, where, found)
        if kind == "array":
            return self._array(schema, value, where, found)
        if isinstance(kind, str) and kind in _SCALARS:
            return self._scalar(schema, value, where, found)
        return value

    def _resolved(self, schema: Any) -> Any:
        for _ in range(_MAX_HOPS):
            if not isinstance(schema, Mapping):
                break
            parts = schema.get("allOf")
            if isinstance(parts, list) and len(parts) == 1 and not schema.keys() & _OWN_MEANING:
                schema = parts[0]
            elif "$ref" in schema:
                schema = self._target(schema["$ref"])
            else:
                return schema
        return None

    def _target(self, ref: Any) -> Any:
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        node: Any = self.root
        for step in ref.removeprefix("#").split("/")[1:]:
            if not isinstance(node, Mapping):
                return None
            node = node.get(step.replace("~1", "/").replace("~0", "~"))
        return node

    def _union(self, schemas: list[Any], value: Any, where: str, found: _Found, hops: int) -> Any:
        """Take the one reading that is certain; where readings differ the value stays as sent."""
        readings: list[_Reading] = []
        for schema in schemas:
            seen = _Found()
            result = self.value(schema, value, where, seen, hops)
            if not seen.problems:
                readings.append(_Reading(result, seen.doubts, self._is_constrained(schema)))
        if not readings:
            found.problems.append(_wrong_kind(where, value, "one of its schema's alternatives"))
            return value
        if len(readings) == 1:
            found.doubts.extend(readings[0].doubts)
            return readings[0].value
        undoubted = [reading for reading in readings if not reading.doubts]
        if not undoubted:
            found.doubts.append(_wrong_kind(where, value, "one of its schema's alternatives"))
        if isinstance(value, Mapping | list):
            return value
        if any(_same(reading.value, value) for reading in undoubted):
            return value
        agreed = readings[0].value
        if all(
            not reading.doubts and not reading.constrained and _same(reading.value, agreed)
            for reading in readings
        ):
            return agreed
        return value

    def _is_constrained(self, schema: Any) -> bool:
        schema = self._resolved(schema)
        return isinstance(schema, Mapping) and bool(schema.keys() & _CONSTRAINTS)

    def _object(self, schema: Mapping[str, Any], value: Any, where: str, found: _Found) -> Any:
        if not isinstance(value, Mapping):
            found.problems.append(_wrong_kind(where, value, "an object"))
            return value
        properties = _mapping(schema.get("properties"))
        others = schema.get("additionalProperties")
        result: dict[str, Any] = {}
        for key, item in value.items():
            place = f"{where}.{key}"
            if key in properties:
                result[key] = self.value(properties[key], item, place, found)
            elif isinstance(others, Mapping) and "patternProperties" not in schema:
                result[key] = self.value(others, item, place, found)
            else:
                result[key] = item
                if others is False:
                    found.doubts.append(f"{place} is no argument that the schema knows.")
        required = schema.get("required")
        for key, described in properties.items():
            if key in value:
                continue
            if isinstance(described, Mapping) and "default" in described:
                result[key] = freeze(described["default"], where=f"{where}.{key}")
            elif isinstance(required, list) and key in required:
                found.problems.append(f"{where}.{key} is missing.")
        return result

    def _array(self, schema: Mapping[str, Any], value: Any, where: str, found: _Found) -> Any:
        prefix = schema.get("prefixItems")
        first: list[Any] = prefix if isinstance(prefix, list) else []
        if not isinstance(value, list):
            # Any iterable will do for an `Iterable`, and an object for a named tuple.
            unsure = isinstance(value, Mapping | str)
            (found.doubts if unsure else found.problems).append(_wrong_kind(where, value, "a list"))
            return value
        rest = schema.get("items")
        return [
            self.value(
                first[index] if index < len(first) else rest, item, f"{where}[{index}]", found
            )
            for index, item in enumerate(value)
        ]

    def _scalar(self, schema: Mapping[str, Any], value: Any, where: str, found: _Found) -> Any:
        kind = schema["type"]
        if kind == "string":
            if not isinstance(value, str):
                unsure = "format" in schema and not isinstance(value, Mapping | list)
                (found.doubts if unsure else found.problems).append(
                    _wrong_kind(where, value, "text")
                )
            return value
        if kind == "null":
            if value is not None:
                found.problems.append(_wrong_kind(where, value, "null"))
            return value
        if value is None or isinstance(value, Mapping | list):
            found.problems.append(_wrong_kind(where, value, f"a {kind}"))
            return value
        result = _COERCIONS[kind](value)
        if result is None or result is _UNSURE:
            (found.problems if result is None else found.doubts).append(
                _wrong_kind(where, value, f"a {kind}")
            )
            return value
        return result if self.coerce else value


_UNSURE = object()
"""A validator may accept this, with a result that we cannot tell."""


def _to_integer(value: Any) -> Any:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not value.is_integer():
            return None
        return int(value) if abs(value) < _MAX_FROM_FLOAT else _UNSURE
    if not isinstance(value, str):
        return _UNSURE
    text = value.strip()
    if _INTEGER.fullmatch(text) and len(text) <= MAX_INT_DIGITS:
        return int(text.partition(".")[0])
    return _UNSURE if any(map(str.isdigit, text)) else None


def _to_number(value: Any) -> Any:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        return _UNSURE
    text = value.strip()
    if _NUMBER.fullmatch(text) or text.lower().lstrip("+-") in _NOT_FINITE:
        return float(text)
    return _UNSURE if any(map(str.isdigit, text)) else None


def _to_boolean(value: Any) -> Any:
    if isinstance(value, str):
        word = value.lower()
        return True if word in _TRUE else False if word in _FALSE else None
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    return None


_COERCIONS: Mapping[str, Callable[[Any], Any]] = {
    "integer": _to_integer,
    "number": _to_number,
    "boolean": _to_boolean,
}


def _alternatives(schema: Mapping[str, Any]) -> list[Any] | None:
    """Give the schemas of a union, None where the schema is no union."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return [{**schema, "type": kind} for kind in kinds]
    if "type" in schema or "properties" in schema:
        return None
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return list(schema[keyword])
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _same(left: Any, right: Any) -> bool:
    """Compare with strict kinds: 1 equals 1.0, and true equals neither."""
    if kind_of(left) != kind_of(right):
        return False
    if isinstance(left, Mapping):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _wrong_kind(where: str, value: Any, wanted: str) -> str:
    return f"{where} is a {kind_of(value)}; the schema asks for {wanted}."
