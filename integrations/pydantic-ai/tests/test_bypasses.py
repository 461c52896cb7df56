"""Every way to a body that PydanticAI offers, driven; and the inventory that notices a new one."""

import asyncio
import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.agent import AgentRealtime, WrapperAgent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import ToolDenied
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from pydantic_ai.ui.vercel_ai import VercelAIAdapter

from adjudge import GovernError
from adjudge_conformance.inventory import uncovered, unlisted
from adjudge_pydantic_ai import GovernedToolset, delegate, govern

_RUNS = {
    "iter": "test_iter",
    "realtime": "test_realtime.py",
    "run": "test_async",
    "run_stream": "test_stream",
    "run_stream_events": "test_events",
    "run_stream_sync": "test_stream_sync",
    "run_sync": "test_sync",
    "to_cli": "test_every_adapter_goes_through_the_agents_own_methods",
    "to_cli_sync": "test_every_adapter_goes_through_the_agents_own_methods",
}
_ASKS = {
    "is_call_tools_node": "looks at a node",
    "is_end_node": "looks at a node",
    "is_model_request_node": "looks at a node",
    "is_user_prompt_node": "looks at a node",
    "output_json_schema": "makes a schema",
    "override": "changes what the next runs find, which they are governed with",
    "parallel_tool_call_execution_mode": "says how calls are run, which are governed",
    "system_prompt_parts": "makes texts",
    "using_sleep": "says how to wait",
    "using_thread_executor": "says where sync functions run",
}
_TOOLSET = {
    "apply": "visits toolsets",
    "approval_required": "makes a toolset, which a run finds governed",
    "defer_loading": "makes a toolset, which a run finds governed",
    "filtered": "makes a toolset, which a run finds governed",
    "for_run": "starts a run",
    "for_run_step": "goes on to a step",
    "get_instructions": "makes texts",
    "get_tool_for_tool_def": "looks up a tool, which is called through its toolset",
    "get_tools": "lists tools, which are called through their toolset",
    "include_return_schemas": "makes a toolset, which a run finds governed",
    "prefixed": "makes a toolset, which a run finds governed",
    "prepared": "makes a toolset, which a run finds governed",
    "renamed": "makes a toolset, which a run finds governed",
    "visit_and_replace": "replaces leaves, further in than the gate",
    "with_metadata": "makes a toolset, which a run finds governed",
}
_CALL = {"call_tool": "test_direct_call"}
REACHES: dict[str, dict[str, str]] = {
    "Agent": {**_RUNS, "to_web": "test_every_adapter_goes_through_the_agents_own_methods"},
    "WrapperAgent": _RUNS,
    "AgentRealtime": {"session": "test_realtime.py"},
    "FunctionToolset": _CALL,
    "WrapperToolset": _CALL,
    "MCPToolset": _CALL,
    "Tool": {},
    "ToolManager": {
        "execute_tool_call": "test_dispatch",
        "handle_call": "test_dispatch",
        "execute_output_tool_call": "test_output_function",
        "handle_output_tool_call": "test_output_function",
    },
}
HARMLESS: dict[str, dict[str, str]] = {
    "Agent": {
        **_ASKS,
        "from_file": "makes an agent",
        "from_spec": "makes an agent",
        "instructions": "registers a text",
        "instrument_all": "turns tracing on",
        "on_event": "registers a listener, the application's own code",
        "output_validator": "registers a check of outputs, the application's own code",
        "render_description": "makes a text",
        "set_mcp_sampling_model": "gives servers a model to ask, and no tools",
        "system_prompt": "registers a text",
        "tool": "registers a tool, which a run finds governed",
        "tool_plain": "registers a tool, which a run finds governed",
        "toolset": "registers a toolset, which a run finds governed",
    },
    "WrapperAgent": _ASKS,
    "AgentRealtime": {
        "answer_webrtc_offer": "settles a connection; the tools run in a session",
        "create_client_secret": "makes a credential; the tools run in a session",
        "hang_up": "ends a call",
    },
    "FunctionToolset": {
        **_TOOLSET,
        "add_function": "registers a tool, which a run finds governed",
        "add_tool": "registers a tool, which a run finds governed",
        "instructions": "registers a text",
        "tool": "registers a tool, which a run finds governed",
        "tool_for_tool_def": "looks up a tool, which is called through its toolset",
        "tool_plain": "registers a tool, which a run finds governed",
    },
    "WrapperToolset": _TOOLSET,
    "MCPToolset": {
        **_TOOLSET,
        "call_tool_for_app": "the application's own call, with no model: outside, says the README",
        "direct_call_tool": "the application's own call, with no model: outside, says the README",
        "get_prompt": "reads a text",
        "list_prompts": "lists",
        "list_resource_templates": "lists",
        "list_resources": "lists",
        "list_tools": "lists",
        "read_resource": "reads",
        "read_resource_for_app": "reads",
        "set_sampling_model": "gives the server a model to ask, and no tools",
        "tool_for_tool_def": "makes a tool, which is called through its toolset",
    },
    "Tool": {"from_schema": "makes a tool", "prepare_tool_def": "describes a tool"},
    "ToolManager": {
        "after_tool_execute": "passes a result through hooks",
        "for_run_step": "goes on to a step",
        "get_parallel_execution_mode": "says how calls are run",
        "get_tool_def": "looks up a tool",
        "is_sequential": "says how a call is run",
        "parallel_execution_mode": "says how calls are run",
        "resolve_deferred_tool_calls": "asks handlers, whose approvals lead to handle_call",
        "validate_output_tool_call": "validates",
        "validate_tool_call": "validates",
    },
}
"""By class, the public callables that reach a body and the test that drives each; and the rest."""

NOT_THERE = {
    "batch": "the framework runs one prompt at a time",
    "cache": "the framework keeps no results of tools",
}
DRIVEN = {
    "sync": "test_sync",
    "async": "test_async",
    "stream": "test_stream",
    "parallel": "test_parallel",
    "retry": "test_retry",
    "direct-call": "test_direct_call",
    "copied-tool": "test_copied_agent",
    "added-later": "test_added_later",
    "nested-agent": "test_nested_agent",
    "provider-side": "test_provider_side",
}
"""The suite's checklist: what is driven here, and what this framework does not have."""

DENIED = "[denied] not permitted by policy"


@pytest.fixture
def wipe(ran):
    """A tool that may not run."""

    def wipe(disk: str = "a") -> str:
        """Wipe a disk."""
        ran.append(disk)
        return "wiped"

    return wipe


@pytest.fixture
def guard(guard_of):
    """A guard that lets nothing but a nested agent run."""
    return guard_of({"id": "nested", "match": {"tool": "ask"}, "decision": "allow"}, rest="deny")


@pytest.fixture
def agent(stage, wipe, guard):
    """A governed agent that wants to wipe."""
    stage.script(a=[("wipe", "{}")], b=[("wipe", "{}")])
    return govern(stage.agent("a", tools=[wipe]), guard)


@pytest.fixture
def loop():
    """The loop that the blocking methods use, closed afterwards."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()


def test_sync(agent, stage, ran, loop):
    """`run_sync` goes through the guard."""
    agent.run_sync("Go.")

    assert ([DENIED], []) == (stage.said, ran)


def test_async(agent, stage, ran):
    """`run` goes through the guard."""
    asyncio.run(agent.run("Go."))

    assert ([DENIED], []) == (stage.said, ran)


def test_stream(agent, stage, ran):
    """`run_stream` goes through the guard."""

    async def run() -> None:
        async with agent.run_stream("Go.") as result:
            await result.get_output()

    asyncio.run(run())

    assert ([DENIED], []) == (stage.said, ran)


def test_stream_sync(agent, stage, ran, loop):
    """`run_stream_sync` goes through the guard."""
    result = agent.run_stream_sync("Go.")
    if hasattr(result, "__enter__"):
        with result as streamed:
            streamed.get_output()
    else:
        result.get_output()

    assert ([DENIED], []) == (stage.said, ran)


def test_events(agent, stage, ran):
    """`run_stream_events` goes through the guard."""

    async def run() -> None:
        async with agent.run_stream_events("Go.") as events:
            async for _ in events:
                pass

    asyncio.run(run())

    assert ([DENIED], []) == (stage.said, ran)


def test_iter(agent, stage, ran):
    """`iter` goes through the guard, node by node."""

    async def run() -> None:
        async with agent.iter("Go.") as run:
            async for _ in run:
                pass

    asyncio.run(run())

    assert ([DENIED], []) == (stage.said, ran)


def test_parallel(agent, stage, ran):
    """Runs of one agent at the same time go through the guard."""

    async def run() -> None:
        await asyncio.gather(*(agent.run(f"Go {number}.") for number in range(3)))

    asyncio.run(run())

    assert ([DENIED] * 3, []) == (stage.said, ran)


def test_retry(stage, guard, wipe, ran):
    """A call that the model corrects goes through the guard."""
    stage.script(a=[("wipe", '{"disk": 1}'), ("wipe", "{}")])

    stage.run(govern(stage.agent(tools=[wipe]), guard))

    assert DENIED == stage.said[1]
    assert [] == ran


def context_of(agent: Agent[Any, Any]) -> RunContext[Any]:
    """Make the context of a direct call."""
    return RunContext(deps=None, model=TestModel(), usage=None, agent=agent, run_id="r")


def test_direct_call(guard, wipe, ran):
    """A governed toolset that is called without an agent is governed."""
    toolset = GovernedToolset(FunctionToolset([wipe], max_retries=1), guard)

    async def call() -> Any:
        ctx = context_of(Agent())
        tools = await toolset.get_tools(ctx)
        return await toolset.call_tool("wipe", {"disk": "a"}, ctx, tools["wipe"])

    assert ToolDenied(DENIED) == asyncio.run(call())
    assert [] == ran


def test_dispatch(stage, guard, wipe, ran):
    """A tool that calls another through the run's tool manager goes through the guard."""
    answers = []

    async def ask(ctx: RunContext[Any]) -> str:
        """Dispatch."""
        answers.append(await ctx.tool_manager.handle_call(ToolCallPart("wipe", {}, "inner")))
        return "dispatched"

    stage.script(a=[("ask", "{}")])

    stage.run(govern(stage.agent(tools=[ask, wipe]), guard))

    assert (["dispatched"], [ToolDenied(DENIED)], []) == (stage.said, answers, ran)


def test_copied_agent(agent, stage, ran):
    """Copies of a governed agent are governed."""
    stage.run(copy.copy(agent))

    assert ([DENIED], []) == (stage.said, ran)


def test_copied_toolset(stage, guard, wipe, ran):
    """Copies of a governed toolset are governed."""
    toolset = GovernedToolset(FunctionToolset([wipe]), guard)
    stage.script(a=[("wipe", "{}")])

    for each in (copy.copy(toolset), dataclasses.replace(toolset)):
        stage.run(stage.agent(toolsets=[each]))

    assert ([DENIED] * 1, []) == (list(set(stage.said)), ran)


def test_added_later(stage, guard, wipe, ran):
    """A tool that an agent gets after governing is governed."""
    stage.script(a=[[("wipe", "{}"), ("scrub", "{}"), ("erase", "{}")]])
    agent = govern(stage.agent(), guard)
    agent.tool_plain(wipe)
    agent.tool(name="scrub")(lambda ctx: ran.append("scrubbed"))

    @agent.toolset
    def more(ctx: RunContext[Any]) -> FunctionToolset[Any]:
        return FunctionToolset([Tool(wipe, name="erase")])

    stage.run(agent)

    assert ([DENIED] * 3, []) == (stage.said, ran)


@pytest.mark.parametrize("how", ["delegate", "run"])
def test_nested_agent(how, stage, guard, wipe, ran):
    """An agent that a tool runs is governed by the guard that it was given to."""
    stage.script(a=[("ask", "{}")], b=[("wipe", "{}")])
    inner = govern(stage.agent("b", tools=[wipe]), guard)

    async def ask(ctx: RunContext[Any]) -> str:
        """Ask the other agent."""
        if how == "delegate":
            return str(await delegate(ctx, inner, "Go."))
        return str((await inner.run("Go.", usage=ctx.usage)).output)

    stage.run(govern(stage.agent("a", tools=[ask]), guard))

    assert [DENIED, "b is done."] == stage.said
    assert [] == ran


def test_output_function(stage, guard, ran):
    """An output function is a body, and goes through the guard."""

    def finish(disk: str) -> str:
        """Finish by wiping."""
        ran.append(disk)
        return "wiped"

    stage.script(a=[("final_result", '{"disk": "a"}')] * 3)

    with pytest.raises(UnexpectedModelBehavior):
        stage.run(govern(stage.agent(output_type=finish), guard))

    assert [] == ran


def test_provider_side(guard):
    """A tool at the provider, where nothing can stand, is refused."""
    with pytest.raises(GovernError):
        govern(Agent(TestModel(), capabilities=[NativeTool(WebSearchTool())]), guard)


def test_every_adapter_goes_through_the_agents_own_methods(agent, stage, ran):
    """What serves an agent to a client runs it by its methods, and so through the guard."""
    body = {
        "trigger": "submit-message",
        "id": "1",
        "messages": [{"id": "2", "role": "user", "parts": [{"type": "text", "text": "Go."}]}],
    }

    async def run() -> None:
        request = VercelAIAdapter.build_run_input(json.dumps(body).encode())
        async for _ in VercelAIAdapter(agent, request).run_stream():
            pass

    asyncio.run(run())

    assert ([DENIED], []) == (stage.said, ran)


def test_every_public_callable_is_listed():
    """Law 3: a callable that a release adds fails until somebody has looked at it."""
    tests = {name for name in globals() if name.startswith("test_")}

    assert [] == unlisted(
        [
            Agent,
            WrapperAgent,
            AgentRealtime,
            FunctionToolset,
            WrapperToolset,
            MCPToolset,
            Tool,
            ToolManager,
        ],
        reaches=REACHES,
        harmless=HARMLESS,
        driven=tests | {file.name for file in Path(__file__).parent.glob("test_*.py")},
    )


def test_the_checklist_is_covered():
    """Each bypass of the checklist is driven here, or a sentence says that there is none."""
    assert [] == uncovered(DRIVEN, not_there=NOT_THERE)
    assert set(DRIVEN.values()) <= globals().keys()
