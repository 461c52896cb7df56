"""The desk's agent on PydanticAI: its own agent, tools, loop and model client."""

from __future__ import annotations

from desk import Desk
from endpoint import Caller, Endpoint
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from adjudge import CallContext, Principal, ToolGuard
from adjudge_pydantic_ai import govern

DISTRIBUTION = "pydantic-ai-slim"


def run(desk: Desk, guard: ToolGuard, endpoint: Endpoint, caller: Caller, task: str) -> str:
    """Run the agent on a task and give its final answer."""
    provider = OpenAIProvider(base_url=endpoint.base_url, api_key=endpoint.api_key)
    agent = Agent(
        OpenAIResponsesModel(endpoint.model, provider=provider),
        name="Operations desk",
        instructions=endpoint.instructions,
        tools=desk.tools(),
        deps_type=Caller,
    )

    def who(ctx: RunContext[Caller]) -> CallContext:
        return CallContext(
            principal=Principal("user", ctx.deps.user),
            environment="prod",
            workspace=str(desk.files),
            extra={"tenant": ctx.deps.tenant},
        )

    govern(agent, guard, context=who)
    return agent.run_sync(task, deps=caller).output
