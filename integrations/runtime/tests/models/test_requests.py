"""What is asked: the raw bodies of requests, tools, talk, caching, thinking and effort."""

import json
from typing import Any

import pytest
from model_service import ModelService, as_json
from wires import CHAT, CLAUDE, RESPONSES, WIRES, Turn, Wire

from adjudge import ToolSet
from adjudge_runtime._values import Message, ToolCall
from adjudge_runtime.models import ClaudeAgent, OpenAIAgent, OpenAIChatAgent

FIND = {
    "type": "object",
    "properties": {
        "place": {"type": "string"},
        "limit": {"type": "integer", "default": 3},
    },
    "required": ["place"],
    "additionalProperties": False,
}
CALLS = (
    ToolCall("find", '{"place": "here"}', "call_1"),
    ToolCall("refund", {"order": "7", "speed": "fast"}, "call_2"),
)
TALK = (
    Message("user", "go"),
    Message("assistant", "Let me look.", tool_calls=CALLS),
    Message("tool", "3 things", name="find", tool_call_id="call_1"),
    Message("tool", "", name="refund", tool_call_id="call_2"),
)
MARK = {"type": "ephemeral"}

each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


async def asked(
    wire: Wire, service: ModelService, talk: Any, tools: ToolSet, **settings: Any
) -> Any:
    """The body of the request for the next step of a talk."""
    service.script(wire.answer(Turn("done"), streamed=settings.get("stream", False)))
    await wire.agent(service.url, tools, **settings).step(talk)
    return service.requests[-1]


async def test_claude_is_told_of_the_tools(service: ModelService, tools: ToolSet) -> None:
    """With the schema of the function, and no system prompt where there is none."""
    body = await asked(CLAUDE, service, TALK[:1], tools, cache_prompt=False)

    assert {
        "model": "claude-m",
        "max_tokens": 16_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
        "tools": [
            {"name": "find", "description": "Find what is there.", "input_schema": FIND},
            body["tools"][1],
        ],
    } == body
    assert {"type": "string", "enum": ["slow", "fast"]} == (
        body["tools"][1]["input_schema"]["properties"]["speed"]
    )


async def test_chat_is_told_of_the_tools(service: ModelService, tools: ToolSet) -> None:
    """Nested as functions, with the system prompt first."""
    body = await asked(CHAT, service, TALK[:1], tools, system="Be kind.")

    function = {"name": "find", "description": "Find what is there.", "parameters": FIND}
    assert {"type": "function", "function": function} == body["tools"][0]
    assert [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "go"},
    ] == body["messages"]


async def test_responses_are_told_of_the_tools(service: ModelService, tools: ToolSet) -> None:
    """Flat, not strict, and stored nowhere."""
    body = await asked(RESPONSES, service, TALK[:1], tools, system="Be kind.")

    tool = {"type": "function", "name": "find", "description": "Find what is there."}
    assert {**tool, "parameters": FIND, "strict": False} == body["tools"][0]
    assert ("Be kind.", False) == (body["instructions"], body["store"])
    assert [{"role": "user", "content": "go"}] == body["input"]


@each_wire
async def test_without_tools_none_are_sent(wire: Wire, service: ModelService) -> None:
    """An empty list is refused by some services."""
    assert "tools" not in await asked(wire, service, TALK[:1], ToolSet())


async def test_claude_is_told_of_the_calls_and_their_answers(
    service: ModelService, tools: ToolSet
) -> None:
    """The calls in one message of the assistant's, the answers in one of the user's."""
    body = await asked(CLAUDE, service, TALK, tools, cache_prompt=False)

    said, told = body["messages"][1:]
    assert [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_1", "name": "find", "input": {"place": "here"}},
        {
            "type": "tool_use",
            "id": "call_2",
            "name": "refund",
            "input": {"order": "7", "speed": "fast"},
        },
    ] == said["content"]
    assert [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "3 things"},
        {"type": "tool_result", "tool_use_id": "call_2", "content": ""},
    ] == told["content"]
    assert ("assistant", "user") == (said["role"], told["role"])


async def test_chat_is_told_of_the_calls_and_their_answers(
    service: ModelService, tools: ToolSet
) -> None:
    """The model's own text of the arguments is handed back as it was."""
    body = await asked(CHAT, service, TALK, tools)

    said, *told = body["messages"][1:]
    assert ["call_1", "call_2"] == [call["id"] for call in said["tool_calls"]]
    assert '{"place": "here"}' == said["tool_calls"][0]["function"]["arguments"]
    assert {"order": "7", "speed": "fast"} == json.loads(
        said["tool_calls"][1]["function"]["arguments"]
    )
    assert "Let me look." == said["content"]
    assert [
        {"role": "tool", "tool_call_id": "call_1", "content": "3 things"},
        {"role": "tool", "tool_call_id": "call_2", "content": ""},
    ] == told


async def test_responses_are_told_of_the_calls_and_their_answers(
    service: ModelService, tools: ToolSet
) -> None:
    """As items of their own."""
    body = await asked(RESPONSES, service, TALK, tools)

    call = {"type": "function_call", "call_id": "call_1", "name": "find"}
    assert [
        {"role": "assistant", "content": "Let me look."},
        {**call, "arguments": '{"place": "here"}'},
        body["input"][3],
        {"type": "function_call_output", "call_id": "call_1", "output": "3 things"},
        {"type": "function_call_output", "call_id": "call_2", "output": ""},
    ] == body["input"][1:]


@each_wire
async def test_calls_without_an_id_get_one(
    wire: Wire, service: ModelService, tools: ToolSet
) -> None:
    """So that each answer names its call, whoever proposed it."""
    bare = tuple(ToolCall(call.tool, call.args) for call in CALLS)
    talk = (TALK[0], Message("assistant", "", tool_calls=bare))
    answers = (Message("tool", "one", name="find"), Message("tool", "two", name="refund"))

    text = json.dumps(await asked(wire, service, (*talk, *answers), tools))

    assert (2, 2) == (text.count("call_1_0"), text.count("call_1_1"))


async def test_claude_is_told_of_text_that_is_no_json(
    service: ModelService, tools: ToolSet
) -> None:
    """It takes objects alone, so the text goes into one, as its documentation says."""
    broken = (ToolCall("find", '{"pla', "call_1"),)
    talk = (TALK[0], Message("assistant", "", tool_calls=broken), TALK[2])

    body = await asked(CLAUDE, service, talk, tools)

    assert {"INVALID_JSON": '{"pla'} == body["messages"][1]["content"][0]["input"]


async def test_system_messages_of_the_talk_are_kept(service: ModelService, tools: ToolSet) -> None:
    """Claude has no such role: they go to the system prompt."""
    talk = (Message("system", "Be brief."), *TALK)

    body = await asked(CLAUDE, service, talk, tools, system="Be kind.", cache_prompt=False)

    assert ["Be kind.", "Be brief."] == [block["text"] for block in body["system"]]
    assert "user" == body["messages"][0]["role"]


async def test_the_prompt_of_claude_has_four_breakpoints(
    service: ModelService, tools: ToolSet
) -> None:
    """After the tools, the system prompt, the last request, and everything."""
    body = await asked(CLAUDE, service, TALK, tools, system="Be kind.")

    assert [None, MARK] == [tool.get("cache_control") for tool in body["tools"]]
    assert MARK == body["system"][-1]["cache_control"]
    assert MARK == body["messages"][0]["content"][-1]["cache_control"]
    assert [None, MARK] == [b.get("cache_control") for b in body["messages"][2]["content"]]
    assert 4 == json.dumps(body).count("cache_control")


async def test_what_a_request_has_cached_begins_the_next_one(
    service: ModelService, tools: ToolSet
) -> None:
    """Marks aside, a later request has all of an earlier one as its beginning, to the byte."""
    later = (*TALK, Message("assistant", "", tool_calls=CALLS[:1]), TALK[2])
    first = await asked(CLAUDE, service, TALK, tools, system="s", cache_prompt=False)
    second = await asked(CLAUDE, service, later, tools, system="s", cache_prompt=False)

    count = len(first["messages"])
    assert (first["tools"], first["system"], first["messages"]) == (
        second["tools"],
        second["system"],
        second["messages"][:count],
    )


async def test_without_caching_nothing_is_marked(service: ModelService, tools: ToolSet) -> None:
    """`cache_prompt=False` sends plain prompts."""
    body = await asked(CLAUDE, service, TALK, tools, system="s", cache_prompt=False)

    assert "cache_control" not in json.dumps(body)


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        (CLAUDE, ("output_config", "effort")),
        (RESPONSES, ("reasoning", "effort")),
        (CHAT, ("reasoning_effort",)),
    ],
    ids=["claude", "responses", "chat"],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_effort_is_in_the_request(
    wire: Wire, path: tuple, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """And is nowhere in it unless it is asked for."""
    found = await asked(wire, service, TALK, tools, reasoning_effort="high", stream=streamed)
    plain = await asked(wire, service, TALK, tools, stream=streamed)

    for step in path:
        found = found[step]
    assert ("high", False) == (found, path[0] in plain)


@pytest.mark.parametrize(
    ("thinking", "sent"),
    [
        ("adaptive", {"type": "adaptive"}),
        (2000, {"type": "enabled", "budget_tokens": 2000}),
    ],
)
async def test_thinking_is_in_the_request(
    thinking: Any, sent: Any, service: ModelService, tools: ToolSet
) -> None:
    """By itself or with a budget."""
    body = await asked(CLAUDE, service, TALK[:1], tools, thinking=thinking)

    assert sent == body["thinking"]


async def test_a_stream_of_a_chat_is_asked_for_its_usage(
    service: ModelService, tools: ToolSet
) -> None:
    """Without being asked the service does not tell it."""
    body = await asked(CHAT, service, TALK, tools, stream=True)

    assert (True, {"include_usage": True}) == (body["stream"], body["stream_options"])


@pytest.mark.parametrize(
    ("wire", "field"),
    [(CLAUDE, "max_tokens"), (RESPONSES, "max_output_tokens"), (CHAT, "max_completion_tokens")],
    ids=["claude", "responses", "chat"],
)
async def test_the_limit_of_a_reply_is_in_the_request(
    wire: Wire, field: str, service: ModelService, tools: ToolSet
) -> None:
    """Under the name that each API has for it."""
    assert 77 == (await asked(wire, service, TALK, tools, max_tokens=77))[field]


@pytest.mark.parametrize("agent", [ClaudeAgent, OpenAIAgent, OpenAIChatAgent])
@pytest.mark.parametrize(
    "wrong",
    [{"reasoning_effort": "extreme"}, {"max_tokens": 0}, {"max_tokens": True}, {"model": ""}],
    ids=str,
)
def test_a_value_that_the_api_has_not_fails_before_any_request(
    agent: type, wrong: dict, tools: ToolSet
) -> None:
    """The error names it."""
    settings = {"tools": tools, "model": "m", "client": object(), **wrong}

    with pytest.raises(ValueError, match=next(iter(wrong))):
        agent(**settings)


@pytest.mark.parametrize("thinking", [1023, 5000, True, "much", 2000.0])
def test_a_budget_that_claude_would_reject_fails_before_any_request(
    thinking: Any, tools: ToolSet
) -> None:
    """It must be 1,024 or more, and leave room for the reply."""
    with pytest.raises(ValueError, match="thinking"):
        ClaudeAgent(tools=tools, model="m", max_tokens=5000, client=object(), thinking=thinking)


def test_an_address_for_a_client_that_is_given_is_an_error(tools: ToolSet) -> None:
    """It would reach nobody."""
    with pytest.raises(ValueError, match="base_url"):
        OpenAIAgent(tools=tools, model="m", client=object(), base_url="http://127.0.0.1:9")


def test_tools_are_a_tool_set() -> None:
    """A list of functions is a clear error."""
    with pytest.raises(TypeError, match="ToolSet"):
        OpenAIAgent(tools=[print], model="m", client=object())  # type: ignore[arg-type]


async def test_the_model_that_answered_is_in_the_usage(
    service: ModelService, tools: ToolSet
) -> None:
    """It is the one that the service names, not the alias that was asked for."""
    service.script(as_json(CHAT.whole(Turn("done"))))

    action = await CHAT.agent(service.url, tools).step(TALK)

    assert "gpt-m-2026" == action.usage.model
