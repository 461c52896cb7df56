"""Claude, through the official `anthropic` client and the Messages API.

Every `tool_use` block of a reply is one proposed call. Streamed, the guard gets the JSON text that
the model wrote; in a whole reply the client has parsed it already, so that a key given twice is not
seen (NaN is). Thinking goes back unchanged with the calls that it led to.
"""

from __future__ import annotations

from typing import Any, Literal

from adjudge import ToolSet
from adjudge_runtime._schema import tool_schema
from adjudge_runtime._values import OnToken
from adjudge_runtime.models._adapter import ModelAgent, Reply, Said, Talk, sdk_of
from adjudge_runtime.models._claude_messages import Prompt, lost_thinking, prompt
from adjudge_runtime.models._claude_replies import Gathered, reply_of
from adjudge_runtime.models._errors import asking, reading

__all__ = ["ClaudeAgent"]

_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_LEAST_THINKING = 1024
_CACHE = {"type": "ephemeral"}


class ClaudeAgent(ModelAgent):
    """An agent that is Claude.

    - `max_tokens`: the most output tokens of one reply; a reply that reaches it is an error.
    - `cache_prompt`: mark the tools, the system prompt and the talk so far for prompt caching.
    - `reasoning_effort`: "low", "medium", "high", "xhigh" or "max"; which of them a model knows is
      the provider's to say. None sends none.
    - `thinking`: "adaptive", or a budget in tokens (1,024 or more, less than `max_tokens`) for the
      models that take one. None sends nothing.
    - `stream`, `on_token`: ask for a stream, and be told each piece of text as it comes.
    - `client`: an `AsyncAnthropic` to use, which stays the caller's to close. Without one the agent
      makes one and `aclose` closes it. It retries as that client does: twice, unless the client was
      made with another `max_retries`.

    Raises `ImportError` without the extra `anthropic`, `ValueError` for values that the API has
    not, `ToolDefinitionError` for tools that no JSON Schema describes.
    """

    def __init__(
        self,
        *,
        tools: ToolSet,
        model: str,
        system: str | None = None,
        max_tokens: int = 16_000,
        cache_prompt: bool = True,
        client: Any | None = None,
        reasoning_effort: str | None = None,
        thinking: int | Literal["adaptive"] | None = None,
        stream: bool = False,
        on_token: OnToken | None = None,
    ) -> None:
        self._settings = _settings(max_tokens, reasoning_effort, thinking)
        self._system = system
        self._caches = cache_prompt
        super().__init__(
            sdk_of("anthropic", "ClaudeAgent"),
            client=client,
            options={},
            tools=tools,
            model=model,
            stream=stream,
            on_token=on_token,
        )
        self._tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool_schema(tool)}
            for tool in tools
        ]
        if cache_prompt and self._tools:
            self._tools[-1] = {**self._tools[-1], "cache_control": _CACHE}

    def _new_client(self, options: dict[str, Any]) -> Any:
        return self._sdk.AsyncAnthropic(**options)

    def _request(self, talk: Talk) -> dict[str, Any]:
        said: Prompt = prompt(talk, self._system, self._kept, cached=self._caches)
        request = {"model": self._model, **self._settings, "messages": said.messages}
        if said.system:
            request["system"] = said.system
        if self._tools:
            request["tools"] = self._tools
        if request.get("thinking", {}).get("type") == "enabled" and lost_thinking(said.messages):
            # With a budget the API rejects a turn whose calls come without the thinking before
            # them, and a resumed run has lost it.
            del request["thinking"]
        return request

    async def _whole(self, request: dict[str, Any]) -> Reply:
        with asking(self._sdk, self.name):
            message = await self._client.messages.create(**request)
        with reading(self.name):
            return reply_of(
                self.name,
                [block.to_dict(warnings=False) for block in message.content],
                stop=message.stop_reason,
                usage=message.usage.to_dict(warnings=False),
                model=message.model,
            )

    async def _streamed(self, request: dict[str, Any], said: Said) -> Reply:
        gathered = Gathered(self.name)
        with asking(self._sdk, self.name):
            stream = await self._client.messages.create(**request, stream=True)
        async with stream:
            async for event in self._events(stream, said):
                with reading(self.name):
                    text = gathered.take(event)
                await said.say(text)
        return gathered.reply(started=said.shown())


def _settings(
    max_tokens: int, effort: str | None, thinking: int | Literal["adaptive"] | None
) -> dict[str, Any]:
    if type(max_tokens) is not int or max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens!r}; give a whole number, 1 or more.")
    settings: dict[str, Any] = {"max_tokens": max_tokens}
    if effort is not None:
        if effort not in _EFFORTS:
            known = ", ".join(_EFFORTS)
            raise ValueError(f"reasoning_effort is {effort!r}; Anthropic has {known}.")
        settings["output_config"] = {"effort": effort}
    if thinking == "adaptive":
        settings["thinking"] = {"type": "adaptive"}
    elif thinking is not None:
        if type(thinking) is not int or not _LEAST_THINKING <= thinking < max_tokens:
            raise ValueError(
                f"thinking is {thinking!r}; give 'adaptive', or a budget of {_LEAST_THINKING} "
                f"tokens or more that is less than max_tokens ({max_tokens})."
            )
        settings["thinking"] = {"type": "enabled", "budget_tokens": thinking}
    return settings
