"""An approval that outlives the process, on the OpenAI Agents SDK.

Shows: a run that waits for a person is saved with `to_state()`, its process ends, and another one
goes on with the answer; whatever is resumed a second time runs nothing. Needs:
`adjudge-openai-agents`, and `adjudge-conformance` for the scripted model; no key, no network.

    python on_openai_agents.py start FOLDER
    python on_openai_agents.py resume FOLDER --grant      (or --refuse)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from desk import MODEL, TASK, Desk, run
from openai import AsyncOpenAI

import adjudge_openai_agents as governed
from adjudge import ApprovalDecision, PendingApproval


def agent_of(desk: Desk, base_url: str) -> Agent[Any]:
    """Build the agent, the same in each process."""
    client = AsyncOpenAI(base_url=base_url, api_key="not-needed")
    agent: Agent[Any] = Agent(
        name="Desk",
        tools=[function_tool(desk.tool())],
        model=OpenAIResponsesModel(MODEL, client),
    )
    return governed.govern(agent, desk.guard())


def start(desk: Desk, base_url: str) -> tuple[bytes, Sequence[PendingApproval]]:
    """Run until the policy has a person asked; give the SDK's state, and the questions."""
    result = asyncio.run(Runner.run(agent_of(desk, base_url), TASK))
    return result.to_state().to_string().encode(), governed.pending(result)


def resume(desk: Desk, base_url: str, saved: bytes, answers: Mapping[str, ApprovalDecision]) -> str:
    """Go on where the run waits."""
    result = asyncio.run(governed.resume(agent_of(desk, base_url), saved, answers))
    return str(result.final_output)


if __name__ == "__main__":
    set_tracing_disabled(True)
    run(start, resume)
