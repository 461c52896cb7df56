"""A scripted turn as the Chat Completions API answers it, whole or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from adjudge_conformance.wire._answer import Answer, pieces

__all__ = ["chat_body", "chat_events"]


def chat_body(answer: Answer) -> dict[str, Any]:
    """Give the one JSON object of an answer that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.tool, "arguments": call.arguments},
            }
            for call in answer.calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(answer),
    }
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [choice],
        "usage": _usage(answer),
    }


def chat_events(answer: Answer, *, include_usage: bool) -> Iterator[str]:
    """Give the answer as chunks, ended by `[DONE]`; usage has a chunk of its own if asked for."""
    yield _chunk(answer, {"role": "assistant", "content": None if answer.calls else ""})
    for piece in pieces(answer.text or ""):
        yield _chunk(answer, {"content": piece})
    for index, call in enumerate(answer.calls):
        head = {"name": call.tool, "arguments": ""}
        opened = {"index": index, "id": call.id, "type": "function", "function": head}
        yield _chunk(answer, {"tool_calls": [opened]})
        for piece in pieces(call.arguments):
            part = {"index": index, "function": {"arguments": piece}}
            yield _chunk(answer, {"tool_calls": [part]})
    yield _chunk(answer, {}, finish_reason=_finish_reason(answer))
    if include_usage:
        yield _chunk(answer, None, usage=_usage(answer))
    yield "data: [DONE]\n\n"


def _chunk(
    answer: Answer,
    delta: dict[str, Any] | None,
    *,
    finish_reason: str | None = None,
    usage: dict[str, Any] | None = None,
) -> str:
    choices = (
        [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    )
    chunk = {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion.chunk",
        "created": answer.created,
        "model": answer.model,
        "choices": choices,
        "usage": usage,
    }
    return f"data: {json.dumps(chunk)}\n\n"


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
