"""A model of OpenAI's, through the official `openai` client and the Responses API.

Requests are complete in themselves and stored nowhere (`store` is false). Where a reasoning effort
is asked for, the encrypted reasoning goes back with the calls that it led to. The guard gets the
JSON text of the arguments as the model wrote it.
"""

from __future__ import annotations

from typing import Any

from adjudge import ToolSet
from adjudge_runtime._schema import tool_schema
from adjudge_runtime._values import Message, OnToken, ToolCall, Usage
from adjudge_runtime.models._adapter import ModelAgent, Reply, Said, Talk, sdk_of
from adjudge_runtime.models._errors import (
    ModelRefused,
    ModelReplyError,
    asking,
    reading,
    truncated,
    unavailable,
)
from adjudge_runtime.models._openai import (
    EFFORTS,
    checked_effort,
    checked_limit,
    client_options,
    usage_of,
)
from adjudge_runtime.models._wording import as_text

__all__ = ["OpenAIAgent"]


class OpenAIAgent(ModelAgent):
    """An agent that is a model of OpenAI's, over the Responses API.

    - `max_tokens`: the most output tokens of one reply, reasoning included; None sends no limit.
    - `reasoning_effort`: "none", "minimal", "low", "medium", "high", "xhigh" or "max"; which of
      them a model knows is the provider's to say. None sends none.
    - `stream`, `on_token`: ask for a stream, and be told each piece of text as it comes.
    - `client`: an `AsyncOpenAI` to use, which stays the caller's to close; `base_url` and `api_key`
      are for the one that the agent makes itself, and that `aclose` closes. It retries as the
      client does: twice, unless the client was made with another `max_retries`.

    Raises `ImportError` without the extra `openai`, `ValueError` for values that the API has not,
    `ToolDefinitionError` for tools that no JSON Schema describes.
    """

    def __init__(
        self,
        *,
        tools: ToolSet,
        model: str,
        system: str | None = None,
        max_tokens: int | None = None,
        client: Any | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        reasoning_effort: str | None = None,
        stream: bool = False,
        on_token: OnToken | None = None,
    ) -> None:
        checked_limit(max_tokens)
        self._settings: dict[str, Any] = {"store": False}
        if max_tokens is not None:
            self._settings["max_output_tokens"] = max_tokens
        if reasoning_effort is not None:
            checked_effort("OpenAI", reasoning_effort, EFFORTS)
            self._settings["reasoning"] = {"effort": reasoning_effort}
            if reasoning_effort != "none":
                self._settings["include"] = ["reasoning.encrypted_content"]
        self._system = system
        super().__init__(
            sdk_of("openai", "OpenAIAgent"),
            client=client,
            options=client_options(client, base_url=base_url, api_key=api_key),
            tools=tools,
            model=model,
            stream=stream,
            on_token=on_token,
        )
        # Strict schemas cannot leave an argument out, so a default could never apply.
        self._tools = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool_schema(tool),
                "strict": False,
            }
            for tool in tools
        ]

    def _new_client(self, options: dict[str, Any]) -> Any:
        return self._sdk.AsyncOpenAI(**options)

    def _request(self, talk: Talk) -> dict[str, Any]:
        items: list[Any] = []
        for place, message in talk:
            items += self._items(message, self._kept.of(place, message.tool_calls))
        request = {"model": self._model, **self._settings, "input": items}
        if self._system:
            request["instructions"] = self._system
        if self._tools:
            request["tools"] = self._tools
        return request

    def _items(self, message: Message, raw: Any) -> list[Any]:
        if message.role == "tool":
            told = {"type": "function_call_output", "call_id": message.tool_call_id}
            return [{**told, "output": message.content}]
        if raw is not None:
            return list(raw)
        text = [{"role": message.role, "content": message.content}] if message.content else []
        calls = [
            {
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.tool,
                "arguments": as_text(call.args),
            }
            for call in message.tool_calls
        ]
        return [*text, *calls]

    async def _whole(self, request: dict[str, Any]) -> Reply:
        with asking(self._sdk, self.name):
            response = await self._client.responses.create(**request)
        with reading(self.name):
            return self._reply(response.to_dict(warnings=False), started=False)

    async def _streamed(self, request: dict[str, Any], said: Said) -> Reply:
        last: dict[str, Any] | None = None
        with asking(self._sdk, self.name):
            stream = await self._client.responses.create(**request, stream=True)
        async with stream:
            async for event in self._events(stream, said):
                with reading(self.name):
                    text = event.delta if event.type == "response.output_text.delta" else ""
                    if event.type in _LAST:
                        last = event.response.to_dict(warnings=False)
                    elif event.type == "error":
                        last = {"status": "failed", "error": event.to_dict(warnings=False)}
                await said.say(text)
        if last is None:
            cause = "the stream ended before the reply did"
            raise unavailable(self.name, "connection", cause, started=said.shown())
        with reading(self.name):
            return self._reply(last, started=said.shown())

    def _reply(self, response: dict[str, Any], *, started: bool) -> Reply:
        told = response.get("usage")
        usage = None
        if told is not None:
            usage = _usage(told, response["model"])
        self._check(response, usage, started=started)
        items = response["output"]
        unknown = [item["type"] for item in items if item["type"] not in _ITEMS]
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
        if refusals:
            raise ModelRefused(f"{self.name} refused to answer: {refusals[0]}", usage=usage)
        calls = tuple(
            ToolCall(item["name"], item["arguments"], item["call_id"])
            for item in items
            if item["type"] == "function_call"
        )
        if unknown or not (parts or calls):
            raise ModelReplyError(
                f"The reply of {self.name} has the items {[item['type'] for item in items]}; "
                "nothing of it is used.",
                usage=usage,
            )
        text = "".join(part["text"] for part in parts if part["type"] == "output_text")
        reasoned = [item for item in items if item["type"] == "reasoning"]
        # Without its encrypted content the API could not find a reasoning that it did not store.
        back = reasoned and all(item.get("encrypted_content") for item in reasoned)
        return Reply(text, calls, usage, items if back else None)

    def _check(self, response: dict[str, Any], usage: Usage | None, *, started: bool) -> None:
        status = response["status"]
        if status == "completed":
            return
        if status == "incomplete":
            reason = (response.get("incomplete_details") or {}).get("reason")
            if reason == "content_filter":
                raise ModelRefused(f"{self.name} was stopped by a content filter", usage=usage)
            raise truncated(self.name, str(reason), usage=usage)
        error = response.get("error") or {}
        cause = f"{error.get('code')}: {error.get('message')}"
        if error.get("code") == "rate_limit_exceeded":
            raise unavailable(self.name, "rate_limit", cause, started=started)
        if error.get("code") == "server_error":
            raise unavailable(self.name, "server", cause, started=started)
        raise ModelReplyError(f"The reply of {self.name} is {status} ({cause})", usage=usage)


_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ITEMS = frozenset({"message", "function_call", "reasoning"})


def _usage(told: dict[str, Any], model: str) -> Usage:
    return usage_of(
        told["input_tokens"],
        told["output_tokens"],
        details=told.get("input_tokens_details"),
        model=model,
    )
