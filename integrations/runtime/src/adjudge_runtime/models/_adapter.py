"""What the adapters have in common: a client of their own or a lent one, and one way to a reply.

`step` asks once and waits for the whole reply, or streams it if told so at construction; `stream`
is the loop's way to see the text while it is written. Both give the same action. Where a run is
cancelled the request is closed with it.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from adjudge import ToolDefinitionError, ToolSet
from adjudge_runtime._values import (
    AgentAction,
    FinalAnswer,
    Message,
    OnToken,
    ToolCall,
    ToolCalls,
    Usage,
)
from adjudge_runtime.models._errors import ModelReplyError, asking

__all__ = ["Kept", "ModelAgent", "Reply", "Said", "Talk", "checked_text", "sdk_of", "with_call_ids"]

_MOST_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole reply, in no provider's words.

    `raw` is what the provider wants to get back unchanged with the answers to the calls.
    """

    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage | None
    raw: Any = None


class Kept:
    """What providers want back unchanged (thinking, reasoning), by the reply that it came with.

    The conversation has no place for it, so it lives as long as the agent does, and the last
    1,024 replies at most; a request without it is the same, but for the thinking. A reply is told
    by all that was said before it: an agent serves many runs, some services give the same ids in
    each, and no run may get what another one's model thought.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[_Reply, Any] = OrderedDict()

    def keep(self, place: str, calls: Sequence[ToolCall], raw: Any) -> None:
        """Remember what came with a reply's calls; `place` stands for all that was said before."""
        self._held[_key(place, calls)] = raw
        if len(self._held) > _MOST_KEPT:
            self._held.popitem(last=False)

    def of(self, place: str, calls: Sequence[ToolCall]) -> Any:
        """Give what came with those calls there, None where nothing did or it is gone."""
        return self._held.get(_key(place, calls)) if calls else None


_Reply = tuple[str, tuple[tuple[str, str], ...]]


def _key(place: str, calls: Sequence[ToolCall]) -> _Reply:
    return place, tuple((call.call_id, call.tool) for call in calls)


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation in which every call has an id, and each message its place.

    A place is a digest of all that was said before; the last one is that of the reply to come.
    """

    messages: list[Message]
    places: list[str]

    @classmethod
    def of(cls, conversation: Sequence[Message]) -> Talk:
        """Read a conversation."""
        messages = with_call_ids(conversation)
        places = [""]
        for message in messages:
            calls = [(call.call_id, call.tool) for call in message.tool_calls]
            said = json.dumps([message.role, message.content, message.tool_call_id, calls])
            places.append(sha256((places[-1] + said).encode()).hexdigest())
        return cls(messages, places)

    def __iter__(self) -> Iterator[tuple[str, Message]]:
        return zip(self.places, self.messages, strict=False)


class Said:
    """Hands text on as it comes, and remembers that some was shown."""

    def __init__(self, on_token: OnToken | None) -> None:
        self._on_token = on_token
        self._shown = False

    def shown(self) -> bool:
        """Tell whether anybody has seen a part of the reply."""
        return self._shown

    async def say(self, text: str) -> None:
        """Show a piece of text; what the callback raises ends the step."""
        if text and self._on_token is not None:
            self._shown = True
            told = self._on_token(text)
            if inspect.isawaitable(told):
                await told


class ModelAgent:
    """An agent over an official client; what is specific to an API is in the subclasses."""

    def __init__(
        self,
        sdk: Any,
        *,
        client: Any | None,
        options: dict[str, Any],
        tools: ToolSet,
        model: str,
        stream: bool,
        on_token: OnToken | None,
    ) -> None:
        if not isinstance(tools, ToolSet):
            raise ToolDefinitionError(
                f"tools is a {type(tools).__name__}; give the ToolSet that run_agent gets."
            )
        self.name = f"{type(self).__name__}({checked_text('model', model)})"
        self._sdk = sdk
        self._model = model
        self._streams = stream or on_token is not None
        self._on_token = on_token
        self._kept = Kept()
        self._owned = client is None
        self._client = self._new_client(options) if client is None else client

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Ask the model once for its next action.

        Raises `ModelError`; see its subclasses for which and when.
        """
        if self._streams:
            return await self._act(conversation, Said(self._on_token))
        return await self._act(conversation, None)

    async def stream(self, conversation: Sequence[Message], on_token: OnToken) -> AgentAction:
        """Do what `step` does, and tell `on_token` each piece of text as it comes."""
        return await self._act(conversation, Said(on_token))

    async def aclose(self) -> None:
        """Close the client, where the agent made it; a client that was given stays open."""
        if self._owned:
            await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    async def _act(self, conversation: Sequence[Message], said: Said | None) -> AgentAction:
        talk = Talk.of(conversation)
        request = self._request(talk)
        reply = await (self._whole(request) if said is None else self._streamed(request, said))
        if not reply.calls:
            return FinalAnswer(reply.text, reply.usage)
        try:
            action = ToolCalls(reply.calls, reply.usage, reply.text)
        except ValueError as error:
            raise ModelReplyError(
                f"The reply of {self.name} cannot be used: {error}", usage=reply.usage
            ) from error
        if reply.raw is not None:
            self._kept.keep(talk.places[-1], action.calls, reply.raw)
        return action

    async def _events(self, stream: Any, said: Said) -> AsyncIterator[Any]:
        """Give the events of a stream; what goes wrong with it is translated, the rest is not."""
        iterator = aiter(stream)
        while True:
            with asking(self._sdk, self.name, said.shown):
                try:
                    event = await anext(iterator)
                except StopAsyncIteration:
                    return
            yield event

    def _new_client(self, options: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _request(self, talk: Talk) -> dict[str, Any]:
        raise NotImplementedError

    async def _whole(self, request: dict[str, Any]) -> Reply:
        raise NotImplementedError

    async def _streamed(self, request: dict[str, Any], said: Said) -> Reply:
        raise NotImplementedError


def sdk_of(package: str, agent: str) -> Any:
    """Import an official client; the error of a missing one names the extra to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{agent} speaks through the package {package!r}, which cannot be imported ({error}); "
            f"install it with `pip install adjudge-runtime[{package}]`."
        ) from error


def checked_text(name: str, value: object) -> str:
    """Give a text that is not empty; anything else is a clear error."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is {value!r}; give a text that is not empty.")
    return value


def with_call_ids(conversation: Iterable[Message]) -> list[Message]:
    """Give every call an id that its answer names, where the conversation has none.

    Answers without an id belong to the calls of the step before, in order.
    """
    told: list[Message] = []
    waiting: list[str] = []
    for place, message in enumerate(conversation):
        calls = tuple(
            call if call.call_id else ToolCall(call.tool, call.args, f"call_{place}_{index}")
            for index, call in enumerate(message.tool_calls)
        )
        answers = message.tool_call_id
        if message.role == "tool":
            answers = answers or (waiting[0] if waiting else f"call_{place}")
            waiting = [identity for identity in waiting if identity != answers]
        elif calls:
            waiting = [call.call_id for call in calls]
        told.append(Message(message.role, message.content, message.name, answers, calls))
    return told
