"""The desk's agent on the OpenAI Agents SDK: its own agent, tools, loop and model client."""

from __future__ import annotations

from agents import (
    Agent,
    OpenAIResponsesModel,
    RunContextWrapper,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from desk import Desk
from endpoint import Caller, Endpoint
from openai import AsyncOpenAI

from adjudge import CallContext, Principal, ToolGuard
from adjudge_openai_agents import govern

DISTRIBUTION = "openai-agents"


def run(desk: Desk, guard: ToolGuard, endpoint: Endpoint, caller: Caller, task: str) -> str:
    """Run the agent on a task and give its final answer."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key)
    agent = Agent[Caller](
        name="Operations desk",
        instructions=endpoint.instructions,
        tools=[function_tool(tool) for tool in desk.tools()],
        model=OpenAIResponsesModel(endpoint.model, client),
    )

    def who(run: RunContextWrapper[Caller]) -> CallContext:
        return CallContext(
            principal=Principal("user", run.context.user),
            environment="prod",
            workspace=str(desk.files),
            extra={"tenant": run.context.tenant},
        )

    govern(agent, guard, context=who)
    return str(Runner.run_sync(agent, task, context=caller, max_turns=20).final_output)
