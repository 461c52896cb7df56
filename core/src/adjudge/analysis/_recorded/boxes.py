"""Sets of values in which recorded calls lie: exactly those seen, or ranges around them.

A *box* has for each path what its value may be, and stands for all calls that fit it. Exact
boxes are joined only where together they stand for the same calls as before. Everything wider is
asked for by name: `values` (ranges, directories, hosts, prefixes) or `shape` (any value).
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from adjudge._values import OpaqueValue, canonical_json, kind_of
from adjudge.policy._locations import parse_host

__all__ = [
    "Box",
    "Level",
    "Span",
    "argument_path",
    "boxes_of",
    "condition",
    "has_unknown",
    "seen",
    "written",
]

Level = Literal["exact", "values", "shape"]

_FEW = 8
_SHORTEST_PREFIX = 4


@dataclass(frozen=True, slots=True)
class Span:
    """What one value of a call may be.

    `kind` is any, absent, present, one_of, between, under, host_in or starts_with; `values` are its
    operands.
    """

    kind: str
    values: tuple[Any, ...] = ()

    @property
    def key(self) -> str:
        """A text that is equal for equal spans; 1, 1.0 and true are three values."""
        return f"{self.kind} {sorted(map(canonical_json, self.values))}"


_JOINED: Mapping[str, str] = {
    "one_of": "value",
    "any": "presence",
    "absent": "presence",
    "present": "presence",
}

Box = Mapping[str, Span]
"""What the value at each path may be."""


def boxes_of(
    calls: Iterable[Box], levels: Mapping[str, Level], *, workspace: str | None = None
) -> list[Box]:
    """Give boxes for calls, each given as a box of its own; all have the keys of `levels`.

    Calls that are alike in what stays exact, and in which values they have at all, share a box.
    Without a workspace paths are not widened to directories.
    """
    wide = [path for path, level in levels.items() if level != "exact"]
    groups: dict[str, Box] = {}
    for call in calls:
        key = " ".join(
            span.kind if path in wide else span.key for path, span in sorted(call.items())
        )
        before = groups.get(key)
        groups[key] = call if before is None else _united(before, call, wide)
    boxes: list[Box] = [
        {path: _widened(span, levels[path], workspace=workspace) for path, span in box.items()}
        for box in groups.values()
    ]
    for path in levels:
        boxes = _joined(boxes, path)
    return boxes


def seen(value: Any) -> Span:
    """Give what a recorded value is: null is absence (clause 3), and the unknown is left open."""
    if value is None:
        return Span("absent")
    return Span("present") if has_unknown(value) else Span("one_of", (value,))


def _united(one: Box, other: Box, paths: Iterable[str]) -> Box:
    return {**one, **{path: _both(one[path], other[path]) for path in paths}}


def _both(one: Span, other: Span) -> Span:
    if one.kind != other.kind:
        return Span("any")  # There or not there: that is everything.
    values = {canonical_json(value): value for value in (*one.values, *other.values)}
    return Span(one.kind, tuple(values.values()))


def has_unknown(value: Any) -> bool:
    """Whether a value, or a part of it, was redacted or a secret."""
    if isinstance(value, Mapping):
        return any(map(has_unknown, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_unknown, value))
    return isinstance(value, OpaqueValue)


def _joined(boxes: Sequence[Box], path: str) -> list[Box]:
    """Join boxes that differ in one place alone: together they stand for the same calls."""
    groups: dict[str, Box] = {}
    for box in boxes:
        span = box[path]
        rest = " ".join(other.key for name, other in sorted(box.items()) if name != path)
        key = f"{_JOINED.get(span.kind, span.key)} {rest}"
        groups[key] = _united(groups[key], box, [path]) if key in groups else box
    return list(groups.values())


def _widened(span: Span, level: Level, *, workspace: str | None) -> Span:
    """Give a wider span, as far as a level goes; without a workspace paths stay as they are."""
    if level == "exact" or span.kind != "one_of":
        return span
    if level == "shape":
        return Span("present")
    kinds = {kind_of(value) for value in span.values}
    if kinds == {"number"}:
        return _range(span)
    if kinds == {"string"}:
        return _of_texts(span, workspace)
    return span


def _range(span: Span) -> Span:
    low, high = min(span.values), max(span.values)
    return span if low == high else Span("between", (low, high))


def _of_texts(span: Span, workspace: str | None) -> Span:
    texts = span.values
    hosts = [_host(text) for text in texts]
    if all(hosts):
        return Span("host_in", tuple(dict.fromkeys(host for host in hosts if host)))
    if workspace is not None and all(map(_looks_like_path, texts)):
        return Span("under", _directories(texts, workspace))
    prefix = _common_start(min(texts), max(texts))
    if len(texts) > _FEW and len(prefix) >= _SHORTEST_PREFIX:
        return Span("starts_with", (prefix,))
    return span


def _common_start(one: str, other: str) -> str:
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(char for char, _ in same)


def _host(text: str) -> str | None:
    try:
        return parse_host(text)
    except ValueError:
        return None


def _looks_like_path(text: str) -> bool:
    return "/" in text and "://" not in text and not any(char.isspace() for char in text)


def _directories(texts: Iterable[str], workspace: str) -> tuple[str, ...]:
    """Give the directories in which the paths lie, without those inside another."""
    found = {_directory(text, workspace) for text in texts}
    inner = {one for one in found for other in found if one != other and _is_inside(one, other)}
    return tuple(sorted(found - inner))


def _directory(text: str, workspace: str) -> str:
    whole = os.path.join(workspace, text)  # noqa: PTH118 - text, no file
    # Two leading slashes are one: no resolved path has them.
    plain = "/" + os.path.normpath(whole).lstrip("/")
    return os.path.dirname(plain)  # noqa: PTH120 - text, no file


def _is_inside(path: str, directory: str) -> bool:
    return path.startswith(f"{directory.rstrip('/')}/")


def condition(path: str, span: Span) -> dict[str, Any]:
    """Write what a value may be as conditions of a policy; empty where anything goes."""
    values = list(span.values)
    match span.kind:
        case "any":
            return {}
        case "absent" | "present":
            return {path: {"exists": span.kind == "present"}}
        case "one_of":
            return _one_of(path, values)
        case "between":
            return {path: {"between": [_below(values[0]), _above(values[1])]}}
        case "under":
            ways = [{path: {"under": value}} for value in values]
            return ways[0] if len(ways) == 1 else {"any_of": ways}
        case "starts_with":
            return {path: {"starts_with": values[0]}}
    return {path: {span.kind: values}}


def _one_of(path: str, values: Sequence[Any]) -> dict[str, Any]:
    plain = [value for value in values if not _is_inexact(value)]
    ranges = [{path: {"between": [_below(v), _above(v)]}} for v in values if _is_inexact(v)]
    if plain:
        ranges.insert(0, {path: _equal_to(plain)})
    return ranges[0] if len(ranges) == 1 else {"any_of": ranges}


def _equal_to(values: Sequence[Any]) -> Any:
    bare = [written(value) for value in values]
    needs_literal = any(map(_holds_object, values))
    if len(values) > 1:
        return {"in": {"literal": bare} if needs_literal else bare}
    if needs_literal:
        return {"eq": {"literal": bare[0]}}
    return {"eq": bare[0]} if isinstance(bare[0], list) else bare[0]


def _holds_object(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_object, value))
    return isinstance(value, Mapping)


def written(value: Any) -> Any:
    """Give a value as policy text can have it; a decimal that is a float exactly is that float."""
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, Mapping):
        return {key: written(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [written(item) for item in value]
    return value


def _is_inexact(value: Any) -> bool:
    return isinstance(value, Decimal) and Decimal(written(value)) != value


def _below(number: Any) -> Any:
    """Give a number of policy text that is no greater, and as near as there is one."""
    near = written(number)
    if not _is_inexact(number) or Decimal(near) <= number:
        return near
    return math.nextafter(near, -math.inf)


def _above(number: Any) -> Any:
    near = written(number)
    if not _is_inexact(number) or Decimal(near) >= number:
        return near
    return math.nextafter(near, math.inf)


def argument_path(name: str) -> str:
    """Write the path of a top-level argument; quoted unless it is a plain word."""
    if name.isidentifier() and name.isascii():
        return f"args.{name}"
    return f"args[{canonical_json(name)}]"
