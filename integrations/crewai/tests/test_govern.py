"""What `govern` takes, how often, and every way to start a crew or an agent."""

import asyncio
import warnings

import pytest
from crewai import Agent, Crew, Process, Task
from crewai.agents.agent_adapters.base_agent_adapter import BaseAgentAdapter
from crewai.flow.flow import Flow, start
from crewai.lite_agent import LiteAgent
from crewai.tools import BaseTool, tool

from adjudge import CallContext, GovernError, Principal
from adjudge_crewai import adjudge_hooks, govern

NO = {"id": "no", "match": {"tool": "erase"}, "decision": "deny", "reason": "notes are kept"}
ERASE = ("erase", '{"name": "a"}')


def in_a_flow(crew):
    """Start a crew from a method of a flow."""

    class Notes(Flow):
        @start()
        def begin(self):
            return crew.kickoff()

    return Notes().kickoff()


def in_an_async_flow(crew):
    """Start a crew from a coroutine method of a flow."""

    class Notes(Flow):
        @start()
        async def begin(self):
            return await crew.akickoff()

    return Notes().kickoff()


def streamed(crew):
    """Start a crew as a stream."""
    crew.stream = True
    output = crew.kickoff()
    list(output)
    return output.result


STARTS = {
    "kickoff": lambda crew: crew.kickoff(),
    "kickoff with inputs": lambda crew: crew.kickoff({"x": "y"}),
    "kickoff_async": lambda crew: asyncio.run(crew.kickoff_async()),
    "akickoff": lambda crew: asyncio.run(crew.akickoff()),
    "kickoff_for_each": lambda crew: crew.kickoff_for_each([{}]),
    "kickoff_for_each_async": lambda crew: asyncio.run(crew.kickoff_for_each_async([{}])),
    "akickoff_for_each": lambda crew: asyncio.run(crew.akickoff_for_each([{}])),
    "copy": lambda crew: crew.copy().kickoff(),
    "stream": streamed,
    "a flow": in_a_flow,
    "an async flow": in_an_async_flow,
    "a task alone": lambda crew: crew.tasks[0].execute_sync(),
    "a task in a thread": lambda crew: crew.tasks[0].execute_async().result(),
    "a task awaited": lambda crew: asyncio.run(crew.tasks[0].aexecute_sync()),
    "replay": lambda crew: (crew.kickoff(), crew.replay(str(crew.tasks[0].id))),
}
AGENT_STARTS = {
    "kickoff": lambda agent: agent.kickoff("Go."),
    "kickoff_async": lambda agent: asyncio.run(agent.kickoff_async("Go.")),
    "akickoff": lambda agent: asyncio.run(agent.akickoff("Go.")),
    "copy": lambda agent: agent.copy().kickoff("Go."),
    "message": lambda agent: agent.message("Go."),
}


@pytest.mark.parametrize("way", STARTS)
def test_a_crew_is_governed_however_it_is_started(stage, guard_of, erase, ran, way):
    """No way to start a crew leads past its guard."""
    stage.script(a=[ERASE])
    crew = govern(stage.crew(stage.agent(tools=[tool(erase)])), guard_of(NO))
    STARTS[way](crew)
    assert [] == ran
    assert {"[denied] notes are kept"} == set(stage.said)


@pytest.mark.parametrize("way", AGENT_STARTS)
def test_an_agent_is_governed_however_it_is_started(both, guard_of, erase, ran, record, way):
    """No way to start an agent leads past its guard, on both paths."""
    both.script(a=[ERASE])
    agent = govern(both.agent(tools=[tool(erase)]), guard_of(NO))
    AGENT_STARTS[way](agent)
    assert [] == ran
    assert ["action.denied"] == record.ends


def test_tools_of_a_task_are_governed(stage, guard_of, erase, ran):
    """A tool that only a task has is governed with its crew."""
    stage.script(a=[ERASE])
    crew = stage.crew(stage.agent(), tools=[tool(erase)])
    govern(crew, guard_of(NO)).kickoff()
    assert [] == ran


def test_tools_of_a_task_are_governed_by_its_agent(stage, guard_of, erase, ran):
    """A governed agent works for an ungoverned crew with governed tools alone."""
    stage.script(a=[ERASE])
    agent = govern(stage.agent(), guard_of(NO))
    stage.crew(agent, tools=[tool(erase)]).kickoff()
    assert [] == ran


def test_tools_that_come_later_are_governed(stage, guard_of, erase, ran):
    """A tool that an agent gets after it was governed is governed."""
    stage.script(a=[ERASE])
    crew = govern(stage.crew(stage.agent()), guard_of(NO))
    crew.agents[0].tools.append(tool(erase))
    crew.kickoff()
    assert [] == ran


def test_agents_that_come_later_are_governed(stage, guard_of, erase, ran):
    """An agent that a crew gets after it was governed is governed, and refused for the same."""
    stage.script(a=[], b=[ERASE])
    crew = govern(stage.crew(stage.agent()), guard_of(NO))
    added = stage.agent("b", tools=[tool(erase)])
    crew.agents.append(added)
    crew.tasks.append(stage.task(added))
    crew.kickoff()
    assert [] == ran
    crew.agents.append(stage.agent())
    crew.agents[-1].llm.builtin_tools = ["web_search"]
    with pytest.raises(GovernError):
        crew.kickoff()


def test_tools_that_come_later_to_an_agent_alone_are_governed(stage, guard_of, erase, ran):
    """A tool that an agent gets after it was governed is governed, also without a crew."""
    stage.script(a=[ERASE])
    agent = govern(stage.agent(), guard_of(NO))
    agent.tools.append(tool(erase))
    agent.kickoff("Go.")
    assert [] == ran


def test_a_governed_tool_is_governed_in_any_crew(both, guard_of, erase, ran):
    """A governed copy needs no governed crew."""
    both.script(a=[ERASE])
    (made,) = govern([tool(erase)], guard_of(NO))
    both.crew(both.agent(tools=[made])).kickoff()
    assert [] == ran


def test_the_original_tool_stays_as_it_is(guard_of, erase, ran):
    """`govern` gives a copy: the tool itself is nobody's but its owner's."""
    made = tool(erase)
    govern(made, guard_of(NO))
    assert "erased a" == made.run(name="a")


@pytest.mark.parametrize("process", ["sequential", "hierarchical"])
def test_delegation_is_governed_and_so_is_what_the_coworker_does(
    both, guard_of, erase, ran, record, process
):
    """Both a delegation and the coworker's own calls go through the guard."""
    work = '{"task": "Erase.", "context": "none", "coworker": "b"}'
    boss, coworker = "delegate_work_to_coworker", [ERASE]
    both.script(a=[(boss, work)], b=coworker)
    worker = both.agent("b", tools=[tool(erase)])
    if process == "sequential":
        chief = both.agent(allow_delegation=True)
        crew = Crew(agents=[chief, worker], tasks=[both.task(chief)])
    else:
        chief = both.agent(allow_delegation=True)
        crew = Crew(
            agents=[worker],
            tasks=[both.task(worker)],
            process=Process.hierarchical,
            manager_llm=chief.llm,
        )
    govern(crew, guard_of(NO)).kickoff()
    assert [] == ran
    assert [boss, "erase"] == [each["tool"] for each in record.bodies("step.proposed")]
    assert ["action.denied", "action.completed"] == record.ends


@pytest.mark.parametrize("process", ["sequential", "hierarchical"])
def test_delegation_is_stopped(both, guard_of, erase, ran, record, process):
    """A denied delegation never reaches the coworker."""
    boss = "delegate_work_to_coworker"
    work = '{"task": "Erase.", "context": "none", "coworker": "b"}'
    both.script(a=[(boss, work)], b=[ERASE])
    worker = both.agent("b", tools=[tool(erase)])
    chief = both.agent(allow_delegation=True)
    if process == "sequential":
        crew = Crew(agents=[chief, worker], tasks=[both.task(chief)])
    else:
        crew = Crew(
            agents=[worker],
            tasks=[both.task(worker)],
            process=Process.hierarchical,
            manager_llm=chief.llm,
        )
    guard = guard_of({"id": "no", "match": {"tool": boss}, "decision": "deny"})
    govern(crew, guard).kickoff()
    assert [] == ran
    assert ["action.denied"] == record.ends


def test_tools_for_delegation_are_governed_whoever_calls_them(stage, guard_of, erase, ran):
    """What a governed agent gives for delegation is governed outside of any run, too."""
    stage.script(a=[], b=[ERASE])
    chief = govern(stage.agent(), guard_of(rest="deny"))
    delegate, *_ = chief.get_delegation_tools([stage.agent("b", tools=[tool(erase)])])
    told = delegate.run(task="Erase.", context="none", coworker="b")
    assert "[denied] not permitted by policy" == told.message
    assert [] == ran


def test_hooks_govern_a_crew_that_is_not(both, guard_of, erase, ran, record):
    """Inside of `adjudge_hooks` every tool is governed; outside it is what it was."""
    both.script(a=[ERASE])
    made = tool(erase)
    crew = both.crew(both.agent(tools=[made]))
    with adjudge_hooks(guard_of(NO)):
        crew.kickoff()
    assert [] == ran
    assert ["action.denied"] == record.ends
    assert "erased a" == made.run(name="a")
    crew.kickoff()
    assert [("a", False), ("a", False)] == ran


def test_hooks_leave_those_of_the_application_in_place(stage, guard_of, erase, ran):
    """The application's own scoped hooks run as they would without us."""
    from crewai.hooks import InterceptionPoint
    from crewai.hooks.dispatch import register_scoped, scoped_hooks

    seen = []
    stage.script(a=[ERASE])
    crew = govern(stage.crew(stage.agent(tools=[tool(erase)])), guard_of())
    with scoped_hooks():
        register_scoped(InterceptionPoint.PRE_TOOL_CALL, lambda ctx: seen.append(ctx.tool_name))
        crew.kickoff()
    assert ["erase"] == seen


def test_who_is_calling_comes_from_the_site_of_the_call(stage, guard_of, erase, ran):
    """`context=` gets the agent, the task and the crew of each call."""
    sites = []

    def who(site):
        sites.append((site.agent.role, site.task.description, type(site.crew)))
        return CallContext(Principal("user", "bo"))

    rule = {"id": "bo", "match": {"context.principal.id": "bo"}, "decision": "deny"}
    stage.script(a=[ERASE])
    crew = stage.crew(stage.agent(tools=[tool(erase)]))
    govern(crew, guard_of(rule), context=who).kickoff()
    assert [] == ran
    (site,) = sites
    assert ("a", "Go.") == site[:2]
    assert issubclass(site[2], Crew)


def test_the_same_guard_again_changes_nothing(stage, guard_of, erase):
    """Governing twice is governing once."""
    stage.script(a=[])
    guard = guard_of()
    crew = govern(stage.crew(stage.agent(tools=[tool(erase)])), guard)
    kinds = (type(crew), type(crew.agents[0]), crew.agents[0].tools[0])
    govern(crew, guard)
    assert kinds == (type(crew), type(crew.agents[0]), crew.agents[0].tools[0])
    assert kinds[2] is govern(kinds[2], guard)


@pytest.mark.parametrize("what", ["crew", "agent", "tool"])
def test_another_guard_is_an_error(stage, guard_of, erase, what):
    """What is under a guard is under no other."""
    stage.script(a=[])
    crew = govern(stage.crew(stage.agent(tools=[tool(erase)])), guard_of())
    target = {"crew": crew, "agent": crew.agents[0], "tool": crew.agents[0].tools[0]}[what]
    with pytest.raises(GovernError):
        govern(target, guard_of())


def test_what_cannot_be_governed_is_an_error(stage, guard_of, erase):
    """A target that offers no place to stand is refused, with what to give instead."""
    stage.script(a=[])

    class Runner(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str) -> str:
            return erase(name)

        def run(self, **kwargs):
            return erase(**kwargs)

    guard = guard_of()
    with warnings.catch_warnings(action="ignore"):
        alone = LiteAgent(role="a", goal="x", backstory="x", llm=stage.agent().llm)
    with pytest.raises(GovernError):
        govern(alone, guard)
    for target in (object(), "erase", erase, [erase], Runner(), tool(erase).to_structured_tool()):
        with pytest.raises(GovernError):
            govern(target, guard)
    with pytest.raises(GovernError):
        govern(tool(erase), object())
    with pytest.raises(GovernError):
        govern(tool(erase), guard, context="bo")


def test_an_agent_of_another_framework_is_an_error(guard_of):
    """An agent that runs its tools in somebody else's loop is refused, alone and in a crew."""

    class Elsewhere(BaseAgentAdapter):
        def execute_task(self, task, context=None, tools=None):
            return "done"

        async def aexecute_task(self, task, context=None, tools=None):
            return "done"

        def create_agent_executor(self, tools=None):
            return None

        def configure_tools(self, tools=None):
            return None

        def configure_structured_output(self, structured_output):
            return None

        def get_delegation_tools(self, agents):
            return []

        def get_mcp_tools(self, mcps):
            return []

        def get_platform_tools(self, apps):
            return []

    agent = Elsewhere(role="a", goal="x", backstory="x")
    task = Task(description="Go.", expected_output="A word.", agent=agent)
    for target in (agent, Crew(agents=[agent], tasks=[task])):
        with pytest.raises(GovernError):
            govern(target, guard_of())


def test_tools_that_a_model_cannot_tell_apart_are_an_error(stage, guard_of, erase):
    """Two tools of one name, as CrewAI writes it, are refused."""
    stage.script(a=[])
    agent = stage.agent(tools=[tool("Erase a note")(erase), tool("erase-a-note")(erase)])
    with pytest.raises(GovernError):
        govern(agent, guard_of())


def test_a_replaced_entry_is_an_error(stage, guard_of):
    """A method that is replaced on the object would hide the governed one."""
    stage.script(a=[])
    crew = stage.crew(stage.agent())
    object.__setattr__(crew, "kickoff", lambda: None)
    with pytest.raises(GovernError):
        govern(crew, guard_of())


def test_a_governed_agent_is_an_agent(stage, guard_of):
    """What looks at a governed crew or agent finds what it was."""
    stage.script(a=[])
    crew = govern(stage.crew(stage.agent()), guard_of())
    assert ("Crew", "crewai.crew") == (type(crew).__name__, type(crew).__module__)
    assert isinstance(crew.agents[0], Agent)
    assert "Agent" == type(crew.agents[0]).__name__


@pytest.mark.parametrize("way", STARTS)
def test_hooks_govern_a_crew_however_it_is_started(stage, guard_of, erase, ran, way):
    """No way to start a crew leads out of the block that governs it."""
    stage.script(a=[ERASE])
    crew = stage.crew(stage.agent(tools=[tool(erase)]))
    with adjudge_hooks(guard_of(NO)):
        STARTS[way](crew)
    assert [] == ran
    assert {"[denied] notes are kept"} == set(stage.said)
