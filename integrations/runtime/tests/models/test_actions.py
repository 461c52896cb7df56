"""What a model says becomes one action, the same whichever API said it, streamed or not."""

import asyncio
import json

import pytest
from model_service import ModelService, as_json
from wires import CHAT, CLAUDE, RESPONSES, WIRES, Turn, Wire

from adjudge import ToolSet, tool
from adjudge_runtime._values import FinalAnswer, Message, ToolCall, ToolCalls, Usage

ASKED = (Message("user", "go"),)
ONE = (("call_1", "find", '{"place": "here"}'),)
TWO = (*ONE, ("call_2", "refund", '{"order": "7", "speed": "fast"}'))

each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def used(wire: Wire) -> Usage:
    """What a `Turn` costs by default."""
    model = "claude-m-20261101" if wire is CLAUDE else "gpt-m-2026"
    return Usage(117, 3, 100, 7, model)


def args_of(action: object) -> list[object]:
    """The arguments of a proposal, read where they are text."""
    assert isinstance(action, ToolCalls)
    return [json.loads(c.args) if isinstance(c.args, str) else dict(c.args) for c in action.calls]


@each_wire
@each_way
async def test_a_text_is_the_final_answer(
    wire: Wire, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """With the usage of the call, the tokens of the cache counted among those that were read."""
    service.script(wire.answer(Turn("It is done."), streamed=streamed))

    action = await wire.agent(service.url, tools, stream=streamed).step(ASKED)

    assert FinalAnswer("It is done.", used(wire)) == action


@each_wire
@each_way
async def test_one_call_is_proposed(
    wire: Wire, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """With the provider's id, and what the model said beside it."""
    service.script(wire.answer(Turn("Let me look.", ONE), streamed=streamed))

    action = await wire.agent(service.url, tools, stream=streamed).step(ASKED)

    assert ("Let me look.", used(wire)) == (action.text, action.usage)
    assert [("find", "call_1")] == [(call.tool, call.call_id) for call in action.calls]
    assert [{"place": "here"}] == args_of(action)


@each_wire
@each_way
async def test_calls_of_one_reply_are_one_proposal(
    wire: Wire, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """In the order in which the model wrote them."""
    service.script(wire.answer(Turn("", TWO), streamed=streamed))

    action = await wire.agent(service.url, tools, stream=streamed).step(ASKED)

    assert ["call_1", "call_2"] == [call.call_id for call in action.calls]
    assert [{"place": "here"}, {"order": "7", "speed": "fast"}] == args_of(action)


@each_wire
@pytest.mark.parametrize("turn", [Turn("Two words."), Turn("And now:", TWO)], ids=["text", "calls"])
async def test_a_stream_gives_the_same_action_and_its_text(
    wire: Wire, turn: Turn, service: ModelService, tools: ToolSet
) -> None:
    """`stream` tells each piece of text as it comes; the action is that of `step`."""
    service.script(wire.answer(turn, streamed=False), wire.answer(turn, streamed=True))
    agent = wire.agent(service.url, tools)
    pieces: list[str] = []

    whole = await agent.step(ASKED)
    streamed = await agent.stream(ASKED, pieces.append)

    assert turn.text == "".join(pieces)
    assert len(pieces) > 1
    assert (type(whole), whole.usage) == (type(streamed), streamed.usage)
    assert whole == streamed or args_of(whole) == args_of(streamed)


@each_wire
async def test_a_callback_of_the_agent_may_be_async(
    wire: Wire, service: ModelService, tools: ToolSet
) -> None:
    """An `on_token` given at construction makes every step a stream."""
    service.script(wire.answer(Turn("Two words."), streamed=True))
    pieces: list[str] = []

    async def hear(text: str) -> None:
        pieces.append(text)

    await wire.agent(service.url, tools, on_token=hear).step(ASKED)

    assert ("Two words.", True) == ("".join(pieces), service.requests[0]["stream"])


@each_wire
async def test_a_failing_callback_ends_the_step(
    wire: Wire, service: ModelService, tools: ToolSet
) -> None:
    """What it raises is raised as it is: it is no failure of the model."""
    service.script(wire.answer(Turn("Two words."), streamed=True))

    def fail(text: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError):
        await wire.agent(service.url, tools).stream(ASKED, fail)


@pytest.mark.parametrize(
    ("wire", "streamed"),
    [(CLAUDE, True), (RESPONSES, False), (RESPONSES, True), (CHAT, False), (CHAT, True)],
    ids=lambda value: getattr(value, "name", str(value)),
)
@pytest.mark.parametrize("text", ['{"place": "a", "place": "b"}', '{"place": NaN}', '{"pla'])
async def test_the_guard_gets_the_text_that_the_model_wrote(
    wire: Wire, streamed: bool, text: str, service: ModelService, tools: ToolSet
) -> None:
    """Where the wire has text it is not parsed, repaired or dropped on the way (law 5)."""
    service.script(wire.answer(Turn("", (("call_1", "find", text),)), streamed=streamed))

    action = await wire.agent(service.url, tools, stream=streamed).step(ASKED)

    assert (ToolCall("find", text, "call_1"),) == action.calls


@each_wire
@each_way
async def test_a_call_without_arguments_has_none(
    wire: Wire, streamed: bool, service: ModelService
) -> None:
    """For a tool that takes none an empty text stands for an empty object."""

    @tool()
    def ping() -> str:
        """Answer."""
        return "pong"

    text = "{}" if wire is RESPONSES else ""
    service.script(wire.answer(Turn("", (("call_1", "ping", text),)), streamed=streamed))

    action = await wire.agent(service.url, ToolSet([ping]), stream=streamed).step(ASKED)

    assert [{}] == args_of(action)


@each_way
async def test_arguments_that_got_lost_are_not_none(
    streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """Where a tool takes some an empty text is no JSON, which the guard says (law 5)."""
    service.script(CHAT.answer(Turn("", (("call_1", "find", ""),)), streamed=streamed))

    action = await CHAT.agent(service.url, tools, stream=streamed).step(ASKED)

    assert (ToolCall("find", "", "call_1"),) == action.calls


async def test_a_whole_reply_of_claude_is_checked_for_values_that_are_no_json(
    service: ModelService, tools: ToolSet
) -> None:
    """The client has parsed it, so NaN arrives as a number, for the guard to refuse."""
    service.script(CLAUDE.answer(Turn("", (("call_1", "find", '{"limit": NaN}'),)), streamed=False))

    action = await CLAUDE.agent(service.url, tools).step(ASKED)

    assert "nan" == str(action.calls[0].args["limit"])


@each_wire
async def test_cancelling_a_step_closes_its_request(
    wire: Wire, service: ModelService, tools: ToolSet
) -> None:
    """The service sees the connection go."""
    from model_service import Silence

    silence = Silence()
    service.script(silence)
    step = asyncio.create_task(wire.agent(service.url, tools).step(ASKED))
    await asyncio.to_thread(silence.asked.wait, 10)

    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step

    assert await asyncio.to_thread(silence.left.wait, 10)


@each_wire
async def test_cancelling_a_stream_closes_its_request(
    wire: Wire, service: ModelService, tools: ToolSet
) -> None:
    """Also after the first piece of text."""
    from model_service import Silence, event

    head = [event(each) for each in wire.events(Turn("Two words."))]
    first = next(n for n, raw in enumerate(head) if b"Two" in raw)
    silence = Silence(b"".join(head[: first + 1]))
    service.script(silence)
    heard = asyncio.Event()
    agent = wire.agent(service.url, tools)
    step = asyncio.create_task(agent.stream(ASKED, lambda text: heard.set()))
    await asyncio.wait_for(heard.wait(), 10)

    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step

    assert await asyncio.to_thread(silence.left.wait, 10)


async def test_a_client_of_the_agents_own_is_closed_with_it(
    service: ModelService, tools: ToolSet
) -> None:
    """One that was given stays open, and is the caller's to close."""
    from openai import AsyncOpenAI

    from adjudge_runtime.models import OpenAIAgent

    service.script(as_json(RESPONSES.whole(Turn("a"))), as_json(RESPONSES.whole(Turn("b"))))
    lent = AsyncOpenAI(base_url=f"{service.url}/v1", api_key="k")
    async with OpenAIAgent(tools=tools, model="m", client=lent) as agent:
        await agent.step(ASKED)
    async with OpenAIAgent(
        tools=tools, model="m", base_url=f"{service.url}/v1", api_key="k"
    ) as owner:
        await owner.step(ASKED)

    assert not lent.is_closed()
    assert owner._client.is_closed()
    await lent.close()
