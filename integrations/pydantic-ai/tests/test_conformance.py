"""The shared suite on the real PydanticAI, its real client and its own loop."""

import asyncio
import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import TypeAdapter
from pydantic_ai import Agent, AgentRunResult, AgentRunResultEvent, RunContext
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from adjudge import ToolGuard
from adjudge_conformance import Agent as SuiteAgent
from adjudge_conformance import Conformance, Driver, GivenAnswer, Outcome, Scene, Style
from adjudge_pydantic_ai import delegate, govern, pending, resume

REQUESTS = TypeAdapter(DeferredToolRequests)
_IDS = "made anew in each run, and never sent to the model"


Target = tuple[Agent[Any, Any], Scene]


class PydanticAIDriver(Driver[Target]):
    """How an agent of PydanticAI is built and run."""

    name = "pydantic-ai"
    version = importlib.metadata.version("pydantic-ai-slim")
    styles = (Style.SYNC, Style.ASYNC, Style.ASYNC_STREAM)
    apis = ("chat", "responses")
    scrubs: Mapping[str, str] = {
        "transcript.history.*.timestamp": "the time of day",
        "transcript.history.*.provider_url": "the suite's server has an address for each run",
        "transcript.history.*.run_id": _IDS,
        "transcript.history.*.conversation_id": _IDS,
    }

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Target:
        """Make the agents, governed if there is a guard."""
        return _agent(scene.agent, scene, base_url, guard), scene

    def run(self, target: Target, style: Style) -> Outcome:
        """Run the agent in the framework's own loop."""
        agent, scene = target
        given = {"user_prompt": scene.prompt, "deps": scene.caller}
        if style.is_sync:
            return _in_a_loop(lambda: _outcome(agent, agent.run_sync(**given)))
        if not style.streamed:
            return _outcome(agent, asyncio.run(agent.run(**given)))
        return asyncio.run(_streamed(agent, **given))

    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give what the framework tells its user."""
        result, _ = outcome.native
        usage = result.usage
        return {
            "type": type(result.output).__name__,
            "usage": [usage.requests, usage.input_tokens, usage.output_tokens, usage.tool_calls],
            "history": json.loads(result.all_messages_json()),
        }

    def save(self, outcome: Outcome) -> bytes:
        """Give what PydanticAI has its user save, and the ids of what waits."""
        result, ids = outcome.native
        requests = REQUESTS.dump_json(result.output).decode()
        return json.dumps([result.all_messages_json().decode(), requests, ids]).encode()

    def resume(self, target: Target, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Go on with a saved run."""
        agent, scene = target
        messages, requests, ids = _loaded(saved)
        given = {ids[answer.call_id]: answer.decision for answer in answers}
        run = resume(agent, requests, given, message_history=messages, deps=scene.caller)
        return _outcome(agent, asyncio.run(run))

    def approve_natively(self, target: Target, saved: bytes) -> Outcome:
        """Go on with PydanticAI's own approval of all that waits."""
        agent, scene = target
        messages, requests, _ = _loaded(saved)
        results = DeferredToolResults(
            approvals={call.tool_call_id: True for call in requests.approvals},
            metadata=requests.metadata,
        )
        run = agent.run(message_history=messages, deferred_tool_results=results, deps=scene.caller)
        return _outcome(agent, asyncio.run(run))


def _loaded(saved: bytes) -> tuple[list[Any], DeferredToolRequests, dict[str, str]]:
    history, requests, ids = json.loads(saved)
    return ModelMessagesTypeAdapter.validate_json(history), REQUESTS.validate_json(requests), ids


def _agent(
    made: SuiteAgent, scene: Scene, base_url: str, guard: ToolGuard | None
) -> Agent[Any, Any]:
    # No connection outlives its request, so each run may have an event loop of its own.
    client = AsyncOpenAI(
        api_key="none",
        base_url=base_url,
        max_retries=0,
        default_headers={"Connection": "close"},
        http_client=DefaultAsyncHttpxClient(verify=False),  # nothing to verify on loopback
    )
    model = OpenAIChatModel if scene.api == "chat" else OpenAIResponsesModel
    agent = Agent(
        model(made.name, provider=OpenAIProvider(openai_client=client)),
        name=made.name,
        instructions=made.instructions,
        tools=[each.function for each in made.tools],
        output_type=[str, DeferredToolRequests],
    )
    for helper in made.helpers:
        agent.tool(name=helper.name)(_asking(_agent(helper, scene, base_url, guard)))
    if guard is None:
        return agent
    return govern(agent, guard, context=None if scene.caller is None else lambda ctx: ctx.deps)


def _asking(helper: Agent[Any, Any]) -> Callable[..., Any]:
    async def ask(ctx: RunContext[Any], input: str) -> str:
        """Ask the helper."""
        return str(await delegate(ctx, helper, input, deps=ctx.deps))

    return ask


def _outcome(
    agent: Agent[Any, Any], result: AgentRunResult[Any], stream: tuple[str, ...] = ()
) -> Outcome:
    if not isinstance(result.output, DeferredToolRequests):
        return Outcome(str(result.output), (result, {}), stream=stream)
    ids = {each.call_id: each.id for each in pending(agent, result)}
    return Outcome(None, (result, ids), True, stream)


def _in_a_loop(run: Callable[[], Outcome]) -> Outcome:
    """Give each blocking run a loop of its own."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return run()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _streamed(agent: Agent[Any, Any], **given: Any) -> Outcome:
    kinds: list[str] = []
    async with agent.run_stream_events(**given) as events:
        async for event in events:
            kinds.append(event.event_kind)
            if isinstance(event, AgentRunResultEvent):
                return _outcome(agent, event.result, tuple(kinds))
    raise AssertionError("the stream ended without a result")


class TestConformance(Conformance):
    """PydanticAI governs as core does."""

    driver = PydanticAIDriver
