"""What governing costs in the OpenAI Agents SDK: a function tool's call, and an agent's run.

    python integrations/openai-agents/benchmarks/overhead.py --json docs/reference/speed.json

The model is a scripted one in this process, so a run is the SDK's own work and the tool's.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.tool_context import ToolContext
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from adjudge import ToolGuard
from adjudge_conformance.overhead import ANSWER, ARGUMENTS, TOOL, Way, Ways, main
from adjudge_openai_agents import govern

IDS = itertools.count()
TEXT = json.dumps(dict(ARGUMENTS))


@function_tool
async def refund(order: int, amount: float, to: str) -> str:
    """Refund an order."""
    return ANSWER


class Scripted(Model):
    """A model that calls the tool once, and then says what the tool said."""

    async def get_response(self, system_instructions, input, *args, **options) -> ModelResponse:
        """Answer without asking anybody."""
        said = input[-1].get("output")
        if said is None:
            item: Any = ResponseFunctionToolCall(
                call_id=f"call_{next(IDS)}", name=TOOL, arguments=TEXT, type="function_call"
            )
        else:
            text = ResponseOutputText(annotations=[], text=said, type="output_text")
            item = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args, **options) -> Any:
        """Nothing here is streamed."""
        raise NotImplementedError


def ways(guard: ToolGuard | None) -> Ways:
    """Make both ways, governed if there is a guard."""
    tool = refund if guard is None else govern(refund, guard)
    agent = Agent(name="Desk", model=Scripted(), tools=[refund])
    if guard is not None:
        govern(agent, guard)
    untraced = RunConfig(tracing_disabled=True)

    async def call_tool() -> Any:
        context = ToolContext(None, tool_name=TOOL, tool_call_id="call_1", tool_arguments=TEXT)
        return await tool.on_invoke_tool(context, TEXT)

    async def run_agent() -> Any:
        return (await Runner.run(agent, "Go.", run_config=untraced)).final_output

    return {
        "call": Way("`FunctionTool.on_invoke_tool`", call_tool),
        "run": Way("`Runner.run`", run_agent),
    }


if __name__ == "__main__":
    main("openai-agents", "openai-agents", ways)
