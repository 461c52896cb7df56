"""A real CrewAI crew runs as a whole, and its answer is the run's."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Before CrewAI is imported: it would report to its makers, and keep files in the home directory.
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TESTING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "HOME": tempfile.mkdtemp(prefix="crewai-home-"),
    "SSL_CERT_DIR": tempfile.gettempdir(),
    "SSL_CERT_FILE": "",
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

from adjudge import GovernError, ToolSet, compile_policy
from adjudge_conformance.wire import Exchange, Script, ScriptedCall, ScriptedServer, Turn
from adjudge_runtime import FinalAnswer, Message, run_agent
from adjudge_runtime.adapters import CrewAIAgent

pytestmark = [
    pytest.mark.filterwarnings("ignore:::crewai"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
ALLOW = compile_policy(
    {"version": 1, "rules": [{"id": "all", "match": "always", "decision": "allow"}]}
)
ERASED: list[str] = []


@tool
def erase(name: str) -> str:
    """Erase a file."""
    ERASED.append(name)
    return "erased"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Exchange]:
    """A scripted model service."""
    turns = {
        "clerk": [Turn(text="All sorted.")],
        "eraser": [Turn((ScriptedCall("erase", '{"name": "a"}'),)), Turn(text="Erased.")],
    }
    with ScriptedServer() as server:
        yield server.open(Script(turns), api="chat", log=tmp_path / "requests.jsonl")


def crew_of(service: Exchange, model: str = "clerk", tools: Any = (), **settings: Any) -> Crew:
    """A crew of one clerk."""
    llm = LLM(model=f"openai/{model}", base_url=service.base_url, api_key="none")
    agent = Agent(role="Clerk", goal="Sort.", backstory="b", llm=llm, tools=list(tools))
    task = Task(description="Do: {task}", expected_output="A word.", agent=agent)
    return Crew(agents=[agent], tasks=[task], **settings)


async def test_a_crew_answers_once_with_the_task_as_its_input(service: Exchange) -> None:
    """The usage is what CrewAI counted."""
    action = await CrewAIAgent(crew_of(service)).step((Message("user", "sort the post"),))

    assert isinstance(action, FinalAnswer)
    assert ("All sorted.", 20, 5) == (
        action.text,
        action.usage.input_tokens,
        action.usage.output_tokens,
    )
    assert "Do: sort the post" in service.requests[0].conversation


async def test_run_agent_ends_with_the_crews_answer(service: Exchange) -> None:
    """It is asked once."""
    result = await run_agent(
        CrewAIAgent(crew_of(service)), "sort the post", tools=ToolSet(), policy=ALLOW
    )

    assert ("All sorted.", "", 1) == (result.final_answer, result.code, len(service.requests))


async def test_what_the_crew_raises_ends_the_run(service: Exchange) -> None:
    """As `agent_failed`."""
    crew = crew_of(service, model="nobody")

    result = await run_agent(CrewAIAgent(crew), "sort", tools=ToolSet(), policy=ALLOW)

    assert ("agent_failed", None) == (result.code, result.final_answer)


def test_a_crew_with_tools_is_refused(service: Exchange) -> None:
    """It would run them past the policy (law 3)."""
    with pytest.raises(GovernError, match="erase"):
        CrewAIAgent(crew_of(service, tools=[erase]))


async def test_who_says_who_governs_them_may_have_tools(service: Exchange) -> None:
    """The crew runs them itself."""
    ERASED.clear()
    agent = CrewAIAgent(crew_of(service, "eraser", [erase]), tools_inside="ungoverned")

    action = await agent.step((Message("user", "erase a"),))

    assert ("Erased.", ["a"]) == (action.text, ERASED)


async def test_a_crew_that_streams_is_an_error(service: Exchange) -> None:
    """There is no answer yet when it is kicked off."""
    agent = CrewAIAgent(crew_of(service, stream=True))

    with pytest.raises(GovernError, match="stream=False"):
        await agent.step((Message("user", "sort"),))


def test_what_is_no_crew_is_refused() -> None:
    """With the way to make one."""
    with pytest.raises(GovernError, match=r"crewai\.Crew"):
        CrewAIAgent("crew")
