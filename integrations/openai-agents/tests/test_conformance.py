"""The shared suite on the real SDK, its real client and its own loop."""

import asyncio
import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunResult,
    function_tool,
)
from agents.result import RunResultBase
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from adjudge import ToolGuard
from adjudge_conformance import Agent as SuiteAgent
from adjudge_conformance import Conformance, Driver, Gap, GivenAnswer, Outcome, Scene, Style
from adjudge_openai_agents import govern, pending, resume

_NOT_UNICODE = Gap(
    "the SDK fingerprints each call as UTF-8, and so ends the run before any tool is reached",
    "https://github.com/openai/openai-agents-python/blob/main/src/agents/_tool_invocation.py",
)


class OpenAIAgentsDriver(Driver[tuple[Agent[Any], str]]):
    """How an agent of the OpenAI Agents SDK is built and run."""

    name = "openai-agents"
    version = importlib.metadata.version("openai-agents")
    styles = (Style.SYNC, Style.ASYNC, Style.ASYNC_STREAM)
    apis = ("chat", "responses")
    gaps: Mapping[str, Gap] = {"arguments.lone-surrogate": _NOT_UNICODE}

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> tuple[Agent[Any], str]:
        """Make the agent, governed if there is a guard."""
        # No connection outlives its request, so each run may have an event loop of its own.
        closing = {"Connection": "close"}
        client = AsyncOpenAI(
            api_key="none",
            base_url=base_url,
            max_retries=0,
            default_headers=closing,
            http_client=DefaultAsyncHttpxClient(verify=False),  # nothing to verify on loopback
        )
        agent = _agent(scene.agent, scene.api, client)
        return agent if guard is None else govern(agent, guard), scene.prompt

    def run(self, target: tuple[Agent[Any], str], style: Style) -> Outcome:
        """Run the agent in the SDK's own loop."""
        agent, prompt = target
        config = RunConfig(tracing_disabled=True)
        if style.is_sync:
            return _from_plain_code(lambda: Runner.run_sync(agent, prompt, run_config=config))
        if not style.streamed:
            return _outcome(asyncio.run(Runner.run(agent, prompt, run_config=config)))
        return asyncio.run(_streamed(agent, prompt, config))

    def save(self, outcome: Outcome) -> bytes:
        """Give the SDK's own state, and under which ids which calls wait."""
        result: RunResult = outcome.native
        state = result.to_state().to_json()
        ids = {each.call_id: each.id for each in pending(result)}
        return json.dumps({"state": state, "ids": ids}).encode()

    def resume(
        self, target: tuple[Agent[Any], str], saved: bytes, answers: Sequence[GivenAnswer]
    ) -> Outcome:
        """Go on with the SDK's own state."""
        state = json.loads(saved)
        given = {state["ids"][answer.call_id]: answer.decision for answer in answers}
        config = RunConfig(tracing_disabled=True)
        return _outcome(asyncio.run(resume(target[0], state["state"], given, run_config=config)))

    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give what the SDK tells its user."""
        result: RunResultBase = outcome.native
        usage = result.context_wrapper.usage
        return {
            "type": type(result.final_output).__name__,
            "usage": [usage.requests, usage.input_tokens, usage.output_tokens],
            "history": result.to_input_list(),
            "items": [item.type for item in result.new_items],
            "last agent": result.last_agent.name,
        }


def _agent(made: SuiteAgent, api: str, client: AsyncOpenAI) -> Agent[Any]:
    model = OpenAIChatCompletionsModel if api == "chat" else OpenAIResponsesModel
    helpers = [_agent(helper, api, client) for helper in made.helpers]
    return Agent(
        name=made.name,
        instructions=made.instructions,
        model=model(made.name, client),
        # A mapping of any labels has no strict schema.
        tools=[function_tool(each.function, strict_mode=False) for each in made.tools]
        + [helper.as_tool(helper.name, "Ask the helper.") for helper in helpers],
    )


def _outcome(result: RunResultBase, stream: tuple[str, ...] = ()) -> Outcome:
    paused = bool(getattr(result, "interruptions", ()))
    final = None if paused else str(result.final_output)
    return Outcome(final=final, native=result, paused=paused, stream=stream)


def _from_plain_code(run: Callable[[], RunResultBase]) -> Outcome:
    """Give each blocking run a loop of its own: the SDK's is no good for a second run."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return _outcome(run())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _streamed(agent: Agent[Any], prompt: str, config: RunConfig) -> Outcome:
    result = Runner.run_streamed(agent, prompt, run_config=config)
    kinds = [f"{event.type}.{getattr(event, 'name', '')}" async for event in result.stream_events()]
    return _outcome(result, tuple(kinds))


class TestConformance(Conformance):
    """The OpenAI Agents SDK governs as core does."""

    driver = OpenAIAgentsDriver
