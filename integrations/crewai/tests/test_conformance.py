"""The shared suite on the real CrewAI, its real client and its own loop."""

import asyncio
import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from crewai import LLM, Agent, Crew, Task
from crewai.llms.providers.openai.completion import OpenAICompletion
from crewai.tools import tool
from crewai.types.streaming import CrewStreamingOutput
from crewai.utilities.i18n import I18N_DEFAULT

from adjudge import ToolGuard
from adjudge_conformance import Agent as SuiteAgent
from adjudge_conformance import Conformance, Driver, Gap, GivenAnswer, Outcome, Scene, Style
from adjudge_conformance.wire import Api
from adjudge_crewai import PauseInside, RunPaused, govern, resume

CALLER: ContextVar[Any] = ContextVar("caller")
"""CrewAI has no context of a run: its users set one around it."""

_REMARK = I18N_DEFAULT.slice("post_tool_reasoning")
_UNREAD = Gap(
    "CrewAI answers argument text that is no object before any of its hooks, so nothing is on "
    "record; no body runs",
    "https://github.com/crewAIInc/crewAI/pull/6516",
)

Target = tuple[Crew, Scene]


class TextLLM(OpenAICompletion):
    """A model that cannot call functions, with which CrewAI speaks in ReAct's words.

    It is not told how to think about an observation, so that this is the last of what it is told.
    """

    def supports_function_calling(self) -> bool:
        """It does not."""
        return False

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        """Ask the model."""
        told = [message for message in messages if message["content"] != _REMARK]
        return super().call(told, *args, **kwargs)


class CrewAIDriver(Driver[Target]):
    """How a crew is built and run, with native function calling."""

    name = "crewai"
    version = importlib.metadata.version("crewai")
    styles = (Style.SYNC, Style.ASYNC)
    apis: tuple[Api, ...] = ("chat", "responses")
    gaps: Mapping[str, Gap] = {
        "arguments.no-json": _UNREAD,
        "arguments.no-object": _UNREAD,
        "pause.native-approval-alone": Gap(
            "CrewAI has no approval of a tool call of its own",
            "https://github.com/crewAIInc/crewAI/issues/6859",
        ),
    }

    scrubs: Mapping[str, str] = {
        "transcript.failures.*.task_id": "CrewAI gives each task an id of its own",
    }

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Target:
        """Make the crew, governed if there is a guard."""
        return _crew(scene.agent, scene, base_url, guard), scene

    def run(self, target: Target, style: Style) -> Outcome:
        """Run the crew in the framework's own loop."""
        crew, scene = target
        CALLER.set(scene.caller)
        crew.stream = style.streamed
        if style.is_sync:
            return _outcome(lambda kinds: _read(crew.kickoff(), kinds))
        return _outcome(lambda kinds: asyncio.run(_aread(crew, kinds)))

    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give what the framework tells its user."""
        output = outcome.native
        return {
            "type": type(output).__name__,
            "usage": output.token_usage.model_dump(),
            "history": [task.messages for task in output.tasks_output],
            "failures": [
                f.model_dump(mode="json") for t in output.tasks_output for f in t.tool_failures
            ],
        }

    def save(self, outcome: Outcome) -> bytes:
        """Give what the integration has its user save."""
        return json.dumps(outcome.native).encode()

    def resume(self, target: Target, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Go on with a saved run."""
        crew, scene = target
        CALLER.set(scene.caller)
        state = json.loads(saved)
        given = {_waiting(state, answer): answer.decision for answer in answers}
        return _outcome(lambda _: resume(crew, state, given))


def _crew(made: SuiteAgent, scene: Scene, base_url: str, guard: ToolGuard | None) -> Crew:
    tools = [tool(each.function) for each in made.tools]
    tools += [_asking(helper, scene, base_url, guard) for helper in made.helpers]
    agent = Agent(
        role=made.name,
        goal=made.instructions,
        backstory="A careful clerk.",
        tools=tools,
        llm=_llm(made.name, scene.api, base_url),
    )
    task = Task(description=scene.prompt, expected_output="A short answer.", agent=agent)
    crew = Crew(agents=[agent], tasks=[task])
    if guard is None:
        return crew
    context = None if scene.caller is None else (lambda _: CALLER.get())
    return govern(crew, guard, context=context)


def _llm(name: str, api: str, base_url: str) -> Any:
    if api == "react":
        return TextLLM(model=name, base_url=base_url, api_key="none")
    kind = "responses" if api == "responses" else "completions"
    return LLM(model=f"openai/{name}", base_url=base_url, api_key="none", api=kind)


def _asking(helper: SuiteAgent, scene: Scene, base_url: str, guard: ToolGuard | None) -> Any:
    def ask(input: str) -> str:
        """Ask the helper."""
        asked = Scene(helper, input, scene.api, scene.caller)
        return str(_crew(helper, asked, base_url, guard).kickoff().raw)

    ask.__name__ = helper.name
    return tool(ask)


def _waiting(state: Mapping[str, Any], answer: GivenAnswer) -> str:
    """Find what an answer is about; in ReAct calls have no ids, and one waits at a time."""
    calls = [call for call in state["calls"] if call["tool"] == answer.tool]
    return next(call["id"] for call in calls if call["call_id"] in (answer.call_id, None))


def _outcome(run: Callable[[list[str]], Any]) -> Outcome:
    kinds: list[str] = []
    try:
        output = run(kinds)
    except RunPaused as paused:
        return Outcome(None, paused.state, True, tuple(kinds))
    except PauseInside as carried:
        return Outcome(None, carried.paused.state, True, tuple(kinds))
    return Outcome(output.raw, output, stream=tuple(kinds))


def _read(output: Any, kinds: list[str]) -> Any:
    if not isinstance(output, CrewStreamingOutput):
        return output
    kinds += [chunk.chunk_type.value for chunk in output]
    return output.result


async def _aread(crew: Crew, kinds: list[str]) -> Any:
    try:
        output = await crew.akickoff()
        if not isinstance(output, CrewStreamingOutput):
            return output
        kinds += [chunk.chunk_type.value async for chunk in output]
        return output.result
    finally:
        # The loop ends here, and nothing of CrewAI's closes what its clients have open in it.
        for agent in crew.agents:
            if agent.llm._async_client is not None:
                await agent.llm._async_client.close()


class TestConformance(Conformance):
    """CrewAI governs as core does."""

    driver = CrewAIDriver


class StreamedDriver(CrewAIDriver):
    """How a crew is built and streamed.

    With the Responses API CrewAI loses streamed calls, governed or not:
    https://github.com/crewAIInc/crewAI/issues/7497
    """

    name = "crewai-streamed"
    styles = (Style.SYNC_STREAM, Style.ASYNC_STREAM)
    apis = ("chat",)


class TestStreamed(Conformance):
    """CrewAI's streams govern as core does."""

    driver = StreamedDriver


_SOURCES = "https://github.com/crewAIInc/crewAI/blob/1.15.30/lib/crewai/src/crewai"
_REPAIRED = Gap(
    "CrewAI repairs the text of arguments before anybody else sees it; the repaired ones are "
    "judged, and run",
    f"{_SOURCES}/agents/parser.py",
)
_SIX_TIMES = Gap(
    "CrewAI's text path tries a body that raises six times; each is an attempt, judged anew",
    "https://github.com/crewAIInc/crewAI/issues/7449",
)
_REPEATED = Gap(
    "CrewAI's text path answers a call that repeats the last one itself, and calls nothing",
    "https://github.com/crewAIInc/crewAI/issues/2881",
)
_REMINDED = Gap(
    "CrewAI's text path writes a reminder of the format under every third result",
    f"{_SOURCES}/tools/tool_usage.py",
)


class ReActDriver(CrewAIDriver):
    """How a crew is built and run, with ReAct's text."""

    name = "crewai-react"
    styles = (Style.SYNC, Style.ASYNC)
    apis = ("react",)
    gaps: Mapping[str, Gap] = {
        "allow.turn-after-turn": _REPEATED,
        "approve.one-grant-one-call": _REPEATED,
        "arguments.duplicate-keys": _REPAIRED,
        "arguments.no-json": _REPAIRED,
        "arguments.no-object": _UNREAD,
        "arguments.rejected-by-the-schema": _SIX_TIMES,
        "failure.is-on-record": _SIX_TIMES,
        "failure.after-a-grant": _SIX_TIMES,
        "pause.in-a-later-turn": _REMINDED,
        "pause.native-approval-alone": CrewAIDriver.gaps["pause.native-approval-alone"],
        "transparent.body-that-raises": _SIX_TIMES,
        "transparent.no-json": _REPAIRED,
    }


class TestReAct(Conformance):
    """CrewAI's text path governs as core does."""

    driver = ReActDriver
