"""What Claude replied, from a whole message or from the events of a stream.

A stream is put together here and not by the client's helper, which parses arguments while they
arrive and repairs what it cannot read; the guard is to get the text as the model wrote it.
"""

from __future__ import annotations

from typing import Any

from adjudge_runtime._values import ToolCall, Usage
from adjudge_runtime.models._adapter import Reply
from adjudge_runtime.models._errors import ModelRefused, ModelReplyError, truncated, unavailable
from adjudge_runtime.models._wording import as_object

__all__ = ["Gathered", "reply_of"]

_WHOLE = ("end_turn", "stop_sequence", "tool_use")
_CUT = ("max_tokens", "model_context_window_exceeded")
_KNOWN = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


def reply_of(
    name: str,
    blocks: list[dict[str, Any]],
    *,
    stop: str | None,
    usage: dict[str, Any],
    model: str,
    written: dict[int, str] | None = None,
) -> Reply:
    """Make a reply of a message's blocks; `written` has the arguments' text, by block.

    Raises `ModelRefused` for a refusal, `ModelReplyError` for what is cut off or not understood.
    """
    used = _usage(usage, model)
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    if stop == "refusal":
        raise ModelRefused(f"{name} refused to answer: {text or 'no reason given'}", usage=used)
    if stop in _CUT:
        raise truncated(name, stop, usage=used)
    unknown = [block["type"] for block in blocks if block["type"] not in _KNOWN]
    calls = tuple(
        ToolCall(block["name"], (written or {}).get(place, block["input"]), block["id"])
        for place, block in enumerate(blocks)
        if block["type"] == "tool_use"
    )
    says = bool(calls) or (stop != "tool_use" and any(block["type"] == "text" for block in blocks))
    if stop not in _WHOLE or unknown or not says:
        raise ModelReplyError(
            f"The reply of {name} ended with {stop!r} and has blocks of the types "
            f"{[block['type'] for block in blocks]}; nothing of it is used.",
            usage=used,
        )
    thinks = any(block["type"].endswith("thinking") for block in blocks)
    return Reply(text, calls, used, _given_back(blocks, calls) if thinks else None)


def _given_back(
    blocks: list[dict[str, Any]], calls: tuple[ToolCall, ...]
) -> tuple[dict[str, Any], ...]:
    """Give the blocks as they came, with the input that streamed text stands for."""
    inputs = {call.call_id: call.args for call in calls}
    return tuple(
        {**block, "input": as_object(inputs[block["id"]])} if block["type"] == "tool_use" else block
        for block in blocks
    )


class Gathered:
    """The events of one stream, put together."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._model = ""
        self._blocks: dict[int, dict[str, Any]] = {}
        self._written: dict[int, str] = {}
        self._open: set[int] = set()
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None
        self._ended = False

    def take(self, event: Any) -> str:
        """Take an event in; give the piece of text that it brought, empty where there is none."""
        kind = event.type
        if kind == "message_start":
            self._model = event.message.model
            self._usage = event.message.usage.to_dict(warnings=False)
        elif kind == "content_block_start":
            return self._start(event.index, event.content_block.to_dict(warnings=False))
        elif kind == "content_block_delta":
            return self._add(event.index, event.delta)
        elif kind == "content_block_stop":
            self._open.remove(event.index)
        elif kind == "message_delta":
            self._stop = event.delta.stop_reason
            told = event.usage.to_dict(warnings=False)
            self._usage.update({key: told[key] for key in told if told[key] is not None})
        elif kind == "message_stop":
            self._ended = True
        return ""

    def reply(self, *, started: bool) -> Reply:
        """Give the reply, once the stream is over; one that was cut is no reply."""
        if not self._ended or self._open:
            cause = "the stream ended before the reply did"
            raise unavailable(self._name, "connection", cause, started=started)
        order = sorted(self._blocks)
        return reply_of(
            self._name,
            [self._blocks[index] for index in order],
            stop=self._stop,
            usage=self._usage,
            model=self._model,
            # In this API no text at all is how a stream says an object without names.
            written={
                place: self._written[index] or "{}"
                for place, index in enumerate(order)
                if index in self._written
            },
        )

    def _start(self, index: int, block: dict[str, Any]) -> str:
        self._blocks[index] = block
        self._open.add(index)
        if block["type"] == "tool_use":
            self._written[index] = ""
        return str(block.get("text", ""))

    def _add(self, index: int, delta: Any) -> str:
        block = self._blocks[index]
        if delta.type == "text_delta":
            block["text"] += delta.text
            return str(delta.text)
        if delta.type == "input_json_delta":
            self._written[index] += delta.partial_json
        elif delta.type == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta.thinking
        elif delta.type == "signature_delta":
            block["signature"] = block.get("signature", "") + delta.signature
        return ""


def _usage(told: dict[str, Any], model: str) -> Usage:
    """Count as everybody else does: the API's `input_tokens` are those beside the cache."""
    read = told.get("cache_read_input_tokens")
    written = told.get("cache_creation_input_tokens")
    return Usage(
        input_tokens=told["input_tokens"] + (read or 0) + (written or 0),
        output_tokens=told["output_tokens"],
        cache_read_tokens=read,
        cache_write_tokens=written,
        model=model,
    )
