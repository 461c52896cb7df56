"""Every way to a body that the SDK offers, driven; and the inventory that notices a new one."""

import asyncio
import copy
import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    Handoff,
    RunConfig,
    RunContextWrapper,
    Runner,
    WebSearchTool,
    function_tool,
)
from agents.mcp import MCPServerStdio
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext

from adjudge import GovernError
from adjudge_conformance.case import load_cases
from adjudge_conformance.inventory import uncovered, unlisted
from adjudge_openai_agents import govern

REACHES = {
    "Agent": {
        "as_tool": "test_nested_agent",
        "clone": "test_clone",
        "get_all_tools": "test_tools_of_a_governed_agent",
        "get_mcp_tools": "test_mcp_tools_of_a_governed_agent",
    },
    "Runner": {
        "run": "test_async",
        "run_streamed": "test_stream",
        "run_sync": "test_sync",
    },
    "Handoff": {},
    "FunctionTool": {},
}
HARMLESS = {
    "Agent": {
        "get_prompt": "reads the prompt's configuration",
        "get_system_prompt": "reads the instructions",
    },
    "Handoff": {
        "default_tool_description": "makes a text",
        "default_tool_name": "makes a text",
        "get_transfer_message": "makes a text",
    },
}
"""By class, the public callables that reach a body and the test that drives each; and the rest."""

FIELDS = {
    "on_invoke_tool": "is the governed way",
    "is_enabled": "says whether the tool is offered",
    "tool_input_guardrails": "come before the body, which is judged after them",
    "tool_output_guardrails": "see the answer",
    "needs_approval": "comes before the body, which is judged after it",
    "timeout_error_function": "makes a text",
    "custom_data_extractor": "sees the answer",
}
"""The fields of a `FunctionTool` that hold callables, and what each is to a body."""

NOT_THERE = {
    "batch": "the SDK runs one input at a time",
    "retry": "the SDK never invokes a tool again by itself; the model may, and that is a new call",
    "cache": "the SDK keeps no results of tools",
}
DRIVEN = {
    "sync": "test_sync",
    "async": "test_async",
    "stream": "test_stream",
    "parallel": "test_parallel",
    "direct-call": "test_direct_call",
    "copied-tool": "test_copied_tool",
    "added-later": "test_added_later",
    "nested-agent": "test_nested_agent",
    "provider-side": "test_provider_side",
}
"""The suite's checklist: what is driven here, and what this SDK does not have."""

DENIED = "[denied] not permitted by policy"


@pytest.fixture
def ran():
    """Where the body leaves its trace."""
    return []


@pytest.fixture
def wipe(ran):
    """A tool that may not run."""

    @function_tool
    def wipe(disk: str = "a") -> str:
        """Wipe a disk."""
        ran.append(disk)
        return "wiped"

    return wipe


@pytest.fixture
def guard(guard_of):
    """A guard that lets nothing but a nested agent run."""
    return guard_of({"id": "nested", "match": {"tool": "b"}, "decision": "allow"}, rest="deny")


@pytest.fixture
def agent(stage, wipe, guard):
    """A governed agent that wants to wipe."""
    stage.script(a=[("wipe", "{}")], b=[("wipe", "{}")])
    return govern(stage.agent("a", tools=[wipe]), guard)


def context_of(tool) -> ToolContext[Any]:
    """Make the context of a direct call."""
    return ToolContext(None, tool_name="other", tool_call_id="c", tool_arguments="{}")


def call_directly(tool) -> Any:
    """Call a tool object as nobody but an application would."""
    return asyncio.run(tool.on_invoke_tool(context_of(tool), "{}"))


CONFIG = RunConfig(tracing_disabled=True)


def test_sync(agent, stage, ran):
    """The blocking entry point goes through the guard."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        Runner.run_sync(agent, "Go.", run_config=CONFIG)
    finally:
        asyncio.set_event_loop(None)
        loop.close()

    assert ([DENIED], []) == (stage.said, ran)


def test_async(agent, stage, ran):
    """The coroutine entry point goes through the guard."""
    asyncio.run(Runner.run(agent, "Go.", run_config=CONFIG))

    assert ([DENIED], []) == (stage.said, ran)


def test_stream(agent, stage, ran):
    """The streaming entry point goes through the guard."""

    async def run() -> None:
        result = Runner.run_streamed(agent, "Go.", run_config=CONFIG)
        async for _ in result.stream_events():
            pass

    asyncio.run(run())

    assert ([DENIED], []) == (stage.said, ran)


def test_parallel(agent, stage, ran):
    """Runs of one agent at the same time go through the guard."""

    async def run() -> None:
        await asyncio.gather(
            *(Runner.run(agent, f"Go {number}.", run_config=CONFIG) for number in range(3))
        )

    asyncio.run(run())

    assert ([DENIED] * 3, []) == (stage.said, ran)


def test_direct_call(wipe, guard, ran):
    """A governed tool object that is called without an agent is governed under its own name."""
    governed = govern(wipe, guard)

    assert DENIED == call_directly(governed)
    assert DENIED == asyncio.run(
        invoke_function_tool(function_tool=governed, context=context_of(governed), arguments="{}")
    )
    assert [] == ran


def test_copied_tool(wipe, guard, ran):
    """Copies of a governed tool are governed, renamed ones under the name that was governed."""
    governed = govern(wipe, guard)
    copies = [
        copy.copy(governed),
        copy.deepcopy(governed),
        dataclasses.replace(governed, name="b"),
        FunctionTool(
            name="b",
            description="",
            params_json_schema=governed.params_json_schema,
            on_invoke_tool=governed.on_invoke_tool,
        ),
    ]

    assert [DENIED] * 4 == [call_directly(each) for each in copies]
    assert [] == ran


def test_clone(agent, stage, ran):
    """A clone of a governed agent is governed."""
    stage.run(agent.clone(instructions="Wipe!"))

    assert ([DENIED], []) == (stage.said, ran)


def test_added_later(stage, guard, wipe, ran):
    """A tool that an agent gets after governing is governed."""
    stage.script(a=[("wipe", "{}")])
    agent = govern(stage.agent("a"), guard)
    agent.tools = [wipe]

    stage.run(agent)

    assert ([DENIED], []) == (stage.said, ran)


def test_nested_agent(stage, guard, wipe, ran):
    """An agent as a tool of a governed one is governed."""
    stage.script(a=[("b", '{"input": "go"}')], b=[("wipe", "{}")])
    inner = stage.agent("b", tools=[wipe])

    stage.run(govern(stage.agent("a", tools=[inner.as_tool("b", "")]), guard))

    assert [DENIED, "b is done."] == stage.said
    assert [] == ran


def test_tools_of_a_governed_agent(agent, ran):
    """What a governed agent answers to `get_all_tools` is governed."""
    (tool,) = asyncio.run(agent.get_all_tools(RunContextWrapper(None)))

    assert DENIED == call_directly(tool)
    assert [] == ran


def test_mcp_tools_of_a_governed_agent(guard, tmp_path):
    """What a governed agent answers to `get_mcp_tools` is governed."""
    ran = tmp_path / "ran.txt"

    async def run() -> str:
        script = str(Path(__file__).with_name("mcp_notes.py"))
        params = {"command": sys.executable, "args": [script, str(ran)]}
        async with MCPServerStdio(params, name="notes") as server:
            agent = govern(Agent(name="a", mcp_servers=[server]), guard)
            (tool,) = await agent.get_mcp_tools(RunContextWrapper(None))
            return await tool.on_invoke_tool(context_of(tool), '{"name": "plan"}')

    assert DENIED == asyncio.run(run())
    assert not ran.exists()


def test_provider_side(guard):
    """A tool at the provider, where nothing can stand, is refused."""
    with pytest.raises(GovernError):
        govern(Agent(name="a", tools=[WebSearchTool()]), guard)


def test_every_public_callable_is_listed():
    """Law 3: a callable that a release of the SDK adds fails until somebody has looked at it."""
    tests = {name for name in globals() if name.startswith("test_")}

    assert [] == unlisted(
        [Agent, Runner, Handoff, FunctionTool],
        reaches=REACHES,
        harmless=HARMLESS,
        driven=tests | {case.id for case in load_cases()},
    )


def test_every_callable_field_of_a_tool_is_listed():
    """Law 3: so does a field of a tool that holds a callable."""
    callables = {
        field.name
        for field in dataclasses.fields(FunctionTool)
        if not field.name.startswith("_")
        and any(word in str(field.type) for word in ("Callable", "Function", "Guardrail"))
    }

    assert {"on_invoke_tool"} <= callables <= FIELDS.keys()


def test_the_checklist_is_covered():
    """Each bypass of the checklist is driven here, or a sentence says that there is none."""
    assert [] == uncovered(DRIVEN, not_there=NOT_THERE)
    assert set(DRIVEN.values()) <= globals().keys()
