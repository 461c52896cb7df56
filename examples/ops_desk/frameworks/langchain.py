"""The desk's agent on LangChain: `create_agent`, its own tools, loop and model client."""

from __future__ import annotations

import asyncio
from inspect import iscoroutinefunction
from typing import Any

from desk import Desk
from endpoint import Caller, Endpoint
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from adjudge import CallContext, Principal, ToolGuard
from adjudge_langchain import ToolRun, govern

DISTRIBUTION = "langchain"


def run(desk: Desk, guard: ToolGuard, endpoint: Endpoint, caller: Caller, task: str) -> str:
    """Run the agent on a task and give its final answer."""
    model = ChatOpenAI(
        model=endpoint.model,
        base_url=endpoint.base_url,
        api_key=SecretStr(endpoint.api_key),
        use_responses_api=True,
    )
    tools = [
        StructuredTool.from_function(coroutine=tool)
        if iscoroutinefunction(tool)
        else StructuredTool.from_function(tool)
        for tool in desk.tools()
    ]
    agent = create_agent(model, tools, system_prompt=endpoint.instructions, context_schema=Caller)

    def who(run: ToolRun) -> CallContext:
        return CallContext(
            principal=Principal("user", run.context.user),
            environment="prod",
            workspace=str(desk.files),
            extra={"tenant": run.context.tenant},
        )

    govern(agent, guard, context=who)
    said: Any = {"messages": [{"role": "user", "content": task}]}
    # One of the tools is a coroutine function, so the run has an event loop.
    state = asyncio.run(agent.ainvoke(said, context=caller))
    return str(state["messages"][-1].text)
