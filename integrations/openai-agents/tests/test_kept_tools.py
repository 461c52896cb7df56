"""Governed copies are kept from one request to the next, while nothing about them has changed."""

import asyncio
import copy
import gc
import weakref
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    CustomTool,
    FunctionTool,
    ModelBehaviorError,
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    function_tool,
    tool_input_guardrail,
)

from adjudge_openai_agents import govern

DENIED = "[denied] not permitted by policy"


def listed(agent: Agent[Any]) -> list[Any]:
    """Give the tools of an agent as the SDK gets them for a request."""
    return asyncio.run(agent.get_all_tools(RunContextWrapper(None)))


async def leak(context: Any, arguments: str) -> str:
    """Do something that nobody has judged."""
    return "leaked"


def made(name: str = "act", *, is_strict: bool = False, **options: Any) -> FunctionTool:
    """Make a handwritten tool that answers with its arguments."""

    async def invoke(context: Any, arguments: str) -> str:
        return f"did {arguments}"

    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    return FunctionTool(name, "Act.", schema, invoke, strict_json_schema=is_strict, **options)


@function_tool
def decorated(n: int = 1) -> str:
    """Act."""
    return f"did {n}"


@tool_input_guardrail
def refusing(data: Any) -> ToolGuardrailFunctionOutput:
    """Let no call pass."""
    return ToolGuardrailFunctionOutput.reject_content("stopped by a guardrail")


def test_a_tool_is_governed_once(guard_of):
    """The same copy is given at each request."""
    agent = govern(Agent(name="a", tools=[made(), decorated]), guard_of())

    first, second = listed(agent), listed(agent)

    assert all(one is other for one, other in zip(first, second, strict=True))


def test_a_tool_that_is_enabled_again_is_governed_once(guard_of):
    """So it is after requests for which a tool was not enabled."""
    enabled = [True, False, True]
    tool = made(is_enabled=lambda *_: enabled.pop(0))
    agent = govern(Agent(name="a", tools=[tool]), guard_of())

    first, none, again = listed(agent), listed(agent), listed(agent)

    assert ([], True) == (none, first[0] is again[0])


def test_a_tool_that_is_enabled_later_is_governed(stage, guard_of):
    """A tool that no request has offered by then is no way round."""
    asked: list[int] = []

    def enabled(*_: Any) -> bool:
        asked.append(1)
        return len(asked) > 1

    stage.script(a=[("other", "{}"), ("act", "{}")])
    tools = [made("other"), made(is_enabled=enabled)]
    stage.run(govern(stage.agent("a", tools=tools), guard_of(rest="deny")))

    assert [DENIED, DENIED] == stage.said


def plainly(state: list[Any]) -> Any:
    """Enable a tool as often as there is something in the list."""
    return lambda *_: bool(state and state.pop())


def later(state: list[Any]) -> Any:
    """Do so in a coroutine."""

    async def enabled(*_: Any) -> bool:
        return bool(state and state.pop())

    return enabled


@pytest.mark.parametrize("enabled", [plainly, later], ids=["plain", "async"])
@pytest.mark.parametrize("governed", [False, True], ids=["ungoverned", "governed"])
def test_a_tool_that_is_disabled_since_it_was_offered(stage, guard_of, record, governed, enabled):
    """Law 1: it does not run, and the run ends as it does ungoverned."""
    stage.script(a=[("act", "{}")])
    agent = stage.agent("a", tools=[made(is_enabled=enabled([1]))])
    if governed:
        govern(agent, guard_of())

    with pytest.raises(ModelBehaviorError, match="Tool act is currently disabled for agent a"):
        stage.run(agent)

    assert [] == record.kinds


def test_a_tool_that_is_switched_off_since_it_was_offered(stage, guard_of, record):
    """So it is where the setting is a plain one."""

    class Off(AgentHooks[Any]):
        async def on_llm_end(self, *_: Any) -> None:
            tool.is_enabled = False

    stage.script(a=[("act", "{}")])
    tool = made()

    with pytest.raises(ModelBehaviorError, match="Tool act is currently disabled for agent a"):
        stage.run(govern(stage.agent("a", tools=[tool], hooks=Off()), guard_of()))

    assert [] == record.kinds


def test_a_tool_that_was_taken_away_since_it_was_offered(stage, guard_of):
    """Law 1: the SDK runs a tool that its agent has no longer, and so it does governed."""

    class Away(AgentHooks[Any]):
        async def on_llm_end(self, *_: Any) -> None:
            agent.tools.clear()
            tool.is_enabled = False

    said = []
    for guard in (None, guard_of()):
        stage.script(a=[("act", "{}")])
        tool = made()
        agent = stage.agent("a", tools=[tool], hooks=Away())
        if guard is not None:
            govern(agent, guard)
        stage.run(agent)
        said.append(stage.said)

    assert [["did {}"]] * 2 == said


def swap(agent: Agent[Any]) -> None:
    """Put another tool of the name into the list."""
    agent.tools[0] = FunctionTool("act", "Act.", {}, leak, strict_json_schema=False)


def assign(agent: Agent[Any]) -> None:
    """Give the agent another list."""
    agent.tools = [FunctionTool("act", "Act.", {}, leak, strict_json_schema=False)]


def change(agent: Agent[Any]) -> None:
    """Give the tool another body."""
    agent.tools[0].on_invoke_tool = leak


def change_copy(agent: Agent[Any]) -> None:
    """Give the governed copy another body."""
    listed(agent)[0].on_invoke_tool = leak


def change_class(agent: Agent[Any]) -> None:
    """Make the tool one of another class, with another body."""
    agent.tools[0].__class__ = type("Other", (FunctionTool,), {})
    agent.tools[0].on_invoke_tool = leak


@pytest.mark.parametrize("how", [swap, assign, change, change_copy, change_class])
def test_what_was_changed_is_no_way_round(stage, guard_of, how):
    """Law 3: whatever was put in the place of a tool or of its copy, the guard stands before it."""
    stage.script(a=[("act", "{}")])
    agent = govern(stage.agent("a", tools=[made()]), guard_of(rest="deny"))
    listed(agent)

    how(agent)
    stage.run(agent)

    assert [DENIED] == stage.said


def test_what_a_hook_does_to_a_tool_is_no_way_round(stage, guard_of):
    """So it is with what a hook of the run is shown."""

    class Changing(AgentHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            tool.on_invoke_tool = leak

    stage.script(a=[("act", "{}"), ("act", "{}")])
    stage.run(govern(stage.agent("a", tools=[made()], hooks=Changing()), guard_of(rest="deny")))

    assert [DENIED, DENIED] == stage.said


def describe(tool: Any) -> None:
    """Describe the tool otherwise."""
    tool.description = "Act otherwise."


def describe_within(tool: Any) -> None:
    """Describe an argument otherwise, in place."""
    tool.params_json_schema["properties"]["n"]["description"] = "How often."


def default_true(tool: Any) -> None:
    """Change a default into one that is equal to it, in place."""
    tool.params_json_schema["properties"]["n"]["default"] = True


@pytest.mark.parametrize("how", [describe, describe_within, default_true])
@pytest.mark.parametrize("is_strict", [False, True], ids=["plain", "strict"])
def test_the_model_is_told_of_changes(stage, guard_of, how, is_strict):
    """Law 1: a request offers what it would offer ungoverned."""
    offered = []
    for guard in (None, guard_of()):
        tool = made(is_strict=is_strict)
        stage.script(a=[])
        agent = stage.agent("a", tools=[tool])
        if guard is not None:
            govern(agent, guard)
        stage.run(agent)
        how(tool)
        stage.run(agent)
        offered.append(stage.offered)

    assert offered[0] == offered[1]
    assert offered[0][0] != offered[0][1]


def test_a_call_is_judged_by_the_schema_that_was_offered(stage, guard_of):
    """A default that is changed in place is the one that a rule sees, also from 1 to True."""
    stage.script(a=[("act", "{}")])
    tool = made()
    rule = {"id": "n", "match": {"args.n": True}, "decision": "deny"}
    agent = govern(stage.agent("a", tools=[tool]), guard_of(rule))
    listed(agent)

    tool.params_json_schema["properties"]["n"] = {"type": "boolean", "default": True}
    stage.run(agent)

    assert [DENIED] == stage.said


def test_a_guardrail_that_is_added_counts(stage, guard_of):
    """A list that was changed in place is looked into."""
    stage.script(a=[("act", "{}")])
    tool = made(tool_input_guardrails=[])
    agent = govern(stage.agent("a", tools=[tool]), guard_of())
    listed(agent)

    tool.tool_input_guardrails.append(refusing)
    stage.run(agent)

    assert ["stopped by a guardrail"] == stage.said


def test_a_guardrail_that_was_exchanged_counts(guard_of):
    """So is one to which a governed copy has added a guardrail of its own."""
    tool = made(output_json_schema={"type": "object"}, tool_output_guardrails=[object()])
    agent = govern(Agent(name="a", tools=[tool]), guard_of())
    listed(agent)

    exchanged: Any = object()
    tool.tool_output_guardrails[0] = exchanged

    assert exchanged is listed(agent)[0].tool_output_guardrails[-1]


def test_a_tool_that_became_one_of_another_class(guard_of):
    """Its copy is of that class, too."""
    agent = govern(Agent(name="a", tools=[made()]), guard_of())
    listed(agent)

    agent.tools[0].__class__ = type("Other", (FunctionTool,), {})

    assert type(agent.tools[0]) is type(listed(agent)[0])


def test_a_schema_that_is_no_json_is_governed_each_time(guard_of):
    """What cannot be compared is not kept."""
    tool = made()
    tool.params_json_schema["examples"] = {object()}
    agent = govern(Agent(name="a", tools=[tool]), guard_of())

    first, second = listed(agent), listed(agent)

    assert first[0] is not second[0]


def test_a_tool_that_was_taken_away_is_let_go(guard_of):
    """Nothing is kept of tools that an agent has no longer."""
    agent = govern(Agent(name="a", tools=[made()]), guard_of())
    copies = [weakref.ref(each) for each in listed(agent)]

    agent.tools.clear()
    listed(agent)
    gc.collect()

    assert [None] == [each() for each in copies]


def test_an_agent_that_is_renamed(guard_of):
    """A copy knows the name of its agent, which tells equal calls of a run apart."""
    agent = govern(Agent(name="a", tools=[made()]), guard_of())
    listed(agent)

    agent.name = "b"

    assert ["b"] == [each.on_invoke_tool.binding.agent for each in listed(agent)]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda agent: agent.clone()])
def test_a_copy_of_an_agent(stage, guard_of, copied):
    """Law 3: the tools of a copy are governed, though those of the original were kept."""
    stage.script(a=[("act", "{}")])
    agent = govern(stage.agent("a", tools=[made()]), guard_of(rest="deny"))
    agent.model = None
    listed(agent)

    other = copied(agent)
    other.model = stage.model("a")
    stage.run(other)

    assert [DENIED] == stage.said


def test_other_kinds_of_tools(stage, guard_of):
    """A custom tool is kept as well, and what is changed in it is no way round."""
    tool = CustomTool(name="act", description="Act.", on_invoke_tool=leak)
    agent = govern(Agent(name="a", tools=[tool]), guard_of())
    first, second = listed(agent), listed(agent)

    tool.on_invoke_tool = lambda *_: "changed"

    assert (True, False) == (first[0] is second[0], first[0] is listed(agent)[0])
