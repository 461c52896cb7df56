"""Fallback and routing: who is asked, whose usage is told, and what is not tried."""

from collections.abc import Sequence
from typing import Any

import pytest
from model_service import ModelService, Silence, as_events, as_json
from wires import CHAT, CLAUDE, RESPONSES, Turn

from adjudge import ToolSet
from adjudge_runtime._values import Agent, FinalAnswer, Message, StreamingAgent
from adjudge_runtime.models import (
    FallbackAgent,
    ModelRefused,
    ModelReplyError,
    ModelRequestError,
    ModelUnavailable,
    RoutingAgent,
)

ASKED = (Message("user", "go"),)


def two(service: ModelService, tools: ToolSet, **first: Any) -> FallbackAgent:
    """Claude, and a chat model behind it."""
    return FallbackAgent(
        [CLAUDE.agent(service.url, tools, **first), CHAT.agent(service.url, tools)]
    )


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [429, 500, 529])
async def test_the_next_one_answers_where_one_is_down(
    status: int, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """The usage is that of the model that answered."""
    service.script(
        as_json(CLAUDE.error("x", "no"), status), CHAT.answer(Turn("Yes."), streamed=streamed)
    )
    heard: list[str] = []
    agent = two(service, tools)

    action = await (agent.stream(ASKED, heard.append) if streamed else agent.step(ASKED))

    assert ("Yes.", "gpt-m-2026") == (action.text, action.usage.model)
    assert ("Yes." if streamed else "") == "".join(heard)


async def test_a_time_out_is_one_that_is_down(service: ModelService, tools: ToolSet) -> None:
    """So is a service that cannot be reached."""
    service.script(Silence(), as_json(CHAT.whole(Turn("Yes."))))

    assert "Yes." == (await two(service, tools, timeout=0.1).step(ASKED)).text


async def test_without_a_connection_the_next_one_answers(
    service: ModelService, tools: ToolSet
) -> None:
    """Nobody listens at the first one's address."""
    service.script(as_json(RESPONSES.whole(Turn("Yes."))))
    gone = CLAUDE.agent("http://127.0.0.1:9", tools)

    agent = FallbackAgent([gone, RESPONSES.agent(service.url, tools)])

    assert "Yes." == (await agent.step(ASKED)).text


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (as_json(CLAUDE.error("x", "no"), 400), ModelRequestError),
        (as_json(CLAUDE.error("x", "no"), 401), ModelRequestError),
        (as_json(CLAUDE.whole(Turn("No.", ending="refused"))), ModelRefused),
        (as_json(CLAUDE.whole(Turn("So", ending="cut"))), ModelReplyError),
        (as_json({}), ModelReplyError),
    ],
    ids=["400", "401", "refusal", "cut", "malformed"],
)
async def test_other_failures_are_nobody_elses_to_answer(
    answer: Any, kind: type, service: ModelService, tools: ToolSet
) -> None:
    """The second one is not asked."""
    service.script(answer, as_json(CHAT.whole(Turn("Yes."))))

    with pytest.raises(kind):
        await two(service, tools).step(ASKED)

    assert 1 == len(service.requests)


@pytest.mark.parametrize("given_at", ["call", "construction"])
async def test_after_a_partial_stream_nobody_else_is_asked(
    given_at: str, service: ModelService, tools: ToolSet
) -> None:
    """The listener would get two beginnings of one reply."""
    service.script(
        as_events(CLAUDE.events(Turn("Two words."))[:4]), CHAT.answer(Turn("Yes."), streamed=True)
    )
    heard: list[str] = []
    bound = {"on_token": heard.append} if given_at == "construction" else {}
    agent = two(service, tools, **bound)

    with pytest.raises(ModelUnavailable) as caught:
        await (agent.step(ASKED) if bound else agent.stream(ASKED, heard.append))

    assert (1, True, "Two w") == (len(service.requests), caught.value.started, "".join(heard))


async def test_after_a_partial_stream_the_next_one_is_asked_where_that_is_said(
    service: ModelService, tools: ToolSet
) -> None:
    """The listener hears both."""
    service.script(
        as_events(CLAUDE.events(Turn("Two words."))[:4]), CHAT.answer(Turn("Yes."), streamed=True)
    )
    heard: list[str] = []
    agent = FallbackAgent(
        [CLAUDE.agent(service.url, tools), CHAT.agent(service.url, tools)],
        after_partial_stream=True,
    )

    action = await agent.stream(ASKED, heard.append)

    assert ("Yes.", "Two wYes.") == (action.text, "".join(heard))


async def test_a_cut_stream_that_nobody_has_heard_is_one_that_is_down(
    service: ModelService, tools: ToolSet
) -> None:
    """Nothing of it was shown."""
    service.script(
        as_events(CLAUDE.events(Turn("Two words."))[:4]), as_json(CHAT.whole(Turn("Yes.")))
    )

    assert "Yes." == (await two(service, tools, stream=True).step(ASKED)).text


async def test_where_all_are_down_the_last_error_has_notes_of_the_others(
    service: ModelService, tools: ToolSet
) -> None:
    """Each step begins with the first one again."""
    down = as_json({"error": {"message": "no"}}, 500)
    service.script(down, down, as_json(CLAUDE.whole(Turn("Yes."))))
    agent = two(service, tools)

    with pytest.raises(ModelUnavailable) as caught:
        await agent.step(ASKED)

    assert "OpenAIChatAgent(gpt-m)" in str(caught.value)
    assert ["Tried before"] == [note.split(":")[0] for note in caught.value.__notes__]
    assert "Yes." == (await agent.step(ASKED)).text


class Plain:
    """An agent that cannot stream."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def step(self, conversation: Sequence[Message]) -> FinalAnswer:
        """Answer."""
        return FinalAnswer(f"{self._text} {len(conversation)}")


async def test_a_selector_chooses_for_each_step(service: ModelService, tools: ToolSet) -> None:
    """By the conversation; the usage is that of the model that answered."""
    service.script(as_json(CHAT.whole(Turn("Small."))), as_json(CLAUDE.whole(Turn("Large."))))
    agents = {"small": CHAT.agent(service.url, tools), "large": CLAUDE.agent(service.url, tools)}
    agent = RoutingAgent(lambda talk: "small" if len(talk) == 1 else "large", agents)

    first = await agent.step(ASKED)
    second = await agent.step((*ASKED, Message("assistant", "Small."), *ASKED))

    assert ("Small.", "gpt-m-2026") == (first.text, first.usage.model)
    assert ("Large.", "claude-m-20261101") == (second.text, second.usage.model)


async def test_a_selector_may_be_async_and_an_agent_without_a_stream() -> None:
    """What it cannot stream it gives whole."""

    async def choose(talk: Sequence[Message]) -> str:
        return "b"

    agent = RoutingAgent(choose, {"a": Plain("no"), "b": Plain("yes")})

    assert FinalAnswer("yes 1") == await agent.stream(ASKED, print)


async def test_a_name_that_is_not_there_is_an_error() -> None:
    """No agent stands in for another unasked."""
    with pytest.raises(ValueError, match="'c'"):
        await RoutingAgent(lambda talk: "c", {"a": Plain("no")}).step(ASKED)


def test_both_are_agents_that_stream() -> None:
    """So they nest, and the loop can show what they write."""
    made = (FallbackAgent([Plain("a")]), RoutingAgent(lambda talk: "a", {"a": Plain("a")}))

    assert all(isinstance(agent, Agent) and isinstance(agent, StreamingAgent) for agent in made)
    assert "FallbackAgent(Plain)" == made[0].name


def test_they_are_made_of_agents() -> None:
    """None, or something else, is a clear error."""
    with pytest.raises(ValueError, match="one or more"):
        FallbackAgent([])
    with pytest.raises(TypeError, match="step"):
        FallbackAgent(["gpt"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="one or more"):
        RoutingAgent(lambda talk: "a", {})
    with pytest.raises(TypeError, match="selector"):
        RoutingAgent("a", {"a": Plain("a")})  # type: ignore[arg-type]
