"""Rewriting arguments: applying edits, and composing those of several layers.

Everything gives new frozen arguments; what cannot be applied raises `CannotApply`, which denies
(clauses 19, 20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge._values import canonical_json, freeze_object, thaw
from adjudge.errors import ArgumentsRefused
from adjudge.policy._faults import found, spell
from adjudge.policy._model import Edit

__all__ = ["CannotApply", "apply_edits", "compose"]

_Steps = tuple[str | int, ...]
_MISSING = object()


class CannotApply(Exception):
    """Edits that these arguments do not take; the text is a clause that names the path."""


def apply_edits(args: Mapping[str, Any], edits: Sequence[Edit]) -> Mapping[str, Any]:
    """Give the arguments after the edits, in order. Raises `CannotApply`."""
    draft: Any = thaw(args)
    for edit in edits:
        if edit.path:
            _apply(draft, edit)
        elif edit.kind == "set":
            draft = thaw(edit.value)
        else:
            raise CannotApply(f"args cannot be the target of {edit.kind}")
    try:
        return freeze_object(draft)
    except ArgumentsRefused as error:
        raise CannotApply(str(error).rstrip(".")) from None


def _apply(draft: Any, edit: Edit) -> None:
    target = spell("args", edit.path)
    parent, last = _parent(draft, edit), edit.path[-1]
    current = _MISSING if parent is None else _current(parent, last)
    if edit.kind == "delete":
        if parent is not None and current is not _MISSING:
            del parent[last]
        return
    if parent is None:
        raise CannotApply(f"{spell('args', edit.path[:-1])} is absent, expected {_container(last)}")
    if edit.kind == "set":
        if isinstance(last, int) and current is _MISSING:
            raise CannotApply(f"{target} is beyond the end of its list")
        parent[last] = thaw(edit.value)
    elif isinstance(current, str) and isinstance(edit.value, str):
        parent[last] = current + edit.value
    elif isinstance(current, list):
        current.append(thaw(edit.value))
    else:
        raise CannotApply(_no_append(target, current, edit.value))


def _no_append(target: str, current: Any, value: Any) -> str:
    if current is _MISSING or current is None:
        return f"{target} is absent, expected a string or a list to append to"
    if isinstance(current, str):
        return f"{target} is a string, to which {found(value)} cannot be appended"
    return f"{target} is {found(current)}, expected a string or a list to append to"


def _container(step: str | int) -> str:
    return "a list" if isinstance(step, int) else "an object"


def _parent(draft: Any, edit: Edit) -> Any:
    """Walk to the object or list that holds the target; None where it is absent."""
    value = draft
    for index, step in enumerate(edit.path):
        if value is None or value is _MISSING:
            return None
        if not isinstance(value, list if isinstance(step, int) else dict):
            where = spell("args", edit.path[:index])
            raise CannotApply(f"{where} is {found(value)}, expected {_container(step)}")
        if index + 1 < len(edit.path):
            value = _current(value, step)
    return value


def _current(parent: Any, step: Any) -> Any:
    if isinstance(parent, dict):
        return parent.get(step, _MISSING)
    return parent[step] if step < len(parent) else _MISSING


def compose(transforms: Sequence[tuple[str, Sequence[Edit]]]) -> list[Edit]:
    """Join the transforms of several layers, each with its layer's name; equal ones count once.

    Raises `CannotApply` where the outcome would depend on who is asked: two layers on one path, on
    a path and its prefix, or one that deletes from a list into which the other writes.
    """
    distinct: dict[str, tuple[str, Sequence[Edit]]] = {}
    for layer, edits in transforms:
        distinct.setdefault(_identity(edits), (layer, edits))
    joined: list[tuple[str, Edit]] = []
    for layer, edits in distinct.values():
        for edit in edits:
            for other, earlier in joined:
                if other != layer and _collide(edit.path, earlier.path, edit, earlier):
                    raise CannotApply(
                        f"layers {other!r} and {layer!r} both rewrite {spell('args', edit.path)}"
                    )
        joined += [(layer, edit) for edit in edits]
    return [edit for _, edit in joined]


def _identity(edits: Sequence[Edit]) -> str:
    return repr([(edit.kind, edit.path, canonical_json(edit.value)) for edit in edits])


def _collide(path: _Steps, other: _Steps, edit: Edit, earlier: Edit) -> bool:
    shared = min(len(path), len(other))
    return (
        path[:shared] == other[:shared]
        or _deletes_beside(edit, other)
        or _deletes_beside(earlier, path)
    )


def _deletes_beside(edit: Edit, other: _Steps) -> bool:
    """Whether an edit moves the elements of a list into which another path leads."""
    holder = edit.path[:-1]
    return (
        edit.kind == "delete" and isinstance(edit.path[-1], int) and other[: len(holder)] == holder
    )
