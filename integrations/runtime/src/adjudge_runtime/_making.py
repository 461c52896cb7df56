"""Quicker ways to make the frozen values of which each step makes several.

The `__init__` of a frozen dataclass goes around its own `__setattr__` for each field. An open twin
has plain ones, given by position and all of them; once its `__class__` is the frozen one it is
that value. What is made so was checked before, or is the loop's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, make_dataclass
from typing import Any

from adjudge_runtime._values import Message, ToolCall

__all__ = ["proposed", "said_by_agent", "told_by_tool"]


def _open(frozen: type[Any]) -> Any:
    """Give a dataclass with the same fields, and so the same layout, whose fields can be set."""
    return make_dataclass(frozen.__name__, [item.name for item in fields(frozen)], slots=True)


_OpenMessage = _open(Message)
_OpenToolCall = _open(ToolCall)


def proposed(tool: str, args: Mapping[str, Any] | str, call_id: str) -> ToolCall:
    """Give a call as the conversation has it: with an id, and without what it cost."""
    call: ToolCall = _OpenToolCall(tool, args, call_id, None)
    call.__class__ = ToolCall
    return call


def said_by_agent(text: str, calls: tuple[ToolCall, ...]) -> Message:
    """Give the message of an agent that proposes calls."""
    message: Message = _OpenMessage("assistant", text, None, None, calls)
    message.__class__ = Message
    return message


def told_by_tool(text: str, call: ToolCall) -> Message:
    """Give the message with what came of a call."""
    message: Message = _OpenMessage("tool", text, call.tool, call.call_id, ())
    message.__class__ = Message
    return message
