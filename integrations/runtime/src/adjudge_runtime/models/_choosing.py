"""Agents made of other agents: the next one where one is down, or one chosen for each step.

Both are agents themselves, so they nest. Usage is that of the model that answered. They ask one
agent at a time and never two for the same answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence

from adjudge_runtime._values import Agent, AgentAction, Message, OnToken, StreamingAgent
from adjudge_runtime.models._errors import ModelUnavailable

__all__ = ["FallbackAgent", "RoutingAgent"]

Selector = Callable[[Sequence[Message]], str | Awaitable[str]]


class FallbackAgent:
    """Asks the first of several agents, and the next where one is not available.

    Not available is `ModelUnavailable`: a rate limit, a time-out, a server's error, no connection.
    A rejected request, a refusal or a malformed reply is not, and is raised as it is. Nor is
    another one asked once a part of a reply has been shown, as the listener would get two
    beginnings; `after_partial_stream=True` says that this is wanted. Where all are down the last
    one's error is raised, with a note for each before it. Each step begins with the first again.

    An agent of one's own that can be down raises `ModelUnavailable`. Raises `ValueError` without
    agents, `TypeError` for what is none.
    """

    def __init__(self, agents: Sequence[Agent], *, after_partial_stream: bool = False) -> None:
        self._agents = tuple(agents)
        self._after_partial_stream = after_partial_stream
        if not self._agents:
            raise ValueError("A FallbackAgent is made of agents; give one or more.")
        for agent in self._agents:
            _check_agent(agent)
        self.name = f"FallbackAgent({', '.join(_name_of(agent) for agent in self._agents)})"

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Give the action of the first agent that is available."""
        return await self._first(conversation, None)

    async def stream(self, conversation: Sequence[Message], on_token: OnToken) -> AgentAction:
        """Do what `step` does, and tell `on_token` each piece of text as it comes."""
        return await self._first(conversation, on_token)

    async def _first(
        self, conversation: Sequence[Message], on_token: OnToken | None
    ) -> AgentAction:
        failed: list[ModelUnavailable] = []
        for agent in self._agents:
            listener = None if on_token is None else _Listener(on_token)
            try:
                return await _ask(agent, conversation, listener)
            except ModelUnavailable as error:
                failed.append(error)
                shown = error.started or (listener is not None and listener.heard)
                if shown and not self._after_partial_stream:
                    break
        last = failed.pop()
        for earlier in failed:
            last.add_note(f"Tried before: {earlier}")
        raise last


class RoutingAgent:
    """Asks the agent that a selector names, anew for each step.

    `selector` gets the conversation and gives a name in `agents`; it may be async. For a run that
    can be resumed it must depend on the conversation alone. What it raises is raised, and a name
    that is not there is a `ValueError`: no agent stands in for another unasked.
    """

    def __init__(self, selector: Selector, agents: Mapping[str, Agent]) -> None:
        self._selector = selector
        self._agents = dict(agents)
        if not callable(selector):
            raise TypeError(f"selector is {selector!r}; give a function of the conversation.")
        if not self._agents:
            raise ValueError("A RoutingAgent chooses among agents; give one or more.")
        for agent in self._agents.values():
            _check_agent(agent)
        self.name = f"RoutingAgent({', '.join(self._agents)})"

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Give the action of the agent that the selector names."""
        return await (await self._chosen(conversation)).step(conversation)

    async def stream(self, conversation: Sequence[Message], on_token: OnToken) -> AgentAction:
        """Do what `step` does, and tell `on_token` each piece of text as it comes."""
        return await _ask(await self._chosen(conversation), conversation, on_token)

    async def _chosen(self, conversation: Sequence[Message]) -> Agent:
        chosen = self._selector(conversation)
        name = await chosen if inspect.isawaitable(chosen) else chosen
        if name not in self._agents:
            raise ValueError(
                f"The selector chose {name!r}; there is {', '.join(map(repr, self._agents))}."
            )
        return self._agents[name]


class _Listener:
    """Hands text on, and remembers that there was some."""

    def __init__(self, on_token: OnToken) -> None:
        self._on_token = on_token
        self.heard = False

    def __call__(self, text: str) -> object | Awaitable[object]:
        self.heard = True
        return self._on_token(text)


async def _ask(
    agent: Agent, conversation: Sequence[Message], on_token: OnToken | None
) -> AgentAction:
    if on_token is not None and isinstance(agent, StreamingAgent):
        return await agent.stream(conversation, on_token)
    return await agent.step(conversation)


def _check_agent(agent: object) -> None:
    if not isinstance(agent, Agent):
        raise TypeError(f"{agent!r} is no agent; give an object with `async def step`.")


def _name_of(agent: Agent) -> str:
    return str(getattr(agent, "name", type(agent).__name__))
