"""Agents in their graph: whatever a run reaches from a governed agent is governed."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    Handoff,
    RunConfig,
    RunContextWrapper,
    Runner,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents.mcp import MCPServerStdio

from adjudge import GovernError
from adjudge_openai_agents import govern

DENIED = "[denied] not permitted by policy"
NO_LOOK = {"id": "no", "match": {"tool": "look"}, "decision": "deny"}


@pytest.fixture
def ran():
    """Where the tool's body leaves its trace."""
    return []


@pytest.fixture
def look(ran):
    """A tool that may not run."""

    @function_tool
    def look() -> str:
        """Look."""
        ran.append("look")
        return "seen"

    return look


class TestHandoffs:
    def hand_off(self, stage, guard, make):
        """Run an agent that hands off to one that calls `look`."""
        stage.script(a=[("transfer_to_b", "{}")], b=[("look", "{}")])
        stage.run(govern(stage.agent("a", handoffs=[make()]), guard))
        return stage.said[-1]

    def test_to_an_agent(self, stage, guard_of, look, ran):
        """An agent in `handoffs` is governed."""
        told = self.hand_off(stage, guard_of(NO_LOOK), lambda: stage.agent("b", tools=[look]))

        assert (DENIED, []) == (told, ran)

    def test_by_a_handoff_object(self, stage, guard_of, look, ran):
        """So is the agent behind `handoff(...)`."""
        inner = []

        def make() -> Handoff:
            inner.append(stage.agent("b", tools=[look]))
            return handoff(inner[0])

        told = self.hand_off(stage, guard_of(NO_LOOK), make)

        assert (DENIED, []) == (told, ran)

    def test_to_an_agent_made_on_the_way(self, stage, guard_of, look, ran):
        """And one that exists only once the handoff happens."""

        async def invoke(context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
            return stage.agent("b", tools=[look])

        told = self.hand_off(
            stage,
            guard_of(NO_LOOK),
            lambda: Handoff("transfer_to_b", "Hand off.", {}, invoke, "b"),
        )

        assert (DENIED, []) == (told, ran)

    def test_to_an_agent_that_cannot_be_governed(self, stage, guard_of):
        """Law 3: what becomes visible only then is refused then, and ends the run."""

        async def invoke(context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
            return stage.agent("b", tools=[WebSearchTool()])

        with pytest.raises(GovernError):
            self.hand_off(stage, guard_of(), lambda: Handoff("transfer_to_b", "", {}, invoke, "b"))

    def test_added_after_governing(self, stage, guard_of, look, ran):
        """A handoff that an agent gets later is governed before it is offered."""
        stage.script(a=[("transfer_to_b", "{}")], b=[("look", "{}")])
        agent = govern(stage.agent("a"), guard_of(NO_LOOK))
        agent.handoffs.append(stage.agent("b", tools=[look]))

        stage.run(agent)

        assert (DENIED, []) == (stage.said[-1], ran)

    def test_an_agent_reached_by_its_handoff_is_governed_on_its_own(
        self, stage, guard_of, look, ran
    ):
        """Governing is in place: the inner agent can be run by itself, and is governed."""
        stage.script(b=[("look", "{}")])
        inner = stage.agent("b", tools=[look])
        govern(stage.agent("b", handoffs=[handoff(inner)]), guard_of(NO_LOOK))

        stage.run(inner)

        assert ([DENIED], []) == (stage.said, ran)


class TestAgentsAsTools:
    def test_the_inner_agents_tools_are_governed(self, stage, guard_of, look, ran):
        """Law 3: an agent used as a tool is reached through the tool."""
        stage.script(a=[("b", '{"input": "go"}')], b=[("look", "{}")])
        inner = stage.agent("b", tools=[look])

        stage.run(govern(stage.agent("a", tools=[inner.as_tool("b", "")]), guard_of(NO_LOOK)))

        assert [DENIED, "b is done."] == stage.said
        assert [] == ran

    def test_using_it_is_a_call_of_its_own(self, stage, guard_of, look, ran):
        """The agent as a tool is judged like any tool, on its input."""
        stage.script(a=[("b", '{"input": "secret"}')], b=[("look", "{}")])
        inner = stage.agent("b", tools=[look])
        rule = {"id": "s", "match": {"tool": "b", "args.input": "secret"}, "decision": "deny"}

        stage.run(govern(stage.agent("a", tools=[inner.as_tool("b", "")]), guard_of(rule)))

        assert ([DENIED], []) == (stage.said, ran)

    def test_governing_the_tool_governs_its_agent(self, stage, guard_of, look, ran):
        """A governed tool in an agent that is not governed still leads to governed tools."""
        stage.script(a=[("b", '{"input": "go"}')], b=[("look", "{}")])
        tool = govern(stage.agent("b", tools=[look]).as_tool("b", ""), guard_of(NO_LOOK))

        stage.run(stage.agent("a", tools=[tool]))

        assert [DENIED, "b is done."] == stage.said
        assert [] == ran

    def test_unreadable_input_is_the_sdks_to_answer(self, stage, guard_of, record):
        """Clause 2: text that is no JSON gets the SDK's own answer."""
        stage.script(a=[("b", "{")])
        inner = stage.agent("a").as_tool("b", "")

        stage.run(govern(stage.agent("a", tools=[inner]), guard_of()))

        assert not stage.said[0].startswith("[denied]")
        assert ["step.proposed", "action.failed"] == record.kinds


class TestLaterTools:
    def test_a_tool_added_after_governing_is_governed(self, stage, guard_of, look, ran):
        """The SDK asks for the tools before each turn."""
        stage.script(a=[("look", "{}")])
        agent = govern(stage.agent("a"), guard_of(NO_LOOK))
        agent.tools.append(look)

        stage.run(agent)

        assert ([DENIED], []) == (stage.said, ran)

    def test_a_tool_added_during_the_run_is_governed(self, stage, guard_of, look, ran):
        """So it is for one that another tool adds."""

        @function_tool
        def fetch() -> str:
            """Fetch another tool."""
            agent.tools.append(look)
            return "fetched"

        stage.script(a=[("fetch", "{}"), ("look", "{}")])
        agent = govern(stage.agent("a", tools=[fetch]), guard_of(NO_LOOK))

        stage.run(agent)

        assert ["fetched", DENIED] == stage.said
        assert [] == ran

    def test_a_tool_at_the_provider_added_later_ends_the_run(self, stage, guard_of):
        """Law 3: what cannot be governed is refused at the next request."""
        stage.script(a=[])
        agent = govern(stage.agent("a"), guard_of())
        agent.tools.append(WebSearchTool())

        with pytest.raises(GovernError):
            stage.run(agent)

    def test_a_clone_with_other_tools_is_governed(self, stage, guard_of, look, ran):
        """A clone keeps the guard, whatever it changes."""
        stage.script(a=[("look", "{}")])
        agent = govern(stage.agent("a"), guard_of(NO_LOOK))

        stage.run(agent.clone(tools=[look]))

        assert ([DENIED], []) == (stage.said, ran)

    def test_two_agents_may_share_a_tool(self, stage, guard_of, look, ran):
        """Governing one agent leaves the tool object for another."""
        stage.script(a=[("look", "{}")], b=[("look", "{}")])
        govern(stage.agent("a", tools=[look]), guard_of(NO_LOOK))

        stage.run(stage.agent("b", tools=[look]))

        assert (["seen"], ["look"]) == (stage.said, ran)


class TestMCPServers:
    @pytest.mark.parametrize(
        ("text", "said", "log"),
        [
            ('{"name": "plan"}', "erased plan", "erase plan False\n"),
            ('{"name": "plan", "hard": true}', "[denied] softly", ""),
        ],
    )
    def test_a_servers_tools_are_governed(self, stage, guard_of, tmp_path, text, said, log):
        """A tool of a local MCP server is judged under its server's name as namespace."""
        rule = {
            "id": "soft",
            "match": {"tool": "erase", "tool.namespace": "notes", "args.hard": True},
            "decision": "deny",
            "reason": "softly",
        }
        ran = tmp_path / "ran.txt"
        ran.touch()
        stage.script(a=[("erase", text)])

        async def run() -> None:
            script = str(Path(__file__).with_name("mcp_notes.py"))
            params = {"command": sys.executable, "args": [script, str(ran)]}
            async with MCPServerStdio(params, name="notes") as server:
                agent = govern(stage.agent("a", mcp_servers=[server]), guard_of(rule))
                await Runner.run(agent, "Go.", run_config=RunConfig(tracing_disabled=True))

        asyncio.run(run())

        assert said in stage.said[0]
        assert log == ran.read_text()


def test_agents_behind_tools_that_a_subclass_adds(stage, guard_of, look, ran):
    """Law 3: agents as tools that only `get_all_tools` of a subclass names are governed too."""
    stage.script(a=[("ask_b", '{"input": "look"}')], b=[("look", "{}")])
    inner = stage.agent("b", tools=[look])

    class Custom(Agent):
        async def get_all_tools(self, run_context):
            """Add a tool of its own."""
            return [*await super().get_all_tools(run_context), inner.as_tool("ask_b", "Ask b.")]

    stage.run(govern(Custom(name="a", model=stage.model("a")), guard_of(NO_LOOK)))

    assert DENIED in stage.said
    assert [] == ran


@pytest.mark.parametrize("what", ["instructions", "prompt"])
def test_handoffs_that_dynamic_instructions_add(stage, guard_of, look, ran, what):
    """Law 3: the SDK reads the handoffs after the instructions, and what it finds is governed."""
    stage.script(a=[("transfer_to_b", "{}")], b=[("look", "{}")])
    agent = stage.agent("a")
    other = stage.agent("b", tools=[look])

    def add() -> None:
        if other not in agent.handoffs:
            agent.handoffs.append(other)

    def instruct(_context, _agent) -> str:
        add()
        return "Be kind."

    def prompt(_data) -> Any:
        add()
        return {"id": "stored"}

    setattr(agent, what, instruct if what == "instructions" else prompt)
    stage.run(govern(agent, guard_of(NO_LOOK)))

    assert (DENIED, []) == (stage.said[-1], ran)
