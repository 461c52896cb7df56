"""How the agent is asked what to do next: as a whole or as a stream, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from adjudge_runtime._conversation import Conversation
from adjudge_runtime._stops import Stop
from adjudge_runtime._values import Agent, AgentAction, OnToken, StreamingAgent

__all__ = ["Choose", "chooser"]

Choose = Callable[[Conversation], Awaitable[object]]


def chooser(agent: Agent, on_token: OnToken | None, *, seconds: float | None) -> Choose:
    """Give the function that asks an agent; after `seconds` it raises `Stop`."""
    choose: Choose = agent.step
    if on_token is not None:
        assert isinstance(agent, StreamingAgent)
        choose = partial(_streamed, agent, on_token)
    return choose if seconds is None else partial(_within, choose, seconds)


def _streamed(
    agent: StreamingAgent, on_token: OnToken, conversation: Conversation
) -> Awaitable[AgentAction]:
    return agent.stream(conversation, on_token)


async def _within(choose: Choose, seconds: float, conversation: Conversation) -> object:
    timer, cut = asyncio.timeout(seconds), f"agent.step timed out after {seconds:g}s"
    try:
        async with timer:
            action = await choose(conversation)
    except Exception as error:
        if not timer.expired():
            raise  # the agent's own
        raise Stop("step_timeout", cut) from error
    if timer.expired():
        # It took no notice of being cut off; what it gives is too late all the same.
        raise Stop("step_timeout", cut)
    return action
