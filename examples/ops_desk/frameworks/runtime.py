"""The desk's agent on Adjudge's own loop: a model behind the Responses API, and `run_agent`."""

from __future__ import annotations

import asyncio
import inspect

from desk import Desk
from endpoint import Caller, Endpoint

from adjudge import CallContext, Principal, ToolDef, ToolGuard, ToolSet
from adjudge_runtime import run_agent
from adjudge_runtime.models import OpenAIAgent

DISTRIBUTION = "adjudge-runtime"


def run(desk: Desk, guard: ToolGuard, endpoint: Endpoint, caller: Caller, task: str) -> str:
    """Run the agent on a task and give its final answer."""
    tools = ToolSet(
        [ToolDef(each.__name__, inspect.getdoc(each) or "", each) for each in desk.tools()]
    )
    who = CallContext(
        principal=Principal("user", caller.user),
        environment="prod",
        workspace=str(desk.files),
        extra={"tenant": caller.tenant},
    )

    async def work() -> str:
        async with OpenAIAgent(
            tools=tools,
            model=endpoint.model,
            system=endpoint.instructions,
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
        ) as agent:
            done = await run_agent(agent, task, tools=tools, guard=guard, context=lambda: who)
            return str(done.final_answer)

    return asyncio.run(work())
