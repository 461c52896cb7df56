"""What a model says, in the words of each API: a whole body, or the events of a stream.

Anthropic's Messages, OpenAI's Responses and Chat Completions, as their references document them.
One `Turn` is the same reply in all three.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from anthropic import AsyncAnthropic
from model_service import Answer, as_events, as_json
from openai import AsyncOpenAI

from adjudge import ToolSet
from adjudge_runtime.models import ClaudeAgent, OpenAIAgent, OpenAIChatAgent


@dataclass(frozen=True)
class Turn:
    """One reply: a text, calls as (id, tool, argument text), and how it ends."""

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    ending: str = "whole"  # or "cut", "refused"
    thinking: str = ""
    # Tokens: beside the cache, read from it, written to it, put out.
    tokens: tuple[int, int, int, int] = (10, 100, 7, 3)


def halves(text: str) -> list[str]:
    """Cut a text in two, as a stream would."""
    middle = (len(text) + 1) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


@dataclass(frozen=True)
class Wire:
    """One API: how it says a turn, whole or streamed, and the agent that understands it."""

    name: str
    whole: Callable[[Turn], dict[str, Any]]
    events: Callable[[Turn], list[Any]]
    make: Callable[..., Any]
    error: Callable[[str, str], dict[str, Any]] = field(
        default=lambda kind, text: {"error": {"type": kind, "code": kind, "message": text}}
    )

    def answer(self, turn: Turn, *, streamed: bool) -> Answer:
        """Say a turn."""
        return as_events(self.events(turn)) if streamed else as_json(self.whole(turn))

    def agent(self, url: str, tools: ToolSet | None = None, **settings: Any) -> Any:
        """Make the agent, over the official client; clients of tests retry nothing."""
        return self.make(url, ToolSet() if tools is None else tools, **settings)


def _claude_blocks(turn: Turn) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.thinking:
        blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": "sig+/="})
        blocks.append({"type": "redacted_thinking", "data": "sealed"})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text, "citations": None})
    for identity, tool, arguments in turn.calls:
        value = json.loads(arguments) if arguments else {}
        blocks.append({"type": "tool_use", "id": identity, "name": tool, "input": value})
    return blocks


def _claude_message(turn: Turn, content: list[Any], stop: str | None) -> dict[str, Any]:
    fresh, read, written, out = turn.tokens
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-m-20261101",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": fresh,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": out if stop else 1,
        },
    }


def _claude_stop(turn: Turn) -> str:
    ended = {"cut": "max_tokens", "refused": "refusal"}.get(turn.ending)
    return ended or ("tool_use" if turn.calls else "end_turn")


def claude_whole(turn: Turn) -> dict[str, Any]:
    """A turn as the Messages API says it."""
    return _claude_message(turn, _claude_blocks(turn), _claude_stop(turn))


def claude_events(turn: Turn) -> list[Any]:
    """A turn as the Messages API streams it."""
    events: list[Any] = [
        {"type": "message_start", "message": _claude_message(turn, [], None)},
        {"type": "ping"},
    ]
    raw = [arguments for _, _, arguments in turn.calls]
    blocks = _claude_blocks(
        Turn(turn.text, tuple((i, t, "{}") for i, t, _ in turn.calls), thinking=turn.thinking)
    )
    for index, block in enumerate(blocks):
        kind = block["type"]
        start, deltas = dict(block), []
        if kind == "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": part} for part in halves(block["text"])]
        elif kind == "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": part} for part in halves(block["thinking"])
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif kind == "tool_use":
            parts = ["", *halves(raw.pop(0))]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": _claude_stop(turn), "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": turn.tokens[3]}}
    )
    return [*events, {"type": "message_stop"}]


def _claude_agent(url: str, tools: ToolSet, *, timeout: float = 30, **settings: Any) -> ClaudeAgent:
    client = AsyncAnthropic(base_url=url, api_key="k", max_retries=0, timeout=timeout)
    return ClaudeAgent(tools=tools, model="claude-m", client=client, **settings)


def _details(turn: Turn) -> tuple[int, int, dict[str, int]]:
    fresh, read, written, out = turn.tokens
    return fresh + read + written, out, {"cached_tokens": read, "cache_write_tokens": written}


def responses_whole(turn: Turn) -> dict[str, Any]:
    """A turn as the Responses API says it."""
    read, out, details = _details(turn)
    status = "incomplete" if turn.ending == "cut" else "completed"
    items: list[dict[str, Any]] = []
    if turn.thinking:
        items.append(
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": turn.thinking}
        )
    if turn.text or not turn.calls:
        part: dict[str, Any] = {"type": "output_text", "text": turn.text, "annotations": []}
        if turn.ending == "refused":
            part = {"type": "refusal", "refusal": turn.text}
        items.append(
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": status,
                "content": [part],
            }
        )
    items += [
        {
            "type": "function_call",
            "id": f"fc_{identity}",
            "call_id": identity,
            "name": tool,
            "arguments": arguments,
            "status": status,
        }
        for identity, tool, arguments in turn.calls
    ]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_767_225_600,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if turn.ending == "cut" else None,
        "model": "gpt-m-2026",
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": read,
            "input_tokens_details": details,
            "output_tokens": out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + out,
        },
    }


def responses_events(turn: Turn) -> list[Any]:
    """A turn as the Responses API streams it."""
    whole = responses_whole(turn)
    opening = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": opening}]
    for index, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": index}
        begun = {**item, **({"content": []} if item["type"] == "message" else {})}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        if item["type"] == "message" and turn.ending != "refused":
            for part in halves(turn.text):
                told = {"type": "response.output_text.delta", **at, "content_index": 0}
                events.append({**told, "delta": part, "logprobs": []})
        if item["type"] == "function_call":
            for part in halves(item["arguments"]):
                events.append(
                    {"type": "response.function_call_arguments.delta", **at, "delta": part}
                )
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _openai_client(url: str, timeout: float) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=timeout)


def _responses_agent(
    url: str, tools: ToolSet, *, timeout: float = 30, **settings: Any
) -> OpenAIAgent:
    client = _openai_client(url, timeout)
    return OpenAIAgent(tools=tools, model="gpt-m", client=client, **settings)


def _chat_usage(turn: Turn) -> dict[str, Any]:
    read, out, details = _details(turn)
    return {
        "prompt_tokens": read,
        "completion_tokens": out,
        "total_tokens": read + out,
        "prompt_tokens_details": details,
    }


def _chat_finish(turn: Turn) -> str:
    return "length" if turn.ending == "cut" else "tool_calls" if turn.calls else "stop"


def chat_whole(turn: Turn) -> dict[str, Any]:
    """A turn as the Chat Completions API says it."""
    refused = turn.ending == "refused"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused or (turn.calls and not turn.text) else turn.text,
        "refusal": turn.text if refused else None,
    }
    if turn.thinking:
        message["reasoning_content"] = turn.thinking
    if turn.calls:
        message["tool_calls"] = [
            {"id": identity, "type": "function", "function": {"name": tool, "arguments": arguments}}
            for identity, tool, arguments in turn.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _chat_finish(turn), "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_767_225_600,
        "model": "gpt-m-2026",
        "choices": [choice],
        "usage": _chat_usage(turn),
    }


def chat_events(turn: Turn) -> list[Any]:
    """A turn as the Chat Completions API streams it, usage in a chunk of its own."""
    base = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_767_225_600,
        "model": "gpt-m-2026",
        "usage": None,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    said = "refusal" if turn.ending == "refused" else "content"
    chunks = [
        chunk({"role": "assistant", "content": None if turn.calls or said != "content" else ""})
    ]
    chunks += [chunk({"reasoning_content": part}) for part in halves(turn.thinking)]
    chunks += [chunk({said: part}) for part in halves(turn.text)]
    for index, (identity, tool, arguments) in enumerate(turn.calls):
        head = {"name": tool, "arguments": ""}
        opened = {"index": index, "id": identity, "type": "function", "function": head}
        chunks.append(chunk({"tool_calls": [opened]}))
        for part in halves(arguments):
            chunks.append(
                chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
            )
    chunks.append(chunk({}, _chat_finish(turn)))
    chunks.append({**base, "choices": [], "usage": _chat_usage(turn)})
    return [*chunks, "[DONE]"]


def _chat_agent(
    url: str, tools: ToolSet, *, timeout: float = 30, **settings: Any
) -> OpenAIChatAgent:
    client = _openai_client(url, timeout)
    return OpenAIChatAgent(tools=tools, model="gpt-m", client=client, **settings)


CLAUDE = Wire(
    "claude",
    claude_whole,
    claude_events,
    _claude_agent,
    lambda kind, text: {"type": "error", "error": {"type": kind, "message": text}},
)
RESPONSES = Wire("responses", responses_whole, responses_events, _responses_agent)
CHAT = Wire("chat", chat_whole, chat_events, _chat_agent)
WIRES = (CLAUDE, RESPONSES, CHAT)
