"""Quicker ways to make the frozen values of which every governed call makes several.

The `__init__` of a frozen dataclass goes around its own `__setattr__` for each field. An open twin
has plain ones, given by position and all of them; once its `__class__` is the frozen one it is
that value, made in a third of the time:

    made = OpenResult(True, 7, None, "", 0.1, ())
    made.__class__ = ActionResult
"""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import Any

from adjudge._types import ActionRequest, ActionResult, AuditEvent, ExecutionContext, GovernedCall

__all__ = ["OpenCall", "OpenContext", "OpenEvent", "OpenRequest", "OpenResult"]


def _open(frozen: type[Any]) -> Any:
    """Give a dataclass with the same fields, and so the same layout, whose fields can be set."""
    return make_dataclass(frozen.__name__, [item.name for item in fields(frozen)], slots=True)


OpenCall = _open(GovernedCall)
OpenContext = _open(ExecutionContext)
OpenEvent = _open(AuditEvent)
OpenRequest = _open(ActionRequest)
OpenResult = _open(ActionResult)
