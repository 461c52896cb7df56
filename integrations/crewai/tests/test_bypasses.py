"""Every way to a body that CrewAI offers, driven; and the inventory that notices a new one."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.hooks import InterceptionPoint
from crewai.hooks.dispatch import register, unregister
from crewai.mcp import MCPServerStdio
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory
from crewai.tools import BaseTool, tool
from crewai.tools.base_tool import Tool
from crewai.tools.structured_tool import CrewStructuredTool
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import BaseModel, Field

from adjudge import ApprovalDecision, GovernError
from adjudge_conformance.inventory import public_callables, uncovered, unlisted
from adjudge_crewai import adjudge_hooks, govern

NO = {"id": "no", "match": {"tool": "erase"}, "decision": "deny", "reason": "notes are kept"}
ERASE = ("erase", '{"name": "a"}')
STARTED = "test_a_crew_is_governed_however_it_is_started"
ALONE = "test_an_agent_is_governed_however_it_is_started"
DIRECT = "test_direct_calls_of_a_governed_tool_are_judged"
AWAITED = "test_a_coroutine_tool_is_judged_where_it_is_awaited"
CONVERTED = "test_every_kind_of_tool_is_stopped"
COPIED = "it is a copy that is started, and copies are governed"
REACHES: dict[str, dict[str, str]] = {
    "Crew": {
        "akickoff": STARTED,
        "akickoff_for_each": STARTED,
        "copy": STARTED,
        "kickoff": STARTED,
        "kickoff_async": STARTED,
        "kickoff_for_each": STARTED,
        "kickoff_for_each_async": STARTED,
        "replay": STARTED,
        "from_checkpoint": "test_a_restored_crew_is_governed",
        "fork": "test_a_restored_crew_is_governed",
    },
    "Agent": {
        "aexecute_task": STARTED,
        "akickoff": ALONE,
        "copy": ALONE,
        "execute_task": STARTED,
        "kickoff": ALONE,
        "kickoff_async": ALONE,
        "message": ALONE,
        "create_agent_executor": "test_tools_of_a_task_are_governed_by_its_agent",
        "get_delegation_tools": "test_delegation_is_stopped",
        "get_mcp_tools": "test_tools_of_a_server_are_governed",
        "get_platform_tools": "test_tools_of_apps_are_governed",
        "from_checkpoint": "test_a_restored_crew_is_governed",
        "fork": "test_a_restored_crew_is_governed",
    },
    "Task": {"aexecute_sync": STARTED, "execute_async": STARTED, "execute_sync": STARTED},
    "BaseTool": {"run": DIRECT, "arun": AWAITED, "to_structured_tool": DIRECT},
    "Tool": {
        "run": DIRECT,
        "arun": AWAITED,
        "to_structured_tool": DIRECT,
        "from_langchain": CONVERTED,
    },
    "CrewStructuredTool": {"invoke": DIRECT, "ainvoke": DIRECT},
}
_MODEL = dict.fromkeys(public_callables(BaseModel), "pydantic's own")
_CHECKS = "holds the configuration to its rules"
HARMLESS: dict[str, dict[str, str]] = {
    "Crew": {
        **{name: why for name, why in _MODEL.items() if name != "copy"},
        **{
            name: _CHECKS
            for name in public_callables(Crew)
            if name.startswith(("check_", "validate_"))
        },
        "aquery_knowledge": "searches texts",
        "calculate_usage_metrics": "adds up",
        "create_crew_knowledge": "sets up a store of texts",
        "create_crew_memory": "sets up a store of texts",
        "fetch_inputs": "lists names",
        "query_knowledge": "searches texts",
        "reset_knowledge": "empties a store of texts",
        "reset_memories": "empties a store of texts",
        "set_private_attrs": "sets up",
        "test": COPIED,
        "train": COPIED,
    },
    "Agent": {
        **{name: why for name, why in _MODEL.items() if name != "copy"},
        **{
            name: _CHECKS
            for name in public_callables(Agent)
            if name.startswith(("process_model_config", "validate_"))
        },
        "executor_class": "is called by create_agent_executor",
        "get_code_execution_tools": "gives nothing any more",
        "get_multimodal_tools": "gives tools, which the executor gets governed",
        "get_output_converter": "makes a converter of texts",
        "interpolate_inputs": "fills in texts",
        "post_init_setup": "sets up",
        "reset_tool_failures": "forgets",
        "resolve_memory": "sets up a store of texts",
        "set_cache_handler": "offers a cache, out of which calls are served when judged",
        "set_fingerprint": "names the agent",
        "set_knowledge": "sets up a store of texts",
        "set_private_attrs": "sets up",
        "set_rpm_controller": "counts requests",
        "set_skills": "sets up texts",
    },
    "Task": {
        **_MODEL,
        **{
            name: _CHECKS
            for name in public_callables(Task)
            if name.startswith(("check_", "ensure_", "validate_", "process_model", "handle_max"))
        },
        "increment_delegations": "counts",
        "increment_tools_errors": "counts",
        "interpolate_inputs_and_add_conversation_history": "fills in texts",
        "output_file_validation": _CHECKS,
        "prompt": "makes a text",
        "set_attributes_based_on_config": "sets up",
    },
    "BaseTool": {
        **_MODEL,
        "format_output_for_agent": "makes a text of a result",
        "from_langchain": "makes a tool, to be governed after it",
        "reset_usage_count": "counts",
        "validate_max_usage_count": _CHECKS,
    },
    "CrewStructuredTool": {
        **_MODEL,
        "format_output_for_agent": "makes a text of a result",
        "from_function": "makes a tool that agents do not take",
        "has_reached_max_usage_count": "counts",
    },
}
HARMLESS["Tool"] = {k: v for k, v in HARMLESS["BaseTool"].items() if k != "from_langchain"}
DRIVEN = {
    "sync": STARTED,
    "async": STARTED,
    "stream": STARTED,
    "batch": STARTED,
    "parallel": "test_calls_of_one_turn_are_judged_one_by_one",
    "retry": "test_each_try_of_the_text_path_is_an_attempt_of_its_own",
    "cache": "test_a_cached_result_is_judged",
    "direct-call": DIRECT,
    "copied-tool": DIRECT,
    "added-later": "test_tools_that_come_later_are_governed",
    "nested-agent": "test_delegation_is_governed_and_so_is_what_the_coworker_does",
    "provider-side": "test_tools_at_the_provider_are_refused",
}


def test_the_inventory_is_whole():
    """Every public callable of CrewAI's classes was looked at, and the checklist is covered."""
    tests = {
        each.name
        for path in Path(__file__).parent.glob("test_*.py")
        for each in ast.parse(path.read_text()).body
        if isinstance(each, ast.FunctionDef)
    }
    classes = [Crew, Agent, Task, BaseTool, Tool, CrewStructuredTool]
    assert [] == unlisted(classes, reaches=REACHES, harmless=HARMLESS, driven=tests)
    assert [] == uncovered(DRIVEN)
    assert set() == set(DRIVEN.values()) - tests


def test_calls_of_one_turn_are_judged_one_by_one(stage, guard_of, erase, ran):
    """Of calls that run in threads of their own, the denied one alone does not run."""
    rule = {"id": "b", "match": {"tool": "erase", "args.name": "b"}, "decision": "deny"}
    calls = [("erase", json.dumps({"name": name})) for name in "abc"]
    stage.script(a=[calls])
    govern(stage.crew(stage.agent(tools=[tool(erase)])), guard_of(rule)).kickoff()
    assert [("a", False), ("c", False)] == sorted(ran)


def cached(both, erase, *calls):
    """A crew that keeps results, and a model that makes calls."""
    other = ("look", '{"at": "x"}')
    both.script(a=[each for call in calls for each in (call, other)])

    def look(at: str) -> str:
        """Look at something, so that no call repeats the last one."""
        return at

    return both.crew(both.agent(tools=[tool(erase), tool(look)]), fields={"cache": True})


def test_a_cached_result_is_served_as_ungoverned(both, guard_of, erase, ran, record):
    """A call that the policy allows gets its result out of the crew's cache."""
    crew = cached(both, erase, ERASE, ERASE)
    govern(crew, guard_of()).kickoff()
    assert [("a", False)] == ran
    assert 2 == [each["tool"] for each in record.bodies("action.completed")].count("erase")


@pytest.mark.parametrize("how", ["govern", "hooks"])
def test_a_cached_result_is_judged(both, guard_of, erase, ran, record, how):
    """A call that the policy denies gets nothing out of the crew's cache."""
    crew = cached(both, erase, ERASE, ERASE)
    rule = {"id": "once", "match": {"tool": "erase"}, "decision": "approve_required"}
    answers = iter([True, False])

    def ask(request):
        return ApprovalDecision(next(answers), "ana")

    guard = guard_of(rule, on_approval=ask)
    if how == "govern":
        govern(crew, guard).kickoff()
    else:
        with adjudge_hooks(guard):
            crew.kickoff()
    assert [("a", False)] == ran
    ends = [event for event in record.events if event.body.get("tool") == "erase"]
    assert "action.denied" == ends[-1].kind


@pytest.mark.parametrize("how", ["govern", "hooks"])
def test_what_was_cached_before_is_judged(both, guard_of, erase, ran, how):
    """A result that was kept before there was a guard is served to no call that it denies."""
    crew = cached(both, erase, ERASE)
    crew.kickoff()
    told = len(both.requests)
    guard = guard_of(NO)
    if how == "govern":
        govern(crew, guard).kickoff()
    else:
        with adjudge_hooks(guard):
            crew.kickoff()
    assert [("a", False)] == ran
    later = [request.outputs for request in both.requests[told:]]
    assert all(not text.startswith("erased") for each in later for text in each.values())


@pytest.mark.parametrize("verdict", ["deny", "dry_run", "transform"])
def test_what_is_no_plain_result_is_not_kept(both, guard_of, erase, ran, verdict):
    """A denial, a preview and the result of a rewritten call are in no cache."""
    rule = {"id": "r", "match": {"tool": "erase", "args.hard": True}, "decision": verdict}
    if verdict == "transform":
        rule["transform"] = {"jsonpath": "$.args.hard", "set": False}
    hard = ("erase", '{"name": "a", "hard": true}')
    crew = cached(both, erase, hard)
    govern(crew, guard_of(rule, shadows={"erase": lambda **args: args})).kickoff()
    cache = crew._cache_handler
    assert cache.read("erase", '{"name": "a", "hard": true}') is None
    assert "x" == cache.read("look", '{"at": "x"}')


def test_a_governed_tool_leaves_nothing_in_a_cache_that_is_not(both, guard_of, erase, ran):
    """In a crew that is not governed, a governed tool's results are not kept."""
    crew = cached(both, govern(tool(erase), guard_of()).func, ERASE, ERASE)
    crew.agents[0].tools[0] = govern(tool(erase), guard_of())
    crew.kickoff()
    assert [("a", False), ("a", False)] == ran


class Shelf(Memory):
    """A memory that finds nothing by itself, and keeps what it is told to."""

    kept: list[str] = Field(default_factory=list)

    def recall(self, *_: Any, **__: Any) -> list[Any]:
        """Find nothing."""
        return []

    def extract_memories(self, *_: Any, **__: Any) -> list[str]:
        """Learn nothing."""
        return []

    def remember(self, content: str, *_: Any, **__: Any) -> Any:
        """Keep something."""
        self.kept.append(content)
        return MemoryRecord(content=content)


@pytest.mark.parametrize("verdict", ["allow", "deny"])
@pytest.mark.parametrize("alone", [True, False])
def test_tools_for_memory_are_governed(both, guard_of, record, tmp_path, verdict, alone):
    """What is added for the memory of a crew or an agent is governed."""
    both.script(a=[("save_to_memory", '{"contents": ["x"]}')])
    shelf = Shelf(llm=both.agent().llm, embedder=lambda texts: [[0.0]], storage=str(tmp_path / "m"))
    rule = {"id": "r", "match": {"tool": "save_to_memory"}, "decision": verdict}
    guard = guard_of(rule, rest="deny")
    if alone:
        govern(both.agent(memory=shelf), guard).kickoff("Go.")
    else:
        govern(both.crew(both.agent(), fields={"memory": shelf}), guard).kickoff()
    assert (["x"] if verdict == "allow" else []) == shelf.kept
    assert ["save_to_memory"] == [each["tool"] for each in record.bodies("step.proposed")]


@pytest.mark.parametrize("verdict", ["allow", "deny"])
@pytest.mark.parametrize("alone", [True, False])
def test_tools_of_a_server_are_governed(both, guard_of, record, tmp_path, verdict, alone):
    """A tool of an MCP server is known by its own name there, and the server's."""
    log = tmp_path / "ran.txt"
    server = Path(__file__).with_name("mcp_notes.py")
    mcp = MCPServerStdio(command=sys.executable, args=[str(server), str(log)])
    both.script(a=[])
    agent = both.agent(mcps=[mcp])
    (found,) = [each for each in agent.get_mcp_tools([mcp]) if each.original_tool_name == "erase"]
    name = sanitize_tool_name(found.name)
    both.script(a=[(name, '{"name": "a"}')])
    rule = {"id": "r", "match": {"tool": "erase", "tool.namespace": found.server_name}}
    guard = guard_of({**rule, "decision": verdict}, rest="deny")
    agent = govern(both.agent(mcps=[mcp]), guard)
    if alone:
        agent.kickoff("Go.")
    else:
        both.crew(agent).kickoff()
    ran = log.read_text().splitlines() if log.exists() else []
    assert (["erase a False"] if verdict == "allow" else []) == ran
    assert [found.server_name] == [e["namespace"] for e in record.bodies("step.proposed")]


def test_tools_of_apps_are_governed(stage, guard_of, erase, ran):
    """Whatever an agent gets of an app's tools is governed."""

    class WithApps(Agent):
        def get_platform_tools(self, apps: Any) -> list[BaseTool]:
            return [tool(erase)]

    stage.script(a=[ERASE])
    plain = stage.agent()
    agent = WithApps(role="a", goal="x", backstory="x", llm=plain.llm, apps=["gmail"])
    stage.crew(govern(agent, guard_of(NO))).kickoff()
    assert [] == ran


def test_a_restored_crew_is_governed(stage, guard_of, erase, ran, tmp_path):
    """A crew or an agent of a checkpoint is governed as the one that was saved."""
    from crewai.state.checkpoint_config import CheckpointConfig

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
            self._scope = scoped_hooks()
            self._scope.__enter__()
            super().create_agent_executor(tools, task)

    stage.script(a=[ERASE])
    plain = stage.agent(tools=[tool(erase)])
    agent = Scoped(role="a", goal="x", backstory="x", llm=plain.llm, tools=[tool(erase)])
    govern(stage.crew(agent), guard_of(NO)).kickoff()
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
