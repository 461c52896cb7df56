"""Calls put together from slots: one argument, one field of the tool, one value of the context.

A slot has a pool of values to choose from; an `Assignment` chooses for some, and the others are
absent, as they are in a plain call.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from adjudge._types import ActionRequest, ExecutionContext, Principal, ToolMetadata
from adjudge._values import EMPTY, FrozenDict
from adjudge.policy._model import Path

__all__ = ["MISSING", "Assignment", "ByText", "Slot", "as_fits", "build", "slot_of"]

Slot = tuple[str, ...]
"""A root, and the key or keys below it that name one value: `("args", "amount")`."""

Assignment = Mapping[Slot, Any]

WORKSPACE = "/workspace"
MISSING = object()
"""In an assignment: that this slot has no value."""

_WORDS: Mapping[str, tuple[str, ...]] = {
    "cost": ("low", "medium", "high"),
    "kind": ("user", "service", "agent"),
}
_TEXTS = ("tool", "tool.namespace", "environment", "workspace", "correlation_id", "isolation")
_WHOLE = ("step_seq", "blast_radius_hint")
_TEXTS_OF_PRINCIPAL = ("id", "name")
_TWO_KEYS = ("principal", "extra", "trusted")
_SESSION = ("labels", "history", "counts", "sums", "user_prompt", "trusted")


def slot_of(path: Path) -> tuple[Slot, tuple[str | int, ...]]:
    """Give the slot that a path reads, and the steps from its value on."""
    owned = 0 if path.root in ("tool", "tool.namespace") else 1
    if path.root == "context" and path.steps[0] in _TWO_KEYS:
        owned = 2
    return (path.root, *map(str, path.steps[:owned])), path.steps[owned:]


def as_fits(slot: Slot, value: Any) -> Sequence[Any]:
    """Give a value as a slot can have it: itself, the whole numbers around it, or nothing."""
    if slot[-1] in _WHOLE and slot[0] != "args" and isinstance(value, float | Decimal):
        return sorted({math.floor(value), math.ceil(value)})
    return [value] if _fits(slot, value) else []


def _fits(slot: Slot, value: Any) -> bool:
    """Whether a slot can have a value: the context and a tool's fields are of fixed kinds."""
    root, name = slot[0], slot[-1]
    if root in ("args", "injected") or (root == "context" and slot[1] in ("extra", *_SESSION)):
        return True
    if name in _WORDS:
        return isinstance(value, str) and value in _WORDS[name]
    if name in _TEXTS or name in _TEXTS_OF_PRINCIPAL:
        return isinstance(value, str)
    if name in _WHOLE:
        return isinstance(value, int) and not isinstance(value, bool)
    if name in ("scope", "labels"):
        return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return isinstance(value, bool)


def build(chosen: Assignment) -> ActionRequest:
    """Make the call; values of arguments are frozen already."""
    by_root: dict[Slot, dict[str, Any]] = {}
    for slot, value in chosen.items():
        if value is not MISSING:
            by_root.setdefault(slot[:-1], {})[slot[-1]] = value
    args = FrozenDict(by_root.get(("args",), EMPTY))
    return ActionRequest(
        tool=by_root.get((), {}).get("tool", "tool"),
        args=args,
        declared=_declared(by_root.get(("declared",))),
        context=_context(by_root),
        namespace=by_root.get((), {}).get("tool.namespace"),
        given=_given(by_root.get(("given",)), args),
        injected=FrozenDict(by_root.get(("injected",), EMPTY)),
        resolved=ByText(WORKSPACE),
    )


def _declared(fields: Mapping[str, Any] | None) -> ToolMetadata | None:
    if fields is None:
        return ToolMetadata()
    if fields.get("*") == "unknown":
        return None
    known: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
        if name != "*"
    }
    return ToolMetadata(**known)


def _given(sent: Mapping[str, bool] | None, args: Mapping[str, Any]) -> frozenset[str] | None:
    if sent is None:
        return None
    named = {name for name, given in sent.items() if given}
    return frozenset(named | {name for name in args if name not in sent})


def _context(by_root: Mapping[Slot, Mapping[str, Any]]) -> ExecutionContext:
    plain = by_root.get(("context",), {})
    who = by_root.get(("context", "principal"), {})
    session = {name: plain[name] for name in _SESSION if name in plain}
    trusted = by_root.get(("context", "trusted"))
    if trusted is not None:
        session["trusted"] = FrozenDict(trusted)
    return ExecutionContext(
        principal=Principal(who.get("kind", "user"), who.get("id", "someone"), who.get("name")),
        environment=plain.get("environment"),
        workspace=plain.get("workspace", WORKSPACE),
        correlation_id=plain.get("correlation_id", ""),
        step_seq=plain.get("step_seq", 0),
        extra=FrozenDict(by_root.get(("context", "extra"), EMPTY)),
        session=FrozenDict(session) if session else None,
    )


class ByText(dict[str, str]):
    """Resolved paths, where those that nobody resolved are worked out by their text alone."""

    __slots__ = ("_workspace",)

    def __init__(self, workspace: str, known: Mapping[str, str] = EMPTY) -> None:
        super().__init__(known)
        self._workspace = workspace

    def get(self, path: str, default: Any = None) -> Any:
        """Give what a path resolves to if it holds no link."""
        if path in self or "\0" in path:
            return super().get(path, default)
        return os.path.normpath(os.path.join(self._workspace, path))  # noqa: PTH118 - text, no file
