"""Applying a transform (clause 19): the arguments as rewritten, or `CannotApply`, which denies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjudge._values import freeze, kind_of, thaw
from adjudge.errors import ArgumentsRefused
from adjudge.policy._model import Edit
from reference.reading import World


class CannotApply(Exception):
    """The transform does not fit these arguments."""


def rewritten(edits: Iterable[Edit], world: World) -> Any:
    """Give the arguments after every edit, in order."""
    args = thaw(world.request.args)
    for edit in edits:
        args = _edited(args, edit.path, edit, thaw(edit.value))
    try:
        return freeze(args)
    except ArgumentsRefused as refused:
        raise CannotApply from refused


def _edited(here: Any, path: tuple[str | int, ...], edit: Edit, value: Any) -> Any:
    if not path:
        return value if edit.kind == "set" else _appended(here, value)
    step, rest = path[0], path[1:]
    if here is None and edit.kind == "delete":
        return here  # deleting what is absent changes nothing
    if kind_of(here) != ("object" if isinstance(step, str) else "list"):
        raise CannotApply
    there = step in here if isinstance(step, str) else 0 <= step < len(here)
    if edit.kind == "delete" and not (there and rest):
        if there:
            del here[step]
        return here
    if not there and (rest or isinstance(step, int)):
        raise CannotApply  # `set` makes no missing parents
    here[step] = _edited(here[step] if there else None, rest, edit, value)
    return here


def _appended(here: Any, value: Any) -> Any:
    if kind_of(here) == "list":
        return [*here, value]
    if isinstance(here, str) and isinstance(value, str):
        return here + value
    raise CannotApply


def in_conflict(ours: Iterable[Edit], theirs: Iterable[Edit]) -> bool:
    """Tell whether the edits of two layers touch one another (clause 20)."""
    return any(_touch(one, other) for one in ours for other in theirs)


def _touch(one: Edit, other: Edit) -> bool:
    shorter = min(len(one.path), len(other.path))
    if one.path[:shorter] == other.path[:shorter]:
        return True  # one path, or a path and its prefix
    return _deletes_around(one, other) or _deletes_around(other, one)


def _deletes_around(one: Edit, other: Edit) -> bool:
    """Tell whether one deletes an element of a list into which the other writes."""
    if one.kind != "delete" or not isinstance(one.path[-1], int):
        return False
    parent = one.path[:-1]
    return other.path[: len(parent)] == parent
