"""What a Chat Completions model replied, from a whole completion or from the chunks of a stream.

A stream becomes the completion that it stands for, and that is read as a whole one is.
"""

from __future__ import annotations

from typing import Any

from adjudge_runtime._values import ToolCall, Usage
from adjudge_runtime.models._adapter import Reply
from adjudge_runtime.models._errors import ModelRefused, ModelReplyError, truncated, unavailable
from adjudge_runtime.models._openai import usage_of

__all__ = ["Gathered", "reply_of"]

_CUT = ("length", "model_length")


def reply_of(
    name: str, completion: dict[str, Any], *, thinking: str | None, bare: frozenset[str]
) -> Reply:
    """Make a reply of a completion; `thinking` is the field that the provider wants back.

    `bare` are the tools without arguments: for one of them some services write none, not even `{}`.
    Raises `ModelRefused` for a refusal, `ModelReplyError` for what is cut off or not understood.
    """
    usage = _usage(completion)
    choices = completion["choices"]
    if len(choices) != 1:
        raise ModelReplyError(f"The reply of {name} has {len(choices)} choices.", usage=usage)
    message, finish = choices[0]["message"], choices[0]["finish_reason"]
    if message.get("refusal"):
        raise ModelRefused(f"{name} refused to answer: {message['refusal']}", usage=usage)
    if finish == "content_filter":
        raise ModelRefused(f"{name} was stopped by a content filter.", usage=usage)
    if finish in _CUT:
        raise truncated(name, finish, usage=usage)
    given = message.get("tool_calls") or ()
    other = [call["type"] for call in given if call.get("type") not in (None, "function")]
    if message.get("function_call"):
        other.append("function_call")
    if other:
        raise ModelReplyError(
            f"The reply of {name} has a call of the type {other[0]!r}; nothing of it is used.",
            usage=usage,
        )
    calls = tuple(_call(call, bare) for call in given)
    text = message.get("content")
    # Some services say "stop" where they propose calls.
    good = bool(calls) if finish == "tool_calls" else finish == "stop"
    if not good or not (calls or isinstance(text, str)):
        raise ModelReplyError(
            f"The reply of {name} ended with {finish!r} and says neither a text nor a whole call; "
            "nothing of it is used.",
            usage=usage,
        )
    back = {thinking: message[thinking]} if thinking and message.get(thinking) else None
    return Reply(text or "", calls, usage, back)


def _call(call: dict[str, Any], bare: frozenset[str]) -> ToolCall:
    function = call["function"]
    tool, args = function["name"], function.get("arguments")
    if args is None or args == "":
        # Where there could be arguments this is no JSON, for the guard to say so.
        args = "{}" if tool in bare else ""
    return ToolCall(tool, args, call.get("id") or "")


def _usage(completion: dict[str, Any]) -> Usage | None:
    told = completion.get("usage")
    if not told:
        return None
    return usage_of(
        told["prompt_tokens"],
        told["completion_tokens"],
        details=told.get("prompt_tokens_details"),
        model=completion.get("model"),
    )


class Gathered:
    """The chunks of one stream, put together."""

    def __init__(self, name: str, *, thinking: str | None, bare: frozenset[str]) -> None:
        self._name = name
        self._thinking = thinking
        self._bare = bare
        self._texts: dict[str, str] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._old_call: Any = None
        self._finish: str | None = None
        self._usage: dict[str, Any] | None = None
        self._model: str | None = None

    def take(self, chunk: dict[str, Any]) -> str:
        """Take a chunk in; give the piece of text that it brought, empty where there is none."""
        self._usage = chunk.get("usage") or self._usage
        self._model = chunk.get("model") or self._model
        text = ""
        for choice in chunk.get("choices") or ():
            if choice.get("index"):
                raise ModelReplyError(f"The reply of {self._name} has several choices.")
            delta = choice.get("delta") or {}
            for field in ("content", "refusal", self._thinking):
                if field and isinstance(delta.get(field), str):
                    self._texts[field] = self._texts.get(field, "") + delta[field]
            text += delta.get("content") or ""
            self._old_call = delta.get("function_call") or self._old_call
            for part in delta.get("tool_calls") or ():
                self._add(part)
            self._finish = choice.get("finish_reason") or self._finish
        return text

    def reply(self, *, started: bool) -> Reply:
        """Give the reply, once the stream is over; one that was cut is no reply."""
        if self._finish is None:
            cause = "the stream ended before the reply did"
            raise unavailable(self._name, "connection", cause, started=started)
        message: dict[str, Any] = {**self._texts, "function_call": self._old_call}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        completion = {
            "choices": [{"message": message, "finish_reason": self._finish}],
            "usage": self._usage,
            "model": self._model,
        }
        return reply_of(self._name, completion, thinking=self._thinking, bare=self._bare)

    def _add(self, part: dict[str, Any]) -> None:
        index = part.get("index")
        if index is None:
            # Some services leave it out: a part with an id opens a call, one without goes on.
            index = len(self._calls) if part.get("id") else len(self._calls) - 1
        call = self._calls.setdefault(index, {"function": {"name": "", "arguments": ""}})
        function = part.get("function") or {}
        call["id"] = part.get("id") or call.get("id")
        call["type"] = part.get("type") or call.get("type")
        # A name comes whole, and some services repeat it in every part.
        call["function"]["name"] = function.get("name") or call["function"]["name"]
        call["function"]["arguments"] += function.get("arguments") or ""
