"""Reading a raw request body: the tools offered, the history, and what each call's tool said.

The extractors are the suite's only source for "what the model saw": they read the bytes that went
over the wire, never what a framework says that it sent. Chat Completions, Responses and ReAct text
give the same answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from adjudge_conformance.wire._script import call_id

__all__ = ["Api", "PastCall", "WireRequest"]

Api = Literal["chat", "responses", "react"]

_REACT_STEP = re.compile(
    r"^Thought: step (?P<turn>\d+) of (?P<model>[A-Za-z0-9-]+)\n"
    r"Action: (?P<tool>.*?)\nAction Input: (?P<arguments>.*?)\n+"
    r"(?:\f\n)?Observation: ?(?P<output>.*?)(?=\n+Thought: step |\f|\Z)",
    re.DOTALL | re.MULTILINE,
)
_REACT_TOOL = re.compile(
    r"^Tool Name: (?P<name>.*?)\nTool Arguments: (?P<schema>.*?)\nTool Description: (?P<text>.*?)"
    r"(?=\nTool Name: |\n\n|\Z)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call in a request's history; `output` is what the model is told of it, None if open."""

    id: str
    tool: str
    arguments: str
    output: str | None


@dataclass(frozen=True)
class WireRequest:
    """One request as its bytes say it."""

    api: Api
    raw: bytes

    @cached_property
    def body(self) -> dict[str, Any]:
        body = json.loads(self.raw)
        if not isinstance(body, dict):
            raise ValueError("a request body must be a JSON object")
        return body

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def streamed(self) -> bool:
        return self.body.get("stream") is True

    @cached_property
    def tools(self) -> dict[str, Any]:
        """What the model is told of each tool, by name: its schema and description as sent."""
        if self.api == "react":
            told = "\n\n".join(self._texts("system", "user"))
            return {match["name"]: match.groupdict() for match in _REACT_TOOL.finditer(told)}
        offered = self.body.get("tools") or []
        inner = [tool.get("function", tool) if self.api == "chat" else tool for tool in offered]
        return {str(tool.get("name", tool.get("type"))): tool for tool in inner}

    @cached_property
    def conversation(self) -> str:
        """The first thing that the user said: what tells one conversation from another."""
        return next(self._texts("user"), "")

    @cached_property
    def said(self) -> tuple[str, ...]:
        """The texts of the model in the history, oldest first."""
        return tuple(self._texts("assistant"))

    @cached_property
    def calls(self) -> tuple[PastCall, ...]:
        """The calls in the history, in the order in which the request holds them."""
        reader = {
            "chat": self._chat_calls,
            "responses": self._responses_calls,
            "react": self._react_calls,
        }
        return tuple(reader[self.api]())

    @property
    def outputs(self) -> dict[str, str]:
        """What the model is told that each call gave, by call id; open calls are left out."""
        return {call.id: call.output for call in self.calls if call.output is not None}

    def _items(self) -> list[dict[str, Any]]:
        held = self.body.get("input" if self.api == "responses" else "messages") or []
        if isinstance(held, str):
            return [{"role": "user", "content": held}]
        return [item for item in held if isinstance(item, dict)]

    def _texts(self, *roles: str) -> Iterator[str]:
        for item in self._items():
            if item.get("role") in roles and item.get("content") is not None:
                yield _text(item["content"])

    def _chat_calls(self) -> Iterator[PastCall]:
        items = self._items()
        told = {m.get("tool_call_id"): _text(m.get("content")) for m in items if _is_tool(m)}
        for message in items:
            for call in message.get("tool_calls") or []:
                made = call["function"]
                yield PastCall(call["id"], made["name"], made["arguments"], told.get(call["id"]))

    def _responses_calls(self) -> Iterator[PastCall]:
        items = self._items()
        told = {i["call_id"]: _text(i.get("output")) for i in items if _is_output(i)}
        for item in items:
            kind = str(item.get("type"))
            if kind.endswith("_call") and item.get("call_id"):
                sent = item["arguments"] if kind == "function_call" else _payload(item)
                yield PastCall(
                    item["call_id"], item.get("name", kind), sent, told.get(item["call_id"])
                )

    def _react_calls(self) -> Iterator[PastCall]:
        # What another message says is no part of an observation.
        history = "\f\n".join(self._texts("user", "assistant"))
        for step in _REACT_STEP.finditer(history):
            identity = call_id(step["model"], self.conversation, int(step["turn"]), 0)
            yield PastCall(
                identity, step["tool"].strip(), step["arguments"].strip(), step["output"].strip()
            )


def _is_tool(message: dict[str, Any]) -> bool:
    return message.get("role") == "tool"


def _is_output(item: dict[str, Any]) -> bool:
    return str(item.get("type")).endswith("_call_output")


def _payload(item: dict[str, Any]) -> str:
    """What a call other than a function's asks for: a raw text, or its action as JSON."""
    if item.get("type") == "custom_tool_call":
        return str(item["input"])
    return json.dumps(item.get("action") or item.get("operation"), sort_keys=True)


def _text(content: object) -> str:
    """The text of a message's content or of a tool's output: a string, or a list of parts.

    A part has its `text`, or is what a shell's command wrote: `stdout` and `stderr`.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            "".join(str(part.get(key, "")) for key in ("text", "stdout", "stderr"))
            if isinstance(part, dict)
            else str(part)
            for part in content
        )
    return "" if content is None else json.dumps(content)
