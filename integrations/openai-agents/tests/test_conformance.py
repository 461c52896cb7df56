"""The shared suite on the real SDK, its real client and its own loop."""

import asyncio
import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    RunResult,
    RunState,
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


Target: TypeAlias = tuple[Agent[Any], Scene]


class OpenAIAgentsDriver(Driver[Target]):
    """How an agent of the OpenAI Agents SDK is built and run."""

    name = "openai-agents"
    version = importlib.metadata.version("openai-agents")
    styles = (Style.SYNC, Style.ASYNC, Style.ASYNC_STREAM)
    apis = ("chat", "responses")
    gaps: Mapping[str, Gap] = {"arguments.lone-surrogate": _NOT_UNICODE}

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Target:
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
        if guard is not None:
            govern(agent, guard, context=None if scene.caller is None else _caller)
        return agent, scene

    def run(self, target: Target, style: Style) -> Outcome:
        """Run the agent in the SDK's own loop."""
        agent, scene = target
        options = _options(scene)
        if style.is_sync:
            return _from_plain_code(lambda: Runner.run_sync(agent, scene.prompt, **options))
        if not style.streamed:
            return _outcome(asyncio.run(Runner.run(agent, scene.prompt, **options)))
        return asyncio.run(_streamed(agent, scene.prompt, options))

    def save(self, outcome: Outcome) -> bytes:
        """Give the SDK's own state, and under which ids which calls wait."""
        result: RunResult = outcome.native
        ids = {each.call_id: each.id for each in pending(result)}
        state = result.to_state().to_json(context_serializer=lambda _: {})
        return json.dumps({"state": state, "ids": ids}).encode()

    def resume(self, target: Target, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Go on with the SDK's own state."""
        agent, scene = target
        held = json.loads(saved)
        given = {held["ids"][answer.call_id]: answer.decision for answer in answers}
        return _outcome(asyncio.run(resume(agent, held["state"], given, **_options(scene))))

    def approve_natively(self, target: Target, saved: bytes) -> Outcome:
        """Approve what waits by the SDK's own means alone, and go on."""
        agent, scene = target

        async def go_on() -> RunResult:
            held = json.loads(saved)["state"]
            state = await RunState.from_json(agent, held, context_override=scene.caller)
            for item in state.get_interruptions():
                state.approve(item)
            return await Runner.run(agent, state, **_options(scene))

        return _outcome(asyncio.run(go_on()))

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


def _caller(context: RunContextWrapper[Any]) -> Any:
    return context.context


def _options(scene: Scene) -> dict[str, Any]:
    return {"context": scene.caller, "run_config": RunConfig(tracing_disabled=True)}


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


async def _streamed(agent: Agent[Any], prompt: str, options: dict[str, Any]) -> Outcome:
    result = Runner.run_streamed(agent, prompt, **options)
    kinds = [f"{event.type}.{getattr(event, 'name', '')}" async for event in result.stream_events()]
    return _outcome(result, tuple(kinds))


class TestConformance(Conformance):
    """The OpenAI Agents SDK governs as core does."""

    driver = OpenAIAgentsDriver
