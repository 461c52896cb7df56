"""The inventory of CrewAI's classes, which notices a new way to a body; and the checklist."""

import ast
from pathlib import Path

from crewai import Agent, Crew, Task
from crewai.tools import BaseTool
from crewai.tools.base_tool import Tool
from crewai.tools.structured_tool import CrewStructuredTool
from pydantic import BaseModel

from adjudge_conformance.inventory import public_callables, uncovered, unlisted

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
