"""`govern`: what it takes, what it gives back, and what it refuses."""

import copy
import dataclasses

import pytest
from agents import (
    Agent,
    CodeInterpreterTool,
    ComputerTool,
    FileSearchTool,
    FunctionTool,
    HostedMCPTool,
    ImageGenerationTool,
    ProgrammaticToolCallingTool,
    ShellTool,
    ToolSearchTool,
    WebSearchTool,
    function_tool,
    handoff,
)

from adjudge import GovernError
from adjudge_openai_agents import govern

HOSTED = [
    WebSearchTool(),
    FileSearchTool(vector_store_ids=["v"]),
    CodeInterpreterTool(tool_config={"type": "code_interpreter", "container": {"type": "auto"}}),
    ImageGenerationTool(tool_config={"type": "image_generation"}),
    HostedMCPTool(tool_config={"type": "mcp", "server_label": "x", "server_url": "http://x"}),
    ShellTool(environment={"type": "container_auto"}),
    ProgrammaticToolCallingTool(),
]


def names(tools):
    """Name the classes of tools."""
    return [type(tool).__name__ for tool in tools]


by_class = {"ids": lambda tool: type(tool).__name__}


@function_tool
def look(key: str) -> str:
    """Look something up."""
    return f"saw {key}"


class TestTools:
    def test_a_tool_comes_back_as_a_copy(self, guard_of):
        """The original is left as it was, and the copy differs in its invoker alone."""
        before = dict(vars(look))

        governed = govern(look, guard_of())

        assert before == vars(look)
        assert {name for name, value in vars(governed).items() if value != before[name]} == {
            "on_invoke_tool"
        }
        assert type(governed) is FunctionTool

    def test_a_list_comes_back_as_a_list_of_copies(self, guard_of):
        """The list given is left alone."""
        tools = [look]

        governed = govern(tools, guard_of())

        assert tools == [look]
        assert [look.name] == [tool.name for tool in governed]
        assert governed[0] is not look

    def test_the_same_guard_again_changes_nothing(self, guard_of):
        """Governing twice is governing once."""
        guard = guard_of()
        governed = govern(look, guard)

        assert governed is govern(governed, guard)

    def test_another_guard_is_an_error(self, guard_of):
        """A tool has one guard."""
        with pytest.raises(GovernError):
            govern(govern(look, guard_of()), guard_of())

    def test_a_governed_tool_does_not_give_its_function_away(self, guard_of):
        """The SDK's own `__wrapped__` ends at the guard."""
        assert not hasattr(govern(look, guard_of()), "__wrapped__")

    @pytest.mark.parametrize("tool", HOSTED, **by_class)
    def test_tools_at_the_provider_are_refused(self, tool, guard_of):
        """Law 3: what cannot be intercepted is refused where it is visible."""
        with pytest.raises(GovernError):
            govern([look, tool], guard_of())
        with pytest.raises(GovernError):
            govern(Agent(name="a", tools=[tool]), guard_of())

    def test_tools_at_the_provider_are_left_out_or_kept_as_told(self, guard_of):
        """`hosted` says which."""
        tools = [*HOSTED, look]

        assert ["FunctionTool"] == names(govern(tools, guard_of(), hosted="strip"))
        assert names(tools) == names(govern(tools, guard_of(), hosted="allow"))

    def test_tool_search_only_makes_tools_known(self, guard_of):
        """It reaches no body, so it stays."""
        assert ["ToolSearchTool"] == names(govern([ToolSearchTool()], guard_of()))

    @pytest.mark.parametrize("hosted", ["refuse", "strip", "allow"])
    def test_a_computer_is_refused(self, hosted, guard_of):
        """Law 3: a denial could only end the run, so that kind is refused, and no other."""
        with pytest.raises(GovernError, match="end the run"):
            govern([ComputerTool(computer=object())], guard_of(), hosted=hosted)

    def test_a_tool_of_no_known_kind_is_refused(self, guard_of):
        """Law 3: what a release of the SDK adds is not let through."""
        with pytest.raises(GovernError, match="is a object"):
            govern([object()], guard_of())

    def test_a_tool_whose_body_cannot_be_exchanged_is_refused(self, guard_of):
        """Law 3: a class that answers with its own body, whatever is set, has no place to stand."""

        class Own(FunctionTool):
            @property
            def on_invoke_tool(self):
                return look.on_invoke_tool

            @on_invoke_tool.setter
            def on_invoke_tool(self, value):
                pass

        tool = Own("own", "Own.", {}, None, strict_json_schema=False)

        with pytest.raises(GovernError, match="plain attribute"):
            govern(tool, guard_of())


class TestUngoverned:
    @pytest.mark.parametrize(
        ("tool", "name"),
        [
            (WebSearchTool(), "web_search"),
            (HOSTED[4], "hosted_mcp.x"),
            (HOSTED[5], "shell"),
            (ComputerTool(computer=object()), ComputerTool(computer=object()).name),
        ],
        ids=["hosted", "hosted-mcp", "hosted-shell", "computer"],
    )
    def test_what_cannot_be_governed_runs_where_it_is_listed(self, tool, name, guard_of):
        """Law 3: the caller takes one such tool on himself, by the name that the error gives."""
        with pytest.raises(GovernError) as caught:
            govern([tool], guard_of())

        assert f"ungoverned=[{name!r}]" in str(caught.value)
        assert [tool] == govern([tool], guard_of(), ungoverned=[name])
        assert [tool] == govern([tool], guard_of(), ungoverned=[name], hosted="strip")

    def test_others_are_refused_as_before(self, guard_of):
        """A list is no blanket permission."""
        with pytest.raises(GovernError, match="file_search"):
            govern([WebSearchTool(), HOSTED[1]], guard_of(), ungoverned=["web_search"])

    def test_what_can_be_governed_is_not_listed(self, guard_of):
        """Only a policy lets a tool run that a guard can stand before."""
        with pytest.raises(GovernError, match="by a rule"):
            govern([look], guard_of(), ungoverned=["look"])

    def test_it_holds_for_what_an_agent_gets_later(self, stage, guard_of):
        """So at the next request."""
        stage.script("responses", a=[])
        agent = govern(stage.agent("a"), guard_of(), ungoverned=["web_search"])
        agent.tools.append(WebSearchTool())

        assert "a is done." == stage.run(agent).final_output

    @pytest.mark.parametrize("listed", ["web_search", [WebSearchTool()], [1]])
    def test_it_is_a_list_of_names(self, listed, guard_of):
        """A text would be a list of letters."""
        with pytest.raises(GovernError, match="names of tools"):
            govern([look], guard_of(), ungoverned=listed)


class TestArguments:
    @pytest.mark.parametrize("target", [None, "agent", look.on_invoke_tool, (look,), object()])
    def test_a_target_without_a_place_to_stand_is_an_error(self, target, guard_of):
        """Only tools, lists of tools and agents can be governed."""
        with pytest.raises(GovernError):
            govern(target, guard_of())

    @pytest.mark.parametrize("tool", [HOSTED[0], HOSTED[5]], **by_class)
    def test_a_lone_tool_at_the_provider_is_an_error(self, tool, guard_of):
        """There would be nothing to give back."""
        with pytest.raises(GovernError):
            govern(tool, guard_of(), hosted="strip")

    def test_a_mistyped_mode_is_an_error(self, guard_of):
        """`hosted` has three values."""
        with pytest.raises(GovernError):
            govern(look, guard_of(), hosted="drop")

    def test_the_context_is_a_function(self, guard_of):
        """A value would be the same for every caller; it is refused before any call."""
        with pytest.raises(GovernError, match="context is a dict; give a function"):
            govern(look, guard_of(), context={"user": "ana"})

    def test_a_policy_is_no_guard(self, guard_of):
        """What stands for the guard must be one."""
        with pytest.raises(GovernError):
            govern(look, guard_of().policy)


class TestAgents:
    def test_an_agent_is_governed_in_place(self, guard_of):
        """References that others hold stay good, and the class keeps its name."""
        agent = Agent(name="a", tools=[look])

        assert agent is govern(agent, guard_of())
        assert isinstance(agent, Agent)
        assert "Agent" == type(agent).__name__
        assert [look] == agent.tools

    def test_the_same_guard_again_changes_nothing(self, guard_of):
        """Governing twice is governing once."""
        guard = guard_of()
        agent = govern(Agent(name="a"), guard)
        kind = type(agent)

        assert kind is type(govern(agent, guard))

    def test_another_guard_is_an_error(self, guard_of):
        """An agent has one guard."""
        agent = govern(Agent(name="a"), guard_of())

        with pytest.raises(GovernError):
            govern(agent, guard_of())

    def test_an_agent_behind_another_guard_is_an_error(self, guard_of):
        """So has an agent that it hands off to, however that is written."""
        inner = govern(Agent(name="b"), guard_of())

        with pytest.raises(GovernError):
            govern(Agent(name="a", handoffs=[inner]), guard_of())
        with pytest.raises(GovernError):
            govern(Agent(name="a", handoffs=[handoff(inner)]), guard_of())
        with pytest.raises(GovernError):
            govern(Agent(name="a", tools=[inner.as_tool("b", "")]), guard_of())

    def test_a_handoff_under_another_guard_is_an_error(self, guard_of):
        """One handoff object in two agents has one guard too."""
        shared = handoff(Agent(name="b"))
        govern(Agent(name="a", handoffs=[shared]), guard_of())

        with pytest.raises(GovernError):
            govern(Agent(name="c", handoffs=[shared]), guard_of())

    def test_what_an_agent_as_tool_has_is_refused_at_once(self, guard_of):
        """Law 3: a tool at the provider is refused when it is governed, also one agent further."""
        inner = Agent(name="inner", tools=[WebSearchTool()])
        outer = Agent(name="outer", tools=[inner.as_tool("ask", "Ask.")])

        with pytest.raises(GovernError, match="runs at the provider"):
            govern(outer, guard_of())

    def test_what_cannot_be_governed_leaves_everything_as_it_was(self, guard_of):
        """A refusal far out in the graph governs nothing of it."""
        inner = Agent(name="b", tools=[WebSearchTool()])
        agent = Agent(name="a", handoffs=[handoff(inner)])
        invoke = agent.handoffs[0].on_invoke_handoff

        with pytest.raises(GovernError):
            govern(agent, guard_of())

        assert (Agent, Agent) == (type(agent), type(inner))
        assert invoke is agent.handoffs[0].on_invoke_handoff

    def test_handoffs_that_are_no_list_leave_everything_as_it_was(self, guard_of):
        """They could not be governed in place, and nothing is, then."""
        agent = Agent(name="a")
        agent.handoffs = (Agent(name="b"),)

        with pytest.raises(GovernError, match="tuple of handoffs; give a list"):
            govern(agent, guard_of())

        assert Agent is type(agent)

    def test_agents_in_a_circle_are_governed_once(self, guard_of):
        """Agents may hand off to each other."""
        one, two = Agent(name="one"), Agent(name="two")
        one.handoffs, two.handoffs = [two], [handoff(one)]

        govern(one, guard_of())

        assert Agent not in (type(one), type(two))

    def test_without_recursion_other_agents_are_left_alone(self, guard_of):
        """`recursive=False` is the caller's word that they need no guard, or have one."""
        inner = Agent(name="b")
        agent = Agent(name="a", handoffs=[inner, handoff(inner)], tools=[inner.as_tool("b", "")])

        govern(agent, guard_of(), recursive=False)

        assert Agent is type(inner)

    def test_a_subclass_of_agent_keeps_its_ways(self, guard_of):
        """A class of the user's own is extended, not replaced."""

        class Mine(Agent):
            def greet(self):
                """Say hello."""
                return f"{self.name} says hello"

        agent = govern(Mine(name="a"), guard_of())

        assert isinstance(agent, Mine)
        assert "a says hello" == agent.greet()

    def test_copies_and_clones_stay_governed(self, guard_of):
        """A clone has the class of the agent that it is a clone of."""
        agent = govern(Agent(name="a", tools=[look]), guard_of())

        assert type(agent) is type(agent.clone(name="b"))
        assert type(agent) is type(copy.copy(agent))
        assert type(agent) is type(dataclasses.replace(agent, name="c"))


class TestPrivateNames:
    """What this package reads of the SDK's private names is still there."""

    def test_an_agent_as_tool_knows_its_agent(self):
        """`_agent_instance` leads from the tool to the agent."""
        agent = Agent(name="a")

        assert agent is agent.as_tool("a", "")._agent_instance

    def test_a_handoff_knows_its_agent(self):
        """`_agent_ref` leads from the handoff to the agent."""
        agent = Agent(name="a")

        assert agent is handoff(agent)._agent_ref()


def test_an_agent_whose_instance_hides_the_governed_method_is_refused(guard_of):
    """Law 3: where there is no place to stand `govern` says so."""
    agent = Agent(name="a")

    async def tools(_run_context):
        return []

    agent.get_all_tools = tools

    with pytest.raises(GovernError, match="subclass"):
        govern(agent, guard_of())


def test_a_tool_renamed_after_it_was_governed_is_refused(guard_of):
    """Fault kind 5: a policy judges the name that the model calls, and no former one."""
    guard = guard_of()

    @function_tool
    def look() -> str:
        """Look."""
        return "seen"

    renamed = dataclasses.replace(govern(look, guard), name="peek")

    with pytest.raises(GovernError, match="renamed"):
        govern(Agent(name="a", tools=[renamed]), guard)
