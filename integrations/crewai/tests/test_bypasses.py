"""Ways past a guard that CrewAI offers: its hooks, its clients, flows, and what it restores."""

import contextlib
import json
import sys
from types import ModuleType
from typing import Any, ClassVar

import pytest
from crewai import Agent, Crew
from crewai.events.event_bus import crewai_event_bus
from crewai.flow.flow import Flow
from crewai.hooks import InterceptionPoint
from crewai.hooks.dispatch import register, unregister
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.state.runtime import RuntimeState
from crewai.tools import BaseTool, tool
from crewai.tools.tool_failure import ToolExecutionFailedError

from adjudge import ApprovalDecision, GovernError
from adjudge_crewai import adjudge_hooks, govern, governed

NO = {"id": "no", "match": {"tool": "erase"}, "decision": "deny", "reason": "notes are kept"}
ERASE = ("erase", '{"name": "a"}')


def test_calls_of_one_turn_are_judged_one_by_one(stage, guard_of, erase, ran):
    """Of calls that run in threads of their own, the denied one alone does not run."""
    rule = {"id": "b", "match": {"tool": "erase", "args.name": "b"}, "decision": "deny"}
    calls = [("erase", json.dumps({"name": name})) for name in "abc"]
    stage.script(a=[calls])
    govern(stage.crew(stage.agent(tools=[tool(erase)])), guard_of(rule)).kickoff()
    assert [("a", False), ("c", False)] == sorted(ran)


def test_a_restored_crew_is_governed(stage, guard_of, erase, ran, tmp_path):
    """A crew or an agent of a checkpoint is governed as the one that was saved."""

    class Restored(Crew):
        @classmethod
        def from_checkpoint(cls, config: Any) -> Crew:
            return stage.crew(stage.agent(tools=[tool(erase)]))

    class RestoredAgent(Agent):
        @classmethod
        def from_checkpoint(cls, config: Any) -> Agent:
            return stage.agent(tools=[tool(erase)])

    stage.script(a=[ERASE])
    config = CheckpointConfig(restore_from=str(tmp_path / "x.json"))
    plain = stage.agent(tools=[tool(erase)])
    crew = Restored(agents=[plain], tasks=[stage.task(plain)])
    govern(crew, guard_of(NO)).kickoff(from_checkpoint=config)
    agent = RestoredAgent(role="a", goal="x", backstory="x", llm=plain.llm)
    govern(agent, guard_of(NO)).kickoff("Go.", from_checkpoint=config)
    assert [] == ran


def test_tools_that_a_model_client_runs_itself_are_governed(stage, guard_of, erase, ran):
    """A client that is given governed functions runs nothing past the guard."""
    stage.script(a=[ERASE])
    agent = stage.agent()
    made = govern(tool(erase), guard_of(NO))
    from crewai.utilities.agent_utils import convert_tools_to_openai_schema

    tools, functions, _ = convert_tools_to_openai_schema([made])
    agent.llm.call("Go.", tools=tools, available_functions=functions)
    assert [] == ran


def test_tools_at_the_provider_are_refused(stage, guard_of):
    """What runs at the provider is refused when it is seen, unless it is named."""
    stage.script(a=[])
    agent = stage.agent()
    agent.llm.builtin_tools = ["web_search"]
    with pytest.raises(GovernError):
        govern(agent, guard_of())
    govern(agent, guard_of(), ungoverned=["web_search"])
    later = govern(stage.agent(), guard_of())
    later.llm.builtin_tools = ["web_search"]
    with pytest.raises(GovernError):
        later.kickoff("Go.")
    with pytest.raises(GovernError):
        stage.crew(later).kickoff()


def test_a_hook_that_fails_stops_the_call(stage, guard_of, erase, ran, record, monkeypatch):
    """Where our own hook cannot do its work the call is denied: CrewAI would let it run."""

    def fail(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("adjudge_crewai._hooks.govern_in_place", fail)
    stage.script(a=[ERASE])
    crew = stage.crew(stage.agent(tools=[tool(erase)]))
    with adjudge_hooks(guard_of()):
        crew.kickoff()
    assert [] == ran
    assert ["[denied] out of order"] == stage.said
    assert ["action.denied"] == record.ends


@pytest.mark.parametrize("verdict", ["allow", "deny", "transform"])
def test_hooks_reach_the_body_of_a_class(both, guard_of, ran, record, verdict):
    """A tool class that nobody governed is governed by hooks alone, on both paths."""

    class Eraser(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str, hard: bool = False) -> str:
            ran.append((name, hard))
            return "erased"

    rule = {"id": "r", "match": {"tool": "erase", "given.hard": False}, "decision": verdict}
    if verdict == "transform":
        rule["transform"] = {"jsonpath": "$.args.hard", "set": True}
    both.script(a=[ERASE, ("erase", '{"name": "b"}')])
    crew = both.crew(both.agent(tools=[Eraser()]))
    with adjudge_hooks(guard_of(rule, rest="deny")):
        crew.kickoff()
    hard = verdict == "transform"
    assert ([] if verdict == "deny" else [("a", hard), ("b", hard)]) == ran
    assert 2 == len(record.ends)


def test_hooks_that_come_after_ours_are_judged(both, guard_of, erase, ran):
    """A hook that is registered while a run goes on cannot change what was judged."""

    def spoil(ctx: Any) -> None:
        ctx.tool_input["name"] = "b"

    rule = {"id": "b", "match": {"tool": "erase", "args.name": "b"}, "decision": "deny"}
    both.script(a=[ERASE])
    crew = both.crew(both.agent(tools=[tool(erase)]))
    register(InterceptionPoint.PRE_TOOL_CALL, spoil)
    try:
        with adjudge_hooks(guard_of(rule)):
            crew.kickoff()
    finally:
        unregister(InterceptionPoint.PRE_TOOL_CALL, spoil)
    assert [] == ran


def test_a_cleared_registry_leaves_the_guard_in_place(both, guard_of, erase, ran):
    """Whoever clears all of CrewAI's hooks clears no gate."""
    from crewai.hooks import clear_all_global_hooks

    both.script(a=[ERASE])
    crew = govern(both.crew(both.agent(tools=[tool(erase)])), guard_of(NO))
    hook = lambda _: clear_all_global_hooks()  # noqa: E731
    register(InterceptionPoint.PRE_TOOL_CALL, hook)
    try:
        crew.kickoff()
    finally:
        clear_all_global_hooks()
    assert [] == ran


def test_scoped_hooks_of_a_task_do_not_hide_ours(stage, guard_of, erase, ran):
    """A scope of hooks that is opened inside of a governed run leads past no gate."""
    from crewai.hooks.dispatch import scoped_hooks

    class Scoped(Agent):
        def create_agent_executor(self, tools: Any = None, task: Any = None) -> None:
            scopes.append(scoped_hooks())
            scopes[-1].__enter__()
            super().create_agent_executor(tools, task)

    scopes = []
    stage.script(a=[ERASE])
    plain = stage.agent(tools=[tool(erase)])
    agent = Scoped(role="a", goal="x", backstory="x", llm=plain.llm, tools=[tool(erase)])
    govern(stage.crew(agent), guard_of(NO)).kickoff()
    for scope in scopes:
        with contextlib.suppress(ValueError):  # CrewAI ran the task in a context of its own
            scope.__exit__(None, None, None)
    assert [] == ran


def test_a_limit_of_uses_counts_as_ungoverned(both, guard_of, erase, ran):
    """A tool with a limit is called as often as the limit says."""
    calls = [("erase", json.dumps({"name": name})) for name in "ab"]
    both.script(a=calls)
    made = tool(max_usage_count=1)(erase)
    govern(both.crew(both.agent(tools=[made])), guard_of()).kickoff()
    assert [("a", False)] == ran


def test_steps_of_a_plan_are_governed(stage, guard_of, erase, ran, record):
    """Tools that an agent calls while it follows a plan are governed."""
    stage.script(a=[ERASE])
    agent = stage.agent(tools=[tool(erase)], planning=True)
    govern(stage.crew(agent), guard_of(NO)).kickoff()
    assert [] == ran
    assert ["action.denied"] == record.ends


def raises(ctx):
    """Fail, which CrewAI swallows."""
    raise ValueError("out of order")


async def is_awaited(ctx):
    """Give a coroutine, which CrewAI ignores."""
    return False


def replaces_the_arguments(ctx):
    """Give other arguments, which CrewAI ignores."""
    ctx.tool_input = {"name": "b"}


def asks(ctx):
    """Ask at a terminal that is not there."""
    ctx.request_human_input("May it?")


@pytest.mark.filterwarnings("ignore:coroutine 'is_awaited':RuntimeWarning")
@pytest.mark.parametrize("hook", [raises, is_awaited, replaces_the_arguments, asks])
def test_a_hook_that_fails_open_does_not_open_the_guard(both, guard_of, erase, ran, record, hook):
    """Where CrewAI runs a tool past a hook of the application, the guard judges what runs."""
    both.script(a=[ERASE])
    crew = both.crew(both.agent(tools=[tool(erase)]))
    register(InterceptionPoint.PRE_TOOL_CALL, hook)
    try:
        govern(crew, guard_of(NO)).kickoff()
    finally:
        unregister(InterceptionPoint.PRE_TOOL_CALL, hook)
    assert [] == ran
    assert ["action.denied"] == record.ends


def test_a_hook_that_blocks_still_blocks(both, guard_of, erase, ran):
    """What the application's own hook stops is not run because the policy allows it."""
    both.script(a=[ERASE])
    crew = both.crew(both.agent(tools=[tool(erase)]))
    hook = lambda _: False  # noqa: E731
    register(InterceptionPoint.PRE_TOOL_CALL, hook)
    try:
        govern(crew, guard_of()).kickoff()
    finally:
        unregister(InterceptionPoint.PRE_TOOL_CALL, hook)
    assert [] == ran


@pytest.mark.parametrize("failure", [EOFError(), TimeoutError(), KeyError("x"), None, "yes"])
@pytest.mark.parametrize("how", ["govern", "hooks"])
def test_an_approval_that_fails_is_no_grant(both, guard_of, erase, ran, record, how, failure):
    """A handler that raises, as one does at a closed terminal, or answers nothing, denies."""

    def ask(request):
        if isinstance(failure, Exception):
            raise failure
        return failure

    rule = {"id": "ask", "match": {"tool": "erase"}, "decision": "approve_required"}
    both.script(a=[ERASE])
    crew = both.crew(both.agent(tools=[tool(erase)]))
    guard = guard_of(rule, on_approval=ask)
    if how == "govern":
        govern(crew, guard).kickoff()
    else:
        with adjudge_hooks(guard):
            crew.kickoff()
    assert [] == ran
    assert ["approval_failed"] == [each["code"] for each in record.bodies("action.denied")]


def test_a_crew_that_stops_at_failures_stops_at_a_denial(both, guard_of, erase, ran):
    """A denial is a failure of the tool, and the tool's own setting says what a failure does."""

    class Strict(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."
        tool_failure_policy: Any = "raise"

        def _run(self, name: str) -> str:
            return erase(name)

    both.script(a=[ERASE])
    crew = govern(both.crew(both.agent(tools=[Strict()])), guard_of(NO))
    with pytest.raises(ToolExecutionFailedError, match="notes are kept"):
        crew.kickoff()
    assert [] == ran


def test_a_task_that_is_tried_again_is_judged_again(both, guard_of, erase, ran, record):
    """What a guardrail has a task do again is proposed, judged and recorded again."""
    verdicts = iter([(False, "Again."), (True, "good")])
    both.script(a=[ERASE])
    crew = both.crew(
        both.agent(tools=[tool(erase)]),
        guardrail=lambda _: next(verdicts),
        guardrail_max_retries=2,
    )
    answers = iter([True, False])
    rule = {"id": "ask", "match": {"tool": "erase"}, "decision": "approve_required"}
    guard = guard_of(rule, on_approval=lambda _: ApprovalDecision(next(answers), "ana"))
    govern(crew, guard).kickoff()
    proposed = len(record.bodies("step.proposed"))
    assert [("a", False)] == ran
    assert ["action.completed", "action.denied"][:proposed] == record.ends


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_a_step_of_a_declared_flow_is_governed(guard_of, ran, record, verdict, monkeypatch):
    """A decorated tool class is governed where a flow names it, which no hook sees."""
    rule = {"id": "r", "match": {"tool": "erase"}, "decision": verdict}

    @governed(guard_of(rule))
    class Eraser(BaseTool):
        name: str = "erase"
        description: str = "Erase a note."

        def _run(self, name: str) -> str:
            ran.append(name)
            return "erased"

    monkeypatch.setitem(sys.modules, "notes_of_a_flow", module := ModuleType("notes_of_a_flow"))
    module.Eraser = Eraser
    step = {"call": "tool", "ref": "notes_of_a_flow:Eraser", "with": {"name": "a"}}
    declared = {"schema": "crewai.flow/v1", "name": "Notes"}
    flow = Flow.from_declaration(
        contents={**declared, "methods": {"begin": {"start": True, "do": step}}}
    )
    # Some releases end a flow at a failure, others give it to the next step.
    with contextlib.suppress(ToolExecutionFailedError):
        flow.kickoff()
    assert (["a"] if verdict == "allow" else []) == ran
    ends = {"allow": "action.completed", "deny": "action.denied"}
    assert [ends[verdict]] == record.ends


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_a_crew_is_saved_and_restored_governed(stage, guard_of, record, tmp_path, verdict):
    """A governed crew's checkpoint is CrewAI's own, and what is restored of it is governed."""
    stage.script(a=[ERASE], b=[ERASE])
    guard = guard_of({"id": "r", "match": {"tool": "erase"}, "decision": verdict}, rest="deny")
    saved = []
    for number in range(9):
        # Some releases put all that a process has run into a checkpoint, and restore the first.
        crewai_event_bus.set_runtime_state(RuntimeState(root=[]))
        agents = [stage.agent(name, tools=[Notes()]) for name in ("a", "b")]
        tasks = [stage.task(agent, description=f"Go, {agent.role}.") for agent in agents]
        folder = tmp_path / str(number)
        config = CheckpointConfig(location=str(folder), on_events=["task_completed"])
        crew = govern(Crew(agents=agents, tasks=tasks, checkpoint=config), guard)
        crew.kickoff()
        saved = sorted(folder.rglob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        # CrewAI loses a checkpoint where its own events change while it writes them.
        if len(saved) == len(tasks):
            break
    first = saved[0]
    restored = crew.from_checkpoint(CheckpointConfig(restore_from=str(first)))
    Notes.erased.clear()
    before = len(record.ends)
    restored.kickoff()
    assert (["a"] if verdict == "allow" else []) == Notes.erased
    ends = {"allow": "action.completed", "deny": "action.denied"}
    assert [ends[verdict]] == record.ends[before:]


class Notes(BaseTool):
    """A tool that a checkpoint can find again."""

    name: str = "erase"
    description: str = "Erase a note."
    erased: ClassVar[list[str]] = []

    def _run(self, name: str) -> str:
        self.erased.append(name)
        return "erased"


@pytest.mark.parametrize("alone", [True, False])
def test_a_tool_that_has_the_name_of_another_does_not_run_in_its_place(
    both, guard_of, erase, ran, alone
):
    """Of two tools of one name CrewAI may show one to the hooks, and run the other."""

    def keep(name: str) -> str:
        """Keep a note."""
        return "kept"

    twins = [tool("erase a note")(erase), tool("Erase-a-note")(keep)]
    both.script(a=[("erase_a_note", '{"name": "a"}')])
    agent = both.agent(tools=twins)
    rule = {"id": "no", "match": {"tool": "erase_a_note"}, "decision": "deny"}
    with adjudge_hooks(guard_of(rule)):
        agent.kickoff("Go.") if alone else both.crew(agent).kickoff()
    assert [] == ran
