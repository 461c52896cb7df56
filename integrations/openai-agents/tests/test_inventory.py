"""What the SDK has beside agents and function tools: an inventory that notices what is new.

`test_bypasses.py` has the one of agents, runners, handoffs and function tools.
"""

import dataclasses
import re
from pathlib import Path
from typing import get_args, get_origin

import agents
from agents import (
    AgentBase,
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    FunctionTool,
    LocalShellTool,
    ShellTool,
)
from agents.editor import ApplyPatchEditor
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession
from agents.sandbox import SandboxAgent

from adjudge_conformance.inventory import public_callables, unlisted

REACHES = {
    "RealtimeAgent": {
        "clone": "test_realtime::test_a_tool_that_an_agent_gets_later_is_governed",
        "get_all_tools": "test_realtime::test_what_it_answers_is_governed",
        "get_mcp_tools": "test_realtime::test_an_mcp_servers_tools_are_governed",
    },
    "RealtimeRunner": {"run": "test_realtime::test_a_denied_one_does_not"},
    "RealtimeSession": {
        "enter": "test_realtime::test_a_denied_one_does_not",
        "on_event": "test_realtime::test_a_denied_one_does_not",
        "approve_tool_call": "test_realtime::test_an_approval_of_its_own_opens_no_way_round",
        "update_agent": "test_realtime::test_an_agent_that_a_session_is_given_later_has_its_guard",
    },
    "SandboxAgent": {
        "as_tool": "test_graph::test_the_inner_agents_tools_are_governed",
        "clone": "test_sandbox::test_commands_are_judged_each",
        "get_all_tools": "test_sandbox::test_commands_are_judged_each",
        "get_mcp_tools": "test_graph::test_a_servers_tools_are_governed",
    },
    "CustomTool": {},
    "ShellTool": {},
    "LocalShellTool": {},
    "ApplyPatchTool": {},
    "ApplyPatchEditor": {
        "create_file": "test_kinds::test_direct_calls_are_governed",
        "update_file": "test_kinds::test_direct_calls_are_governed",
        "delete_file": "test_kinds::test_direct_calls_are_governed",
    },
}
HARMLESS = {
    "RealtimeAgent": {"get_system_prompt": "reads the instructions"},
    "RealtimeSession": {
        "close": "ends the session",
        "interrupt": "stops the model's speech",
        "reject_tool_call": "gives the model a text",
        "send_audio": "reaches the model alone",
        "send_message": "reaches the model alone",
    },
    "SandboxAgent": {
        "get_prompt": "reads the prompt's configuration",
        "get_system_prompt": "reads the instructions",
    },
    "CustomTool": {
        "runtime_needs_approval": "comes before the body, which is judged after it",
        "runtime_on_approval": "comes before the body, which is judged after it",
    },
}
"""By class, the public callables that reach a body and the test that drives each; and the rest."""

BODIES = {
    CustomTool: "on_invoke_tool",
    ShellTool: "executor",
    LocalShellTool: "executor",
    ApplyPatchTool: "editor",
}
"""The field of each kind that holds its body."""

FIELDS = {
    "needs_approval": "comes before the body, which is judged after it",
    "on_approval": "comes before the body, which is judged after it",
    "custom_data_extractor": "sees the answer",
}
"""The other fields that hold callables."""

GOVERNED = {FunctionTool, *BODIES}
REFUSED = {ComputerTool}
NO_BODY = {agents.ToolSearchTool}
AT_THE_PROVIDER = {
    agents.CodeInterpreterTool,
    agents.FileSearchTool,
    agents.HostedMCPTool,
    agents.ImageGenerationTool,
    agents.ProgrammaticToolCallingTool,
    agents.WebSearchTool,
}


def known_tests():
    """Name every test of this folder by its module."""
    return {
        f"{path.stem}::{name}"
        for path in Path(__file__).parent.glob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }


def test_every_public_callable_is_listed():
    """Law 3: a callable that a release of the SDK adds fails until somebody has looked at it."""
    classes = [RealtimeAgent, RealtimeRunner, RealtimeSession, SandboxAgent, *BODIES]

    assert [] == unlisted(
        [*classes, ApplyPatchEditor], reaches=REACHES, harmless=HARMLESS, driven=known_tests()
    )


def test_every_callable_field_of_a_tool_is_listed():
    """Law 3: so does a field of a tool that holds a callable."""
    found = {
        (kind, field.name)
        for kind in BODIES
        for field in dataclasses.fields(kind)
        if any(
            word in str(field.type) for word in ("Callable", "Function", "Executor", "Extractor")
        )
    }

    assert {(kind, name) for kind, name in BODIES.items() if name != "editor"} <= found
    assert {name for _, name in found} <= FIELDS.keys() | set(BODIES.values())


def test_every_kind_of_tool_is_listed():
    """Law 3: a kind of tool that a release of the SDK adds is governed, or refused, by name."""
    kinds = {get_origin(kind) or kind for kind in get_args(agents.Tool)}

    assert GOVERNED | REFUSED | NO_BODY | AT_THE_PROVIDER == kinds


def test_every_kind_of_agent_is_listed():
    """Law 3: so does a kind of agent."""

    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    of_the_sdk = {each for each in below(AgentBase) if each.__module__.startswith("agents.")}

    assert {"AgentBase", "Agent", "RealtimeAgent", "SandboxAgent"} == {
        each.__name__ for each in of_the_sdk
    }
    assert public_callables(SandboxAgent) == public_callables(agents.Agent)
