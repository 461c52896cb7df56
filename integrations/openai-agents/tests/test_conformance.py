"""The shared suite on the real SDK, its real client and its own loop."""

import asyncio
from collections.abc import Mapping
from typing import Any

from adjudge_conformance import Conformance, Driver, Gap, Outcome, Style
from adjudge_conformance.driver import Agent as SuiteAgent
from adjudge_conformance.driver import Scene
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
)
from agents.result import RunResultBase
from openai import AsyncOpenAI

from adjudge import ToolGuard
from adjudge_openai_agents import govern

_PAUSE = Gap(
    "the SDK can pause a run, and this version of the integration refuses a guard that would",
    "https://openai.github.io/openai-agents-python/human_in_the_loop/",
)


class OpenAIAgentsDriver(Driver[tuple[Agent[Any], str]]):
    """How an agent of the OpenAI Agents SDK is built and run."""

    name = "openai-agents"
    styles = (Style.SYNC, Style.ASYNC, Style.ASYNC_STREAM)
    apis = ("chat", "responses")
    gaps: Mapping[str, Gap] = {"pause.*": _PAUSE}

    def build(
        self, scene: Scene, base_url: str, guard: ToolGuard | None
    ) -> tuple[Agent[Any], str]:
        """Make the agent, governed if there is a guard."""
        client = AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0)
        agent = _agent(scene.agent, scene.api, client)
        return agent if guard is None else govern(agent, guard), scene.prompt

    def run(self, target: tuple[Agent[Any], str], style: Style) -> Outcome:
        """Run the agent in the SDK's own loop."""
        agent, prompt = target
        config = RunConfig(tracing_disabled=True)
        if style.is_sync:
            return _outcome(Runner.run_sync(agent, prompt, run_config=config))
        if not style.streamed:
            return _outcome(asyncio.run(Runner.run(agent, prompt, run_config=config)))
        return asyncio.run(_streamed(agent, prompt, config))

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
    return Outcome(final=str(result.final_output), native=result, stream=stream)


async def _streamed(agent: Agent[Any], prompt: str, config: RunConfig) -> Outcome:
    result = Runner.run_streamed(agent, prompt, run_config=config)
    kinds = [f"{event.type}.{getattr(event, 'name', '')}" async for event in result.stream_events()]
    return _outcome(result, tuple(kinds))


class TestConformance(Conformance):
    """The OpenAI Agents SDK governs as core does."""

    driver = OpenAIAgentsDriver
