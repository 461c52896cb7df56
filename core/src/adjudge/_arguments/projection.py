"""The JSON projection of validated Python values: what a policy judges where it meets objects.

Models and dataclasses become objects, a secret becomes an opaque marker that equals nothing, and
what has no JSON meaning is refused (clause 1). It looks at values through their public faces alone
and imports no framework. It promises nothing about values that change between two looks: project
again just before the body and compare.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

from adjudge._values import MAX_DEPTH, FrozenDict, OpaqueValue, freeze
from adjudge.errors import ArgumentsRefused

__all__ = ["project", "project_object"]


def project(value: object, *, where: str = "args") -> Any:
    """Give the frozen JSON value that a policy judges for a Python value.

    Sets and frozen sets become lists in the order of their members' texts. Raises
    `ArgumentsRefused`, naming the place, for a value that has no JSON meaning.
    """
    return freeze(_plain(value, where, 0), where=where)


def project_object(values: Mapping[str, object], *, where: str = "args") -> FrozenDict:
    """Project the named arguments of one call."""
    projected = project(values, where=where)
    if not isinstance(projected, FrozenDict):
        raise ArgumentsRefused(f"{where} is a {type(values).__name__}, not named arguments.")
    return projected


def _plain(value: object, where: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ArgumentsRefused(f"{where} is nested more than {MAX_DEPTH} levels deep.")
    if callable(getattr(value, "get_secret_value", None)) and not isinstance(value, type):
        return OpaqueValue()
    if isinstance(value, Enum):
        return _plain(value.value, where, depth + 1)
    if isinstance(value, Mapping):
        return {key: _plain(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, set | frozenset):
        return sorted(
            (_plain(item, f"{where}[...]", depth + 1) for item in value),
            key=lambda item: (type(item).__name__, repr(item)),
        )
    if getattr(type(value), "__pydantic_root_model__", False):
        return _plain(value.root, where, depth + 1)  # type: ignore[attr-defined]
    fields = _fields(value)
    if fields is not None and fields.keys() == {"__root__"}:
        return _plain(fields["__root__"], where, depth + 1)
    if fields is not None:
        return {key: _plain(item, f"{where}.{key}", depth + 1) for key, item in fields.items()}
    return value


def _fields(value: object) -> dict[str, object] | None:
    """Give the fields of a dataclass or a pydantic model, extras included; None for the rest."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    names = getattr(type(value), "model_fields", None)
    if isinstance(names, Mapping) and callable(getattr(value, "model_dump", None)):
        extra = getattr(value, "model_extra", None)
        return {name: getattr(value, name) for name in names} | dict(extra or {})
    if _is_old_model(value):
        return dict(vars(value))
    return None


def _is_old_model(value: object) -> bool:
    """Whether a value is a model of pydantic 1, which keeps its fields and extras in its dict."""
    kind = type(value)
    old = isinstance(getattr(kind, "__fields__", None), Mapping)
    return (
        old and callable(getattr(kind, "__get_validators__", None)) and hasattr(kind, "parse_obj")
    )
