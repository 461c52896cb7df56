"""Reading what a path names: from a request to a value, to absence (None), or to a fault.

A missing key, an index out of range and null are one thing, absence; a step into what cannot be
stepped into is a fault (clause 3), and so is a session value or an environment that nobody supplied
(clause 9).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adjudge._types import ActionRequest
from adjudge.policy._faults import Answer, Fault, found, spell
from adjudge.policy._kleene import Matcher
from adjudge.policy._model import Path, Ref

__all__ = ["Subject", "operand_first", "referred", "subject"]

Subject = Callable[[ActionRequest, Any], Any]
"""From the request, and the element inside a quantifier, to a value, None or a `Fault`."""

_SESSION = ("labels", "history", "counts", "sums", "user_prompt")


def subject(path: Path, element: str) -> Subject:
    """Give the reader of one path; `element` is how `.` is called in the words of a fault."""
    if path.root == "context":
        return _in_context(path)
    if path.root == "given":
        return _given(path)
    return _stepping(_ROOTS[path.root], path.root, path.steps, element)


def referred(reference: Ref, element: str) -> Subject:
    """Give the reader of an operand from elsewhere; that it is absent is a fault (clause 9)."""
    source = spell(reference.path.root, reference.path.steps)
    read = subject(reference.path, element)

    def operand(request: ActionRequest, item: Any) -> Any:
        value = read(request, item)
        if value is None:
            return Fault("AbsentReference", f"{source} is absent, expected a value to compare with")
        return value

    return operand


def operand_first(reference: Ref, matcher: Matcher, element: str) -> Matcher:
    """Ask nothing of a test whose operand cannot be had: that is an error (clause 9)."""
    read_operand = referred(reference, element)

    def holds(request: ActionRequest, item: Any) -> Answer:
        operand = read_operand(request, item)
        return operand if isinstance(operand, Fault) else matcher(request, item)

    return holds


def _stepping(start: Subject, root: str, steps: tuple[str | int, ...], element: str) -> Subject:
    if not steps:
        return start

    def read(request: ActionRequest, item: Any) -> Any:
        value = start(request, item)
        for index, step in enumerate(steps):
            if value is None or isinstance(value, Fault):
                return value
            if isinstance(step, str) and isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(step, int) and isinstance(value, list | tuple):
                value = value[step] if step < len(value) else None
            else:
                return _no_step(spell(root, steps[:index], element), value, step)
        return value

    return read


def _no_step(where: str, value: object, step: str | int) -> Fault:
    expected = "a list" if isinstance(step, int) else "an object"
    return Fault("WrongStep", f"{where} is {found(value)}, expected {expected}")


def _given(path: Path) -> Subject:
    where = spell(path.root, path.steps[:1])
    key, *below = path.steps

    def read(request: ActionRequest, _item: Any) -> Any:
        sent = key in (request.args if request.given is None else request.given)
        return Fault("WrongStep", f"{where} is a bool, expected an object") if below else sent

    return read


def _declared(request: ActionRequest, _item: Any) -> Any:
    declared = request.declared
    if declared is None:
        return None
    return {
        "cost": declared.cost,
        "reversible": declared.reversible,
        "scope": declared.scope,
        "has_shadow": declared.has_shadow,
        "blast_radius_hint": declared.blast_radius_hint,
        "isolation": declared.isolation,
        "labels": declared.labels,
    }


_ROOTS: Mapping[str, Subject] = {
    ".": lambda _request, item: item,
    "tool": lambda request, _item: request.tool,
    "tool.namespace": lambda request, _item: request.namespace,
    "args": lambda request, _item: request.args,
    "given": lambda request, _item: request.given,
    "injected": lambda request, _item: request.injected,
    "declared": _declared,
}


def _in_context(path: Path) -> Subject:
    first, *_ = path.steps
    if first in _SESSION:
        start = _session_value(path.steps[:1])
        steps = path.steps[1:]
        root = spell("context", path.steps[:1])
    elif first == "trusted":
        start = _session_value(path.steps[:2])
        steps = path.steps[2:]
        root = spell("context", path.steps[:2])
    else:
        start = _context_value(str(first))
        steps = path.steps[1:]
        root = spell("context", path.steps[:1])
    return _supplied(_stepping(start, root, steps, "."), spell("context", path.steps))


def _supplied(read: Subject, where: str) -> Subject:
    def read_context(request: ActionRequest, item: Any) -> Any:
        # A caller without types may hand over no context at all; nothing falls back (clause 26).
        context: Any = request.context
        if context is None:
            return _nobody(where)
        return read(request, item)

    return read_context


def _nobody(where: str) -> Fault:
    return Fault("NotSupplied", f"{where} was not supplied, expected a value from the caller")


def _session_value(steps: tuple[str | int, ...]) -> Subject:
    where = spell("context", steps)

    def read(request: ActionRequest, _item: Any) -> Any:
        value: Any = request.context.session
        for step in steps:
            if not isinstance(value, Mapping) or step not in value:
                return _nobody(where)
            value = value[step]
        return value

    return read


def _context_value(name: str) -> Subject:
    if name == "environment":
        return _environment
    if name == "timestamp":
        return lambda request, _item: request.context.timestamp.isoformat()
    if name == "principal":
        return _principal
    return lambda request, _item: getattr(request.context, name)


def _environment(request: ActionRequest, _item: Any) -> Any:
    environment = request.context.environment
    return _nobody("context.environment") if environment is None else environment


def _principal(request: ActionRequest, _item: Any) -> Any:
    principal = request.context.principal
    return {"kind": principal.kind, "id": principal.id, "name": principal.name}
