"""What a model thought goes back with the calls that it led to, unchanged, and to nobody else."""

import json
from typing import Any

import pytest
from model_service import ModelService
from wires import CLAUDE, RESPONSES, Turn

from adjudge import ToolSet
from adjudge_runtime._values import Message, ToolCall

CALL = ToolCall("find", '{"place": "here"}', "call_1")
TALK = (
    Message("user", "go"),
    Message("assistant", "Let me look.", tool_calls=(CALL,)),
    Message("tool", "3 things", name="find", tool_call_id="call_1"),
)


async def sent(service: ModelService, talk: Any, tools: ToolSet, thinking: Any) -> Any:
    """The body of Claude's request for the next step of a talk."""
    service.script(CLAUDE.answer(Turn("done"), streamed=False))
    await CLAUDE.agent(service.url, tools, thinking=thinking).step(talk)
    return service.requests[-1]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_the_thinking_of_claude_goes_back_unchanged(
    streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """Signature and sealed blocks included, in their place before the calls that they led to."""
    turn = Turn("Look.", (("call_1", "find", '{"place": "here"}'),), thinking="Hm, where?")
    service.script(
        CLAUDE.answer(turn, streamed=streamed), CLAUDE.answer(Turn("done"), streamed=streamed)
    )
    agent = CLAUDE.agent(service.url, tools, thinking=2000, stream=streamed)
    proposed = await agent.step(TALK[:1])

    said = Message("assistant", proposed.text, tool_calls=proposed.calls)
    await agent.step((TALK[0], said, TALK[2]))

    back = service.requests[1]["messages"][1]["content"]
    assert [
        {"type": "thinking", "thinking": "Hm, where?", "signature": "sig+/="},
        {"type": "redacted_thinking", "data": "sealed"},
    ] == back[:2]
    assert ["text", "tool_use"] == [block["type"] for block in back[2:]]
    assert {"place": "here"} == back[3]["input"]
    assert {"type": "enabled", "budget_tokens": 2000} == service.requests[1]["thinking"]


async def test_a_talk_whose_thinking_is_lost_goes_on_without(
    service: ModelService, tools: ToolSet
) -> None:
    """A resumed run has none, and with a budget the API would reject the calls without it."""
    manual = await sent(service, TALK, tools, 2000)
    adaptive = await sent(service, TALK, tools, "adaptive")
    next_turn = (*TALK, Message("assistant", "There."), Message("user", "And now?"))
    anew = await sent(service, next_turn, tools, 2000)

    assert ("thinking" in manual, "thinking" in adaptive, "thinking" in anew) == (False, True, True)


async def test_no_run_gets_what_the_model_thought_in_another(
    service: ModelService, tools: ToolSet
) -> None:
    """One agent serves both, and the service gives its calls the same ids in each."""
    turn = Turn("", (("call_1", "find", '{"place": "here"}'),), thinking="Of Ann: ...")
    plain, done = Turn("", turn.calls), Turn("done")
    service.script(*[CLAUDE.answer(each, streamed=False) for each in (turn, plain, done, done)])
    agent = CLAUDE.agent(service.url, tools, thinking="adaptive")
    for asked_for in ("For Ann.", "For Bob."):
        await agent.step((Message("user", asked_for),))

    said = Message("assistant", "", tool_calls=(ToolCall("find", {"place": "here"}, "call_1"),))
    for asked_for in ("For Ann.", "For Bob."):
        await agent.step((Message("user", asked_for), said, TALK[2]))

    assert [True, False] == ["Of Ann" in json.dumps(body) for body in service.requests[2:]]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_the_reasoning_of_a_response_goes_back_unchanged(
    streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """Encrypted, as nothing is stored, with the items that it led to."""
    turn = Turn("", (("call_1", "find", '{"place": "here"}'),), thinking="sealed")
    service.script(
        RESPONSES.answer(turn, streamed=streamed),
        RESPONSES.answer(Turn("done"), streamed=streamed),
    )
    agent = RESPONSES.agent(service.url, tools, reasoning_effort="low", stream=streamed)
    proposed = await agent.step(TALK[:1])

    said = Message("assistant", proposed.text, tool_calls=proposed.calls)
    await agent.step((TALK[0], said, TALK[2]))

    assert ["reasoning.encrypted_content"] == service.requests[0]["include"]
    assert RESPONSES.whole(turn)["output"] == service.requests[1]["input"][1:3]
