"""A reply that is cut off, refused or malformed is an error, and so is a service that is down."""

import asyncio
from typing import Any

import pytest
from model_service import Answer, ModelService, Silence, as_events, as_json, event
from wires import CHAT, CLAUDE, RESPONSES, WIRES, Turn, Wire

from adjudge import ToolSet
from adjudge_runtime._values import Message
from adjudge_runtime.models import (
    ModelError,
    ModelRefused,
    ModelReplyError,
    ModelRequestError,
    ModelUnavailable,
)

ASKED = (Message("user", "go"),)
ONE = (("call_1", "find", '{"place": "here"}'),)

each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


async def failure(agent: Any, *, streamed: bool) -> ModelError:
    """What a step raises."""
    asked = agent.stream(ASKED, lambda text: None) if streamed else agent.step(ASKED)
    with pytest.raises(ModelError) as caught:
        await asked
    return caught.value


@each_wire
@each_way
async def test_a_refusal_is_no_answer(
    wire: Wire, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """The error has its text, and what it cost."""
    service.script(wire.answer(Turn("I must not.", ending="refused"), streamed=streamed))

    error = await failure(wire.agent(service.url, tools), streamed=streamed)

    assert (ModelRefused, "model_refused", 117) == (
        type(error),
        error.code,
        error.usage.input_tokens,
    )
    assert "I must not." in str(error)


@each_wire
@each_way
@pytest.mark.parametrize("calls", [(), ONE], ids=["text", "call"])
async def test_a_reply_at_its_limit_is_neither_an_answer_nor_a_call(
    wire: Wire, streamed: bool, calls: tuple, service: ModelService, tools: ToolSet
) -> None:
    """Arguments that were cut off can be whole JSON, and still not be what was meant."""
    service.script(wire.answer(Turn("So", calls, ending="cut"), streamed=streamed))

    error = await failure(wire.agent(service.url, tools), streamed=streamed)

    assert (ModelReplyError, 3) == (type(error), error.usage.output_tokens)
    assert "cut off" in str(error)


@each_wire
@each_way
@pytest.mark.parametrize(
    ("status", "reason"),
    [(429, "rate_limit"), (408, "time_out"), (500, "server"), (503, "server"), (529, "server")],
)
async def test_a_service_that_is_down_is_not_available(
    wire: Wire, streamed: bool, status: int, reason: str, service: ModelService, tools: ToolSet
) -> None:
    """The reason is told apart, the client's own error is the cause."""
    service.script(as_json(wire.error("x", "not now"), status))

    error = await failure(wire.agent(service.url, tools), streamed=streamed)

    assert (ModelUnavailable, reason, False) == (type(error), error.reason, error.started)
    assert status == error.__cause__.status_code


@each_wire
@each_way
@pytest.mark.parametrize("status", [400, 401, 404])
async def test_a_rejected_request_is_told_apart(
    wire: Wire, streamed: bool, status: int, service: ModelService, tools: ToolSet
) -> None:
    """Asking somebody else would not mend it."""
    service.script(as_json(wire.error("x", "what is this?"), status))

    error = await failure(wire.agent(service.url, tools), streamed=streamed)

    assert ModelRequestError is type(error)
    assert "what is this?" in str(error)


@each_wire
@each_way
async def test_a_service_that_says_nothing_times_out(
    wire: Wire, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """After the time that the client was made with."""
    service.script(Silence())

    error = await failure(wire.agent(service.url, tools, timeout=0.1), streamed=streamed)

    assert (ModelUnavailable, "time_out") == (type(error), error.reason)


@each_wire
async def test_a_stream_that_falls_silent_times_out(
    wire: Wire, service: ModelService, tools: ToolSet
) -> None:
    """The error says that a part of the reply has been shown."""
    raws = [event(each) for each in wire.events(Turn("Two words."))]
    first = next(n for n, raw in enumerate(raws) if b"Two" in raw)
    service.script(Silence(b"".join(raws[: first + 1])))

    error = await failure(wire.agent(service.url, tools, timeout=0.3), streamed=True)

    assert (ModelUnavailable, "time_out", True) == (type(error), error.reason, error.started)


@each_wire
@each_way
async def test_nobody_there_is_no_connection(wire: Wire, streamed: bool, tools: ToolSet) -> None:
    """A port that nobody listens on."""
    error = await failure(wire.agent("http://127.0.0.1:9", tools), streamed=streamed)

    assert (ModelUnavailable, "connection") == (type(error), error.reason)


@each_wire
@pytest.mark.parametrize("broken", [False, True], ids=["ended", "broken"])
@pytest.mark.parametrize("turn", [Turn("Two words."), Turn("", ONE)], ids=["text", "call"])
async def test_a_cut_stream_gives_nothing(
    wire: Wire, broken: bool, turn: Turn, service: ModelService, tools: ToolSet
) -> None:
    """Wherever it is cut before its end, whether the connection breaks or is closed in order."""
    events = wire.events(turn)
    last = {"claude": 1, "responses": 1, "chat": 3}[wire.name]
    agent = wire.agent(service.url, tools)
    for length in range(1, len(events) - last + 1):
        service.script(as_events(events[:length], missing=9 if broken else 0))

        error = await failure(agent, streamed=True)

        assert (ModelUnavailable, "connection") == (type(error), error.reason)


@each_wire
@each_way
@pytest.mark.parametrize(
    "answer",
    [
        Answer(b'{"half'),
        Answer(b"{}"),
        Answer(b"[]"),
        Answer(b"null"),
        Answer(b"<html>", kind="text/html"),
        as_json({"type": "message", "status": "completed", "output": [{}], "choices": [{}]}),
        as_json({"content": [{"type": "text"}], "output": 7, "choices": 7}),
    ],
    ids=["half", "empty", "list", "null", "html", "fields", "kinds"],
)
async def test_a_malformed_reply_is_an_error_of_the_model(
    wire: Wire, streamed: bool, answer: Answer, service: ModelService, tools: ToolSet
) -> None:
    """Nothing of it is used, and no bare `AttributeError` reaches the loop."""
    service.script(answer)

    error = await failure(wire.agent(service.url, tools), streamed=streamed)

    assert isinstance(error, ModelReplyError | ModelUnavailable)


@each_wire
@each_way
async def test_two_calls_of_one_id_are_a_malformed_reply(
    wire: Wire, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """Their answers could not be told apart."""
    service.script(wire.answer(Turn("", ONE + ONE), streamed=streamed))

    assert ModelReplyError is type(await failure(wire.agent(service.url, tools), streamed=streamed))


@each_way
@pytest.mark.parametrize("thinking", ["", "hm"], ids=["nothing", "thoughts"])
async def test_a_reply_of_claude_that_says_nothing_is_malformed(
    streamed: bool, thinking: str, service: ModelService, tools: ToolSet
) -> None:
    """It is no answer, not even an empty one; it says what it cost."""
    service.script(CLAUDE.answer(Turn("", thinking=thinking), streamed=streamed))

    error = await failure(CLAUDE.agent(service.url, tools), streamed=streamed)

    assert (ModelReplyError, 117) == (type(error), error.usage.input_tokens)
    assert "end_turn" in str(error)


@each_way
@pytest.mark.parametrize("finish", ["stop", "function_call", "tool_calls"])
@pytest.mark.parametrize("calls", [(), ONE], ids=["alone", "beside"])
async def test_a_call_of_the_old_kind_is_malformed(
    streamed: bool, finish: str, calls: tuple, service: ModelService, tools: ToolSet
) -> None:
    """Nobody asked for one, and it is not dropped from what the model said."""
    old = {"name": "find", "arguments": "{}"}
    turn = Turn("I shall look.", calls)
    reply, events = CHAT.whole(turn), CHAT.events(turn)
    reply["choices"][0]["message"]["function_call"] = old
    reply["choices"][0]["finish_reason"] = finish
    events[1]["choices"][0]["delta"]["function_call"] = old
    events[-3]["choices"][0]["finish_reason"] = finish
    service.script(as_events(events) if streamed else as_json(reply))

    error = await failure(CHAT.agent(service.url, tools), streamed=streamed)

    assert (ModelReplyError, 117) == (type(error), error.usage.input_tokens)
    assert "function_call" in str(error)


@pytest.mark.parametrize(
    ("kind", "reason"), [("overloaded_error", "server"), ("rate_limit_error", "rate_limit")]
)
@pytest.mark.parametrize("wire", [CLAUDE, CHAT], ids=lambda wire: wire.name)
async def test_an_error_in_a_stream_is_read_by_its_type(
    wire: Wire, kind: str, reason: str, service: ModelService, tools: ToolSet
) -> None:
    """There is no status any more; what was shown before it is said."""
    events = wire.events(Turn("Two words."))[:4]
    service.script(as_events([*events, wire.error(kind, "too much")]))

    error = await failure(wire.agent(service.url, tools), streamed=True)

    assert (ModelUnavailable, reason, True) == (type(error), error.reason, error.started)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", ModelUnavailable),
        ("rate_limit_exceeded", ModelUnavailable),
        ("invalid_prompt", ModelReplyError),
    ],
)
@each_way
async def test_a_failed_response_is_read_by_its_code(
    code: str, kind: type, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """It comes with status 200."""
    failed = {**RESPONSES.whole(Turn("")), "status": "failed", "output": [], "usage": None}
    failed["error"] = {"code": code, "message": "no"}
    ended = {"type": "response.failed", "response": failed, "sequence_number": 0}
    service.script(as_events([ended]) if streamed else as_json(failed))

    assert kind is type(await failure(RESPONSES.agent(service.url, tools), streamed=streamed))


@pytest.mark.parametrize(
    ("wire", "item"),
    [
        (CLAUDE, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        (RESPONSES, {"type": "web_search_call", "id": "w", "status": "completed"}),
    ],
    ids=["claude", "responses"],
)
async def test_a_tool_that_the_provider_ran_is_an_error(
    wire: Wire, item: dict, service: ModelService, tools: ToolSet
) -> None:
    """Nobody offered it, and no policy has seen it (law 3)."""
    reply = wire.whole(Turn("Found it."))
    reply["content" if wire is CLAUDE else "output"].insert(0, item)
    service.script(as_json(reply))

    error = await failure(wire.agent(service.url, tools), streamed=False)

    assert ModelReplyError is type(error)
    assert item["type"] in str(error)


async def test_a_filter_that_stops_a_chat_is_a_refusal(
    service: ModelService, tools: ToolSet
) -> None:
    """What it left of the text is not used."""
    reply = CHAT.whole(Turn("So"))
    reply["choices"][0]["finish_reason"] = "content_filter"
    service.script(as_json(reply))

    assert ModelRefused is type(await failure(CHAT.agent(service.url, tools), streamed=False))


@each_wire
async def test_the_client_is_asked_once(wire: Wire, service: ModelService, tools: ToolSet) -> None:
    """The agent adds no retries to those of its client, which has none here."""
    service.script(as_json(wire.error("x", "not now"), 500), wire.answer(Turn("a"), streamed=False))

    await failure(wire.agent(service.url, tools), streamed=False)

    assert 1 == len(service.requests)


def test_failures_are_told_apart_by_code() -> None:
    """Each type has its own."""
    kinds = (ModelError, ModelUnavailable, ModelRequestError, ModelReplyError, ModelRefused)

    assert 5 == len({kind.code for kind in kinds})


async def test_cancellation_is_no_failure_of_the_model(
    service: ModelService, tools: ToolSet
) -> None:
    """It passes through untranslated."""
    silence = Silence()
    service.script(silence)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(CHAT.agent(service.url, tools).step(ASKED), 0.1)
