"""A conversation as the Messages API wants it, with its cache breakpoints.

Answers to the calls of one step go into one user message; neighbours of one role are one message.
Of the four breakpoints that a request may have, tools and system prompt have one each; the last two
messages of the user's side have the others. The last but one is where the request before this one
ended, so its prefix is found however many blocks the step between has (the API looks back twenty).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge_runtime._values import Message
from adjudge_runtime.models._adapter import Kept, Talk
from adjudge_runtime.models._wording import as_object

__all__ = ["Prompt", "lost_thinking", "prompt"]

_THINKING = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a request says: the system's blocks and the messages."""

    system: list[dict[str, Any]]
    messages: list[dict[str, Any]]


def prompt(talk: Talk, system: str | None, kept: Kept, *, cached: bool) -> Prompt:
    """Put a conversation into the API's words."""
    texts = [system] if system else []
    messages: list[dict[str, Any]] = []
    for place, message in talk:
        if message.role == "system":
            texts += [message.content] if message.content else []
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, kept.of(place, message.tool_calls))
        if blocks and messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    said = Prompt([{"type": "text", "text": text} for text in texts], messages)
    if cached:
        _mark(said.system)
        for message_of_user in [m for m in messages if m["role"] == "user"][-2:]:
            _mark(message_of_user["content"])
    return said


def lost_thinking(messages: list[dict[str, Any]]) -> bool:
    """Tell whether a call of the turn that goes on comes without the thinking before it."""
    for message in reversed(messages):
        kinds = [block["type"] for block in message["content"]]
        if message["role"] == "user" and "tool_result" not in kinds:
            return False
        if message["role"] == "assistant" and "tool_use" in kinds and kinds[0] not in _THINKING:
            return True
    return False


def _blocks(message: Message, raw: Any) -> list[dict[str, Any]]:
    if message.role == "tool":
        told = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        return [{**told, "content": message.content}]
    if raw is not None:
        return [dict(block) for block in raw]
    # The API refuses a text block that is empty.
    text = [{"type": "text", "text": message.content}] if message.content.strip() else []
    calls = [
        {"type": "tool_use", "id": call.call_id, "name": call.tool, "input": as_object(call.args)}
        for call in message.tool_calls
    ]
    return [*text, *calls]


def _mark(blocks: list[dict[str, Any]]) -> None:
    if blocks:
        blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
