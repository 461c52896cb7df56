"""What governing costs in PydanticAI: a call of a toolset's tool, and an agent's run.

    python integrations/pydantic-ai/benchmarks/overhead.py --json docs/reference/speed.json

The model is PydanticAI's own FunctionModel, so a run is the framework's own work and the tool's.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.usage import RunUsage

from adjudge import ToolGuard
from adjudge_conformance.overhead import ANSWER, ARGUMENTS, TOOL, Way, Ways, main
from adjudge_pydantic_ai import GovernedToolset, govern

TEXT = json.dumps(dict(ARGUMENTS))


async def refund(order: int, amount: float, to: str) -> str:
    """Refund an order."""
    return ANSWER


async def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Call the tool once, and then say what the tool said."""
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart(TOOL, TEXT)])
    return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])


def ways(guard: ToolGuard | None) -> Ways:
    """Make both ways, governed if there is a guard."""
    toolset: Any = FunctionToolset([refund])
    agent = Agent(FunctionModel(scripted), tools=[refund])
    if guard is not None:
        toolset = GovernedToolset(toolset, guard)
        govern(agent, guard)
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager: Any = None

    async def call_tool() -> Any:
        nonlocal manager
        if manager is None:
            manager = await ToolManager(toolset).for_run_step(context)
        return await manager.handle_call(ToolCallPart(TOOL, TEXT))

    async def run_agent() -> Any:
        return (await agent.run("Go.")).output

    return {
        "call": Way("`ToolManager.handle_call`", call_tool),
        "run": Way("`Agent.run`", run_agent),
    }


if __name__ == "__main__":
    main("pydantic-ai", "pydantic-ai-slim", ways)
