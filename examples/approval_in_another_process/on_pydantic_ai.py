"""An approval that outlives the process, on PydanticAI.

Shows: a run that waits for a person ends with `DeferredToolRequests`; these and the messages are
saved, the process ends, and another one goes on with the answer; whatever is resumed a second time
runs nothing. Needs: `adjudge-pydantic-ai`, `pydantic-ai-slim[openai]`, and `adjudge-conformance`
for the scripted model; no key, no network.

    python on_pydantic_ai.py start FOLDER
    python on_pydantic_ai.py resume FOLDER --grant      (or --refuse)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from desk import MODEL, TASK, Desk, run
from openai import AsyncOpenAI
from pydantic import TypeAdapter
from pydantic_ai import Agent, ModelMessage
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import DeferredToolRequests

import adjudge_pydantic_ai as governed
from adjudge import ApprovalDecision, PendingApproval

SAVED = TypeAdapter(tuple[list[ModelMessage], DeferredToolRequests])


def agent_of(desk: Desk, base_url: str) -> Agent[None, Any]:
    """Build the agent, the same in each process."""
    client = AsyncOpenAI(base_url=base_url, api_key="not-needed")
    agent = Agent(
        OpenAIResponsesModel(MODEL, provider=OpenAIProvider(openai_client=client)),
        name="desk",
        tools=[desk.tool()],
        output_type=[str, DeferredToolRequests],
    )
    return governed.govern(agent, desk.guard())


def start(desk: Desk, base_url: str) -> tuple[bytes, Sequence[PendingApproval]]:
    """Run until the policy has a person asked; give the framework's state, and the questions."""
    agent = agent_of(desk, base_url)
    result = asyncio.run(agent.run(TASK))
    assert isinstance(result.output, DeferredToolRequests)
    saved = SAVED.dump_json((result.all_messages(), result.output))
    return saved, governed.pending(agent, result)


def resume(desk: Desk, base_url: str, saved: bytes, answers: Mapping[str, ApprovalDecision]) -> str:
    """Go on where the run waits."""
    messages, requests = SAVED.validate_json(saved)
    agent = agent_of(desk, base_url)
    going_on = governed.resume(agent, requests, answers, message_history=messages)
    return str(asyncio.run(going_on).output)


if __name__ == "__main__":
    run(start, resume)
