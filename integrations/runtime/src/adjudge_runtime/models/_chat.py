"""A model behind the Chat Completions API, of OpenAI or of whoever else speaks it.

The guard gets the JSON text of the arguments as the model wrote it. What providers do differently
is in their `Provider`, not here.
"""

from __future__ import annotations

from typing import Any

from adjudge import ToolSet
from adjudge_runtime._schema import tool_schema
from adjudge_runtime._values import Message, OnToken
from adjudge_runtime.models._adapter import ModelAgent, Reply, Said, Talk, sdk_of
from adjudge_runtime.models._chat_replies import Gathered, reply_of
from adjudge_runtime.models._errors import asking, reading
from adjudge_runtime.models._openai import checked_effort, checked_limit, client_options
from adjudge_runtime.models._registry import PROVIDERS, Provider
from adjudge_runtime.models._wording import as_text

__all__ = ["OpenAIChatAgent"]


class OpenAIChatAgent(ModelAgent):
    """An agent that is a model behind the Chat Completions API.

    The parameters are those of `OpenAIAgent`; `provider` says what a service other than OpenAI's
    does differently (`openai_compatible_agent` gives it, with the service's address and key).

    Raises `ImportError` without the extra `openai`, `ValueError` for values that the provider has
    not, `ToolDefinitionError` for tools that no JSON Schema describes.
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
        provider: Provider | None = None,
    ) -> None:
        self._provider = PROVIDERS["openai"] if provider is None else provider
        checked_limit(max_tokens)
        self._settings: dict[str, Any] = {}
        if max_tokens is not None:
            self._settings[self._provider.max_tokens_field] = max_tokens
        if reasoning_effort is not None:
            known = self._provider.reasoning_efforts
            checked_effort(self._provider.name, reasoning_effort, known)
            # Not every release of the client knows every word that a provider has.
            self._settings["extra_body"] = {"reasoning_effort": reasoning_effort}
        self._system = system
        super().__init__(
            sdk_of("openai", "OpenAIChatAgent"),
            client=client,
            options=client_options(client, base_url=base_url, api_key=api_key),
            tools=tools,
            model=model,
            stream=stream,
            on_token=on_token,
        )
        if len(tools) and not self._provider.takes_tools:
            raise ValueError(
                f"{self._provider.name} takes no tools of the caller's, and there are "
                f"{', '.join(tools.names)}; give an empty ToolSet, or another provider."
            )
        schemas = {tool.name: tool_schema(tool) for tool in tools}
        self._bare = frozenset(
            name for name, schema in schemas.items() if not schema.get("properties")
        )
        self._tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": schemas[tool.name],
                },
            }
            for tool in tools
        ]

    def _new_client(self, options: dict[str, Any]) -> Any:
        return self._sdk.AsyncOpenAI(**options)

    def _request(self, talk: Talk) -> dict[str, Any]:
        messages = [{"role": "system", "content": self._system}] if self._system else []
        messages += [
            self._message(message, self._kept.of(place, message.tool_calls))
            for place, message in talk
        ]
        request = {"model": self._model, **self._settings, "messages": messages}
        if self._tools:
            request["tools"] = self._tools
        return request

    def _message(self, message: Message, raw: dict[str, Any] | None) -> dict[str, Any]:
        if message.role == "tool":
            told = {"role": "tool", "tool_call_id": message.tool_call_id}
            return {**told, "content": message.content}
        if not message.tool_calls:
            return {"role": message.role, "content": message.content}
        calls = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.tool, "arguments": as_text(call.args)},
            }
            for call in message.tool_calls
        ]
        # Some services have no null here, and none needs an empty text told apart from it.
        said = {"role": "assistant", "content": message.content, "tool_calls": calls}
        return {**said, **(raw or {})}

    async def _whole(self, request: dict[str, Any]) -> Reply:
        with asking(self._sdk, self.name):
            completion = await self._client.chat.completions.create(**request)
        with reading(self.name):
            told = completion.to_dict(warnings=False)
            field = self._provider.thinking_field
            return reply_of(self.name, told, thinking=field, bare=self._bare)

    async def _streamed(self, request: dict[str, Any], said: Said) -> Reply:
        asked = {**request, "stream": True}
        if self._provider.takes_stream_options:
            asked["stream_options"] = {"include_usage": True}
        field = self._provider.thinking_field
        gathered = Gathered(self.name, thinking=field, bare=self._bare)
        with asking(self._sdk, self.name):
            stream = await self._client.chat.completions.create(**asked)
        async with stream:
            async for chunk in self._events(stream, said):
                with reading(self.name):
                    text = gathered.take(chunk.to_dict(warnings=False))
                await said.say(text)
        with reading(self.name):
            return gathered.reply(started=said.shown())
