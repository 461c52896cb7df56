"""The reference host's model client: a request, and the calls and text of the answer, over urllib.

It speaks Chat Completions and Responses, streamed and not, and knows no more of them than it needs.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge_conformance.wire import Api

__all__ = ["Conversation", "Reply"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model: its calls as (id, tool, argument text), its text, its tokens."""

    calls: tuple[tuple[str, str, str], ...]
    text: str | None
    tokens: int
    events: tuple[str, ...] = ()


class Conversation:
    """One run's history, in the words of its API; `history` is what the next request will hold."""

    def __init__(
        self, api: Api, base_url: str, model: str, tools: Sequence[Mapping[str, Any]], prompt: str
    ) -> None:
        self.history: list[Any] = [{"role": "user", "content": prompt}]
        self._chat = api == "chat"
        self._url = f"{base_url}{'/chat/completions' if self._chat else '/responses'}"
        offered = [
            {"type": "function", "function": dict(tool)}
            if self._chat
            else {"type": "function", **tool}
            for tool in tools
        ]
        self._fixed = {"model": model, "tools": offered}

    def ask(self, *, streamed: bool) -> Reply:
        """Send the history and take the answer into it."""
        body: dict[str, Any] = {
            **self._fixed,
            ("messages" if self._chat else "input"): self.history,
        }
        if streamed:
            body["stream"] = True
            if self._chat:
                body["stream_options"] = {"include_usage": True}
        request = urllib.request.Request(  # noqa: S310 (the address is the suite's own server)
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            if streamed:
                events = [json.loads(data) for data in _data_lines(answer)]
                whole = _chat_whole(events) if self._chat else events[-1]["response"]
                kinds = tuple(str(event.get("type", event.get("object"))) for event in events)
            else:
                whole, kinds = json.load(answer), ()
        return self._take_in(whole, kinds)

    def tell(self, call_id: str, output: str) -> None:
        """Put a tool's answer into the history."""
        self.history.append(
            {"role": "tool", "tool_call_id": call_id, "content": output}
            if self._chat
            else {"type": "function_call_output", "call_id": call_id, "output": output}
        )

    def _take_in(self, whole: Mapping[str, Any], kinds: tuple[str, ...]) -> Reply:
        tokens = whole["usage"]["total_tokens"]
        if self._chat:
            message = whole["choices"][0]["message"]
            self.history.append({k: v for k, v in message.items() if v is not None})
            made = [(call["id"], call["function"]) for call in message.get("tool_calls") or []]
            calls = tuple((call_id, f["name"], f["arguments"]) for call_id, f in made)
            return Reply(calls, message.get("content"), tokens, kinds)
        self.history += whole["output"]
        items = whole["output"]
        calls = tuple(
            (item["call_id"], item["name"], item["arguments"])
            for item in items
            if item["type"] == "function_call"
        )
        texts = [item["content"][0]["text"] for item in items if item["type"] == "message"]
        return Reply(calls, "".join(texts) if texts else None, tokens, kinds)


def _data_lines(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        name, _, data = line.decode().strip().partition(": ")
        if name == "data" and data != "[DONE]":
            yield data


def _chat_whole(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The message that a stream of chunks amounts to."""
    text, usage = "", None
    calls: dict[int, Any] = {}
    for chunk in chunks:
        usage = chunk["usage"] or usage
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls", ()):
                call = calls.setdefault(part["index"], {**part, "function": {**part["function"]}})
                if call["id"] != part.get("id"):
                    call["function"]["arguments"] += part["function"]["arguments"]
    for call in calls.values():
        call.pop("index")
    message = {"role": "assistant", "content": text or None, "tool_calls": list(calls.values())}
    return {"choices": [{"message": message}], "usage": usage}
