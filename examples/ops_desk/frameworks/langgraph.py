"""The desk's agent on LangGraph: a graph of one's own, and LangChain's tools and model client."""

from __future__ import annotations

import asyncio
from inspect import iscoroutinefunction
from typing import Any

from desk import Desk
from endpoint import Caller, Endpoint
from langchain_core.messages import SystemMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import SecretStr

from adjudge import CallContext, Principal, ToolGuard
from adjudge_langgraph import ToolRun, govern

DISTRIBUTION = "langgraph"


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
    bound = model.bind_tools(tools)

    async def ask(state: MessagesState) -> dict[str, Any]:
        said = [SystemMessage(endpoint.instructions), *state["messages"]]
        return {"messages": [await bound.ainvoke(said)]}

    builder = StateGraph(MessagesState, context_schema=Caller)
    builder.add_node("model", ask).add_node("tools", ToolNode(tools))
    builder.add_edge(START, "model").add_edge("tools", "model")
    builder.add_conditional_edges("model", tools_condition)

    def who(run: ToolRun) -> CallContext:
        return CallContext(
            principal=Principal("user", run.context.user),
            environment="prod",
            workspace=str(desk.files),
            extra={"tenant": run.context.tenant},
        )

    graph = govern(builder.compile(), guard, context=who)
    said: Any = {"messages": [{"role": "user", "content": task}]}
    # One of the tools is a coroutine function, so the run has an event loop.
    state = asyncio.run(graph.ainvoke(said, context=caller))
    return str(state["messages"][-1].text)
