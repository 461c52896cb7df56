"""Tools that nobody lists: what crews, agents and executors add by themselves."""

import contextlib
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent
from crewai.mcp import MCPServerHTTP, MCPServerSSE, MCPServerStdio
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory
from crewai.tools import BaseTool, tool
from crewai.tools.mcp_tool_wrapper import MCPToolWrapper
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import BaseModel, Field

from adjudge_crewai import govern

NO = {"id": "no", "match": {"tool": "erase"}, "decision": "deny", "reason": "notes are kept"}
ERASE = ("erase", '{"name": "a"}')


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


# CrewAI's own record of a memory says when it was made, in a way that Python 3.12 advises against.
@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
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
    assert (["erase a False"] if verdict == "allow" else []) == written(log)
    assert [found.server_name] == [e["namespace"] for e in record.bodies("step.proposed")]


@pytest.fixture
def remote(tmp_path):
    """Start an MCP server on the network: give its address, and the file of what it ran."""
    log = tmp_path / "ran.txt"
    program = Path(__file__).with_name("mcp_notes.py")
    with contextlib.ExitStack() as stack:

        def start(transport: str) -> tuple[str, Path]:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            command = [sys.executable, str(program), str(log), transport, str(port)]
            server = stack.enter_context(
                subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            )
            stack.callback(server.stderr.read)
            stack.callback(server.terminate)
            assert any("running on" in line for line in server.stderr)
            return f"http://localhost:{port}/{'sse' if transport == 'sse' else 'mcp'}", log

        yield start


@pytest.mark.parametrize("verdict", ["allow", "deny"])
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
def test_tools_of_a_server_on_the_network_are_governed(
    stage, guard_of, record, remote, transport, verdict
):
    """A tool of a remote MCP server is governed as one of a local server, in either transport."""
    url, log = remote(transport)
    mcp = MCPServerSSE(url=url) if transport == "sse" else MCPServerHTTP(url=url)
    stage.script(a=[])
    (found,) = stage.agent().get_mcp_tools([mcp])
    stage.script(a=[(sanitize_tool_name(found.name), '{"name": "a"}')])
    rule = {"id": "r", "match": {"tool": "erase", "tool.namespace": found.server_name}}
    guard = guard_of({**rule, "decision": verdict}, rest="deny")
    stage.crew(govern(stage.agent(mcps=[mcp]), guard)).kickoff()
    assert (["erase a False"] if verdict == "allow" else []) == written(log)
    assert ["erase"] == [each["tool"] for each in record.bodies("step.proposed")]


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_a_wrapper_of_a_servers_tool_is_governed(stage, guard_of, record, remote, verdict):
    """What CrewAI makes of the address of an MCP server has the names of the server, too."""
    url, log = remote("streamable-http")

    class Erased(BaseModel):
        name: str

    about = {"args_schema": Erased, "description": "Erase a note."}
    made = MCPToolWrapper({"url": url}, "erase", about, "notes_at_home")
    stage.script(a=[("notes_at_home_erase", '{"name": "a"}')])
    rule = {"id": "r", "match": {"tool": "erase", "tool.namespace": "notes_at_home"}}
    guard = guard_of({**rule, "decision": verdict}, rest="deny")
    govern(stage.crew(stage.agent(tools=[made])), guard).kickoff()
    assert (["erase a False"] if verdict == "allow" else []) == written(log)
    assert ["notes_at_home"] == [e["namespace"] for e in record.bodies("step.proposed")]


def written(log: Path) -> list[str]:
    """What a server ran."""
    return log.read_text().splitlines() if log.exists() else []


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


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_the_loader_of_skills_is_governed(both, guard_of, record, tmp_path, verdict):
    """What an executor adds for an agent's skills is governed."""
    skill = tmp_path / "tidy"
    skill.mkdir()
    text = "---\nname: tidy\ndescription: How to tidy up.\n---\nThrow nothing away.\n"
    (skill / "SKILL.md").write_text(text)
    both.script(a=[("load_skill", '{"skill_name": "tidy"}')])
    rule = {"id": "r", "match": {"tool": "load_skill"}, "decision": verdict}
    govern(both.crew(both.agent(skills=[tmp_path])), guard_of(rule, rest="deny")).kickoff()
    assert ("Throw nothing away" in both.said[0]) is (verdict == "allow")
    ends = {"allow": "action.completed", "deny": "action.denied"}
    assert [ends[verdict]] == record.ends


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_the_tool_for_images_is_governed(stage, guard_of, record, verdict):
    """What a crew adds for an agent that looks at images is governed."""
    name = "add_image_to_content"
    stage.script(a=[(name, '{"image_url": "https://example.org/a.png"}')])
    rule = {"id": "r", "match": {"tool": name}, "decision": verdict}
    agent = stage.agent(multimodal=True)
    govern(stage.crew(agent), guard_of(rule, rest="deny")).kickoff()
    ends = {"allow": "action.completed", "deny": "action.denied"}
    assert [ends[verdict]] == record.ends


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_the_reader_of_long_results_is_governed(stage, guard_of, record, verdict, monkeypatch):
    """What an executor adds, where it does, for a result that is too long is governed."""

    def look(at: str) -> str:
        """Look at something."""
        return "long " * 60_000

    reader = "read_a_deferred_tool_result"
    stage.script(a=[("look", '{"at": "x"}'), (reader, '{"file_path": "x", "line_count": 1}')])
    rule = {"id": "r", "match": {"tool": reader}, "decision": verdict}
    agent = stage.agent(tools=[tool(look)])
    monkeypatch.setattr(type(agent.llm), "get_context_window_size", lambda _: 10_000)
    look_at = {"id": "look", "match": {"tool": "look"}, "decision": "allow"}
    govern(stage.crew(agent), guard_of(rule, look_at, rest="deny")).kickoff()
    there = find_spec("crewai.tools.agent_tools.deferred_tool_result_reader") is not None
    ends = {"allow": "action.completed", "deny": "action.denied"}
    assert ["action.completed", ends[verdict]][: 1 + there] == record.ends
