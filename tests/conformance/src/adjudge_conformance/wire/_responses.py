"""A scripted turn as the Responses API answers it, whole or as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from adjudge_conformance.wire._answer import Answer, AnsweredCall, pieces

__all__ = ["responses_body", "responses_events"]


def responses_body(answer: Answer, request: dict[str, Any]) -> dict[str, Any]:
    """Give the one JSON object of an answer that is not streamed."""
    return _response(answer, request, status="completed", output=_items(answer))


def responses_events(answer: Answer, request: dict[str, Any]) -> Iterator[str]:
    """Give the answer as numbered events, from `response.created` to `response.completed`."""
    for number, event in enumerate(_events(answer, request)):
        event["sequence_number"] = number
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _events(answer: Answer, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    opening = _response(answer, request, status="in_progress", output=[])
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(_items(answer)):
        for event in _PARTS.get(item["type"], _whole_events)(item):
            yield {**event, "output_index": index}
    closing = _response(answer, request, status="completed", output=_items(answer))
    yield {"type": "response.completed", "response": closing}


def _message_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    started = {**item, "status": "in_progress", "content": []}
    part = item["content"][0]
    at: dict[str, Any] = {"item_id": item["id"], "content_index": 0}
    yield {"type": "response.output_item.added", "item": started}
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}
    yield {"type": "response.output_item.done", "item": item}


def _call_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    started = {**item, "status": "in_progress", "arguments": ""}
    at: dict[str, Any] = {"item_id": item["id"]}
    kind = "response.function_call_arguments"
    yield {"type": "response.output_item.added", "item": started}
    for piece in pieces(item["arguments"]):
        yield {"type": f"{kind}.delta", **at, "delta": piece}
    yield {"type": f"{kind}.done", **at, "name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.output_item.done", "item": item}


def _whole_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.output_item.added", "item": {**item, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "item": item}


_PARTS = {"message": _message_events, "function_call": _call_events}


def _items(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.text is not None:
        content = {
            "type": "output_text",
            "text": answer.text,
            "annotations": [],
            "logprobs": [],
        }
        items.append(
            {
                "type": "message",
                "id": f"msg_{answer.id}",
                "role": "assistant",
                "status": "completed",
                "content": [content],
            }
        )
    items.extend(_call_item(answer, index, call) for index, call in enumerate(answer.calls))
    return items


def _call_item(answer: Answer, index: int, call: AnsweredCall) -> dict[str, Any]:
    own = dict(call.item or {})
    ids = {"id": f"fc_{answer.id}_{index}", "call_id": call.id, "status": "completed"}
    if "type" in own:
        return {**ids, **own}
    return {"type": "function_call", **ids, "name": call.tool, "arguments": call.arguments, **own}


def _response(
    answer: Answer, request: dict[str, Any], *, status: str, output: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": request.get("instructions"),
        "metadata": {},
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": request.get("parallel_tool_calls", True),
        "temperature": 1.0,
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools", []),
        "top_p": 1.0,
        "usage": _usage(answer) if status == "completed" else None,
    }


def _usage(answer: Answer) -> dict[str, Any]:
    return {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
