"""Every kind of toolset, with a call that runs and one that is stopped."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport
from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import SkipToolValidation
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.tools import DeferredToolRequests, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    ExternalToolset,
    FilteredToolset,
    FunctionToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    WrapperToolset,
)

from adjudge_pydantic_ai import GovernedToolset, govern

DENIED = "[denied] not permitted by policy"
RULE = {"id": "no", "match": {"args.name": "plan"}, "decision": "deny"}


async def as_is(ctx: RunContext[Any], tools: list[ToolDefinition]) -> list[ToolDefinition]:
    """Prepare nothing."""
    return tools


def function(tool: Any) -> AbstractToolset[Any]:
    """Give a function toolset of one tool."""
    return FunctionToolset([tool])


KINDS = {
    "function": lambda tool: (function(tool), "erase"),
    "combined": lambda tool: (CombinedToolset([function(tool)]), "erase"),
    "filtered": lambda tool: (FilteredToolset(function(tool), lambda ctx, tool: True), "erase"),
    "prepared": lambda tool: (PreparedToolset(function(tool), as_is), "erase"),
    "renamed": lambda tool: (RenamedToolset(function(tool), {"wipe": "erase"}), "wipe"),
    "prefixed": lambda tool: (PrefixedToolset(function(tool), "my"), "my_erase"),
    "metadata": lambda tool: (function(tool).with_metadata(kind="notes"), "erase"),
    "wrapper": lambda tool: (WrapperToolset(function(tool)), "erase"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_runs_and_is_stopped(kind, stage, guard_of, erase, ran, record):
    """Law 3: the calls of every kind of toolset are judged, under the names the model knows."""
    toolset, name = KINDS[kind](erase)
    stage.script(a=[(name, '{"name": "list"}'), (name, '{"name": "plan"}')])

    stage.run(govern(stage.agent(toolsets=[toolset]), guard_of(RULE)))

    assert ["erased list", DENIED] == stage.said
    assert [("list", False)] == ran
    assert [name, name] == [each["tool"] for each in record.bodies("step.proposed")]


WAYS = {
    "tools": lambda tool: ({"tools": [tool]}, {}),
    "Tool": lambda tool: ({"tools": [Tool(tool)]}, {}),
    "dynamic toolset": lambda tool: ({"toolsets": [lambda ctx: function(tool)]}, {}),
    "for one run": lambda tool: ({}, {"toolsets": [function(tool)]}),
    "of a capability": lambda tool: ({"capabilities": [HasTools(function(tool))]}, {}),
}


class HasTools(AbstractCapability[Any]):
    """A capability that brings a toolset along."""

    def __init__(self, toolset: AbstractToolset[Any]) -> None:
        self.toolset = toolset

    def get_toolset(self) -> AbstractToolset[Any]:
        """Give it."""
        return self.toolset


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_registering_runs_and_is_stopped(way, stage, guard_of, erase, ran):
    """Law 3: it does not matter how an agent comes by a tool."""
    fields, options = WAYS[way](erase)
    stage.script(a=[("erase", '{"name": "list"}'), ("erase", '{"name": "plan"}')])

    stage.run(govern(stage.agent(**fields), guard_of(RULE)), **options)

    assert ["erased list", DENIED] == stage.said
    assert [("list", False)] == ran


def test_tools_that_stand_in_for_a_while_are_judged(stage, guard_of, erase, ran):
    """Law 3: `override` takes no tool out of the guard's sight."""
    stage.script(a=[("erase", '{"name": "plan"}'), ("erase", '{"name": "plan"}')])
    agent = govern(stage.agent(), guard_of(RULE))

    with agent.override(tools=[erase]):
        stage.run(agent)
    with agent.override(toolsets=[function(erase)]):
        stage.run(agent)

    assert [DENIED, DENIED] == stage.said
    assert [] == ran


class TestMCP:
    @pytest.fixture
    def log(self, tmp_path) -> Path:
        """Where the server says what it ran."""
        return tmp_path / "ran.txt"

    @pytest.fixture
    def notes(self, log) -> MCPToolset[Any]:
        """The server's tools."""
        script = str(Path(__file__).with_name("mcp_notes.py"))
        transport = StdioTransport(sys.executable, [script, str(log)])
        return MCPToolset(transport, id="notes", init_timeout=60)

    def test_a_servers_tool_runs_and_is_stopped(self, stage, guard_of, notes, log, record):
        """Law 3: tools of an MCP server are judged under the server's name."""
        rule = {
            "id": "no",
            "match": {"tool": "erase", "tool.namespace": "notes", "args.name": "plan"},
            "decision": "deny",
        }
        stage.script(a=[("erase", '{"name": "list"}'), ("erase", '{"name": "plan"}')])

        stage.run(govern(stage.agent(toolsets=[notes]), guard_of(rule)))

        assert ["erased list", DENIED] == stage.said
        assert "erase list False\n" == log.read_text()
        assert ["notes", "notes"] == [e["namespace"] for e in record.bodies("step.proposed")]

    def test_the_servers_defaults_are_judged(self, stage, guard_of, notes, log):
        """Law 5: what the server fills in is known from its schema, and left to it."""
        rule = {"id": "soft", "match": {"args.hard": False}, "decision": "deny"}
        stage.script(a=[("erase", '{"name": "list"}')])

        stage.run(govern(stage.agent(toolsets=[notes]), guard_of(rule)))

        assert [DENIED] == stage.said
        assert not log.exists()

    def test_a_transform_reaches_the_server(self, stage, guard_of, notes, log):
        """Clause 19: the server gets the rewritten argument, and the others as they were sent."""
        rule = {
            "id": "copy",
            "match": {"tool": "erase"},
            "decision": "transform",
            "transform": {"path": "args.name", "set": "copy"},
        }
        stage.script(a=[("erase", '{"name": "list"}')])

        stage.run(govern(stage.agent(toolsets=[notes]), guard_of(rule)))

        assert ["erased copy"] == stage.said
        assert "erase copy False\n" == log.read_text()

    def test_two_servers_tools_of_one_name_are_told_apart(self, stage, guard_of, notes, log):
        """A policy for one server's tool is none for another's (B033)."""
        rule = {
            "id": "mine",
            "match": {"tool": "other_erase", "tool.namespace": "mine"},
            "decision": "allow",
        }
        stage.script(a=[("other_erase", '{"name": "list"}')])

        stage.run(
            govern(stage.agent(toolsets=[notes.prefixed("other")]), guard_of(rule, rest="deny"))
        )

        assert [DENIED] == stage.said
        assert not log.exists()


def external(*names: str) -> ExternalToolset[Any]:
    """Give tools that are executed elsewhere."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return ExternalToolset(
        [ToolDefinition(name=name, parameters_json_schema=schema) for name in names]
    )


class TestExternal:
    def run(self, stage, guard, text='{"name": "plan"}'):
        """Run an agent that calls an external tool once."""
        stage.script(a=[("erase", text)])
        agent = stage.agent(toolsets=[external("erase")], output_type=[str, DeferredToolRequests])
        return stage.run(govern(agent, guard))

    def test_an_allowed_call_is_handed_out(self, stage, guard_of, record):
        """A call that is executed elsewhere is suspended: what becomes of it is not seen here."""
        result = self.run(stage, guard_of())

        assert ["erase"] == [call.tool_name for call in result.output.calls]
        assert ["step.proposed", "policy.evaluated", "action.suspended"] == record.kinds

    def test_a_denied_call_is_never_handed_out(self, stage, guard_of, record):
        """Law 3: a denial stops a call before anybody outside sees it."""
        result = self.run(stage, guard_of(RULE))

        assert "a is done." == result.output
        assert ['{"error":"[denied] not permitted by policy"}'] == stage.said
        assert ["step.proposed", "policy.evaluated", "action.denied"] == record.kinds

    def test_a_transform_cannot_reach_what_is_executed_elsewhere(self, stage, guard_of, record):
        """Law 5: the model's own arguments go out, so a call that needs others does not."""
        rule = {
            "id": "copy",
            "match": {"tool": "erase"},
            "decision": "transform",
            "transform": {"path": "args.name", "set": "copy"},
        }

        result = self.run(stage, guard_of(rule))

        assert "a is done." == result.output
        assert ["action.denied"] == record.ends

    @pytest.mark.parametrize("text", ['{"name": "a", "name": "b"}', '{"name": "\\ud800"}'])
    def test_refused_arguments_are_never_handed_out(self, text, stage, guard_of, record):
        """Clause 2: what cannot be read in one way is denied under any policy."""
        result = self.run(stage, guard_of(), text)

        assert "a is done." == result.output
        assert ["refused_arguments"] == [each["code"] for each in record.bodies("action.denied")]
        assert ["action.denied"] == record.ends

    def test_validation_that_another_capability_skips_is_no_way_out(self, stage, guard_of, record):
        """Law 3: a call that never comes to the validation is judged when it would leave."""

        class Skips(AbstractCapability[Any]):
            async def before_tool_validate(self, ctx, *, call, tool_def, args):
                raise SkipToolValidation({"name": "plan"})

        stage.script(a=[("erase", '{"name": "plan"}')])
        agent = stage.agent(
            toolsets=[external("erase")],
            output_type=[str, DeferredToolRequests],
            capabilities=[Skips()],
        )

        result = stage.run(govern(agent, guard_of(RULE)))

        assert "a is done." == result.output
        assert ["action.denied"] == record.ends

    def test_a_person_is_asked_before_it_is_handed_out(self, stage, guard_of, record):
        """A handler's refusal stops a call that would be executed elsewhere."""
        result = self.run(stage, guard_of(rest="approve_required"))

        assert "a is done." == result.output
        assert ["action.denied"] == record.ends


class TestGovernedToolset:
    def test_its_calls_run_and_are_stopped(self, stage, guard_of, erase, ran, record):
        """A toolset that is governed alone judges its calls."""
        stage.script(a=[("erase", '{"name": "list"}'), ("erase", '{"name": "plan"}')])
        governed = GovernedToolset(function(erase), guard_of(RULE))

        stage.run(stage.agent(toolsets=[governed]))

        assert ["erased list", DENIED] == stage.said
        assert [("list", False)] == ran
        assert ["action.completed", "action.denied"] == record.ends

    def test_refused_arguments_are_denied(self, stage, guard_of, erase, ran, record):
        """Clause 2: without a capability the model's text is read from the history."""
        stage.script(a=[("erase", '{"name": "a", "name": "b"}')])

        stage.run(stage.agent(toolsets=[GovernedToolset(function(erase), guard_of())]))

        assert [] == ran
        assert ["refused_arguments"] == [each["code"] for each in record.bodies("action.denied")]

    def test_inside_a_governed_agent_a_call_is_judged_once(self, stage, guard_of, erase, record):
        """Law 7: two gates of one guard are one, where the second sees what the first judged."""
        guard = guard_of()
        stage.script(a=[("erase", '{"name": "list"}')])
        toolset = GovernedToolset(function(erase), guard).prefixed("my")
        stage.script(a=[("my_erase", '{"name": "list"}')])

        stage.run(govern(stage.agent(toolsets=[toolset]), guard))

        assert ["step.proposed", "policy.evaluated", "action.completed"] == record.kinds

    def test_what_was_rewritten_in_between_is_judged_again(self, stage, guard_of, erase, ran):
        """Law 5: a toolset that changes the arguments further in is caught by the inner gate."""

        class Rewriting(WrapperToolset[Any]):
            async def call_tool(self, name, tool_args, ctx, tool):
                return await super().call_tool(name, {**tool_args, "name": "plan"}, ctx, tool)

        guard = guard_of(RULE)
        stage.script(a=[("erase", '{"name": "list"}')])
        toolset = Rewriting(GovernedToolset(function(erase), guard))

        stage.run(govern(stage.agent(toolsets=[toolset]), guard))

        assert ([DENIED], []) == (stage.said, ran)

    def test_it_stays_governed_when_its_leaves_are_replaced(self, guard_of, erase):
        """`visit_and_replace` and the steps of a run keep the gate where it is."""
        governed = GovernedToolset(function(erase), guard_of())

        replaced = governed.visit_and_replace(lambda leaf: WrapperToolset(leaf))

        assert isinstance(replaced, GovernedToolset)
        assert governed.guard is replaced.guard
        assert isinstance(replaced.wrapped, WrapperToolset)

    def test_runs_at_the_same_time_do_not_share_their_state(self, stage, pausing, erase):
        """Each run that waits is a run of its own in the ledger."""
        guard = pausing()
        stage.script(a=[("erase", '{"name": "list"}')])
        agent = stage.agent(
            toolsets=[GovernedToolset(function(erase), guard)],
            output_type=[str, DeferredToolRequests],
        )

        async def run() -> list[Any]:
            return await asyncio.gather(agent.run("Go 1."), agent.run("Go 2."))

        runs = {
            metadata["adjudge"]["run"]
            for result in asyncio.run(run())
            for metadata in result.output.metadata.values()
        }

        assert 2 == len(runs)

    def test_what_a_body_calls_with_its_own_context_is_judged(self, stage, guard_of, ran, record):
        """Law 3: a judged call is no pass for the next one, be it of the same tool and values."""
        guard = guard_of({"id": "wipe", "match": {"tool": "wipe"}, "decision": "deny"})
        answers = []

        async def erase(ctx: RunContext[Any], name: str) -> str:
            """Erase."""
            ran.append(name)
            for tool in ("wipe", "erase") if len(ran) == 1 else ():
                gate = ctx.tool_manager.tools[tool].toolset
                tools = await gate.get_tools(ctx)
                answers.append(await gate.call_tool(tool, {"name": name}, ctx, tools[tool]))
            return "erased"

        def wipe(name: str) -> str:
            """Erase."""
            ran.append(f"wiped {name}")
            return "wiped"

        toolset = GovernedToolset(FunctionToolset([erase, wipe], max_retries=1), guard)
        stage.script(a=[("erase", '{"name": "list"}')])

        stage.run(govern(stage.agent(toolsets=[toolset]), guard))

        assert [ToolDenied(DENIED), "erased"] == answers
        assert ["list", "list"] == ran
        assert ["action.denied", "action.completed", "action.completed"] == record.ends
