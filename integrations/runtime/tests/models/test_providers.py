"""Services that speak the Chat Completions API: addresses, keys, and what each does differently."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from model_service import ModelService, as_events, as_json
from wires import CHAT, Turn

from adjudge import ToolSet
from adjudge_runtime._values import FinalAnswer, Message
from adjudge_runtime.models import (
    PROVIDERS,
    Provider,
    openai_compatible_agent,
    resolve_credentials,
)

ASKED = (Message("user", "go"),)
ONE = (("call_1", "find", '{"place": "here"}'),)
NAMES = [
    "openai",
    "grok",
    "mistral",
    "deepseek",
    "groq",
    "openrouter",
    "together",
    "fireworks",
    "perplexity",
    "ollama",
]


def at(service: ModelService, name: str, **changes: Any) -> Provider:
    """A service of the registry, moved to loopback."""
    return replace(PROVIDERS[name], base_url=f"{service.url}/v1", **changes)


def test_the_services_are_known_by_name() -> None:
    """Each under its own."""
    assert NAMES == list(PROVIDERS)
    assert NAMES == [provider.name for provider in PROVIDERS.values()]


def test_grok_and_groq_are_two_services() -> None:
    """One is xAI's, the other a cloud."""
    env = {"XAI_API_KEY": "x", "GROQ_API_KEY": "g"}

    assert ("https://api.x.ai/v1", "x") == resolve_credentials("grok", env=env)
    assert ("https://api.groq.com/openai/v1", "g") == resolve_credentials("groq", env=env)


def test_a_key_that_is_given_goes_first() -> None:
    """Before that of the environment."""
    assert "mine" == resolve_credentials("grok", api_key="mine", env={"XAI_API_KEY": "x"})[1]


def test_the_environment_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless another one is given."""
    monkeypatch.setenv("MISTRAL_API_KEY", "m")

    assert "m" == resolve_credentials("mistral")[1]


def test_a_missing_key_is_an_error_that_names_its_variable(tools: ToolSet) -> None:
    """A server of one's own needs none."""
    with pytest.raises(ValueError, match="DEEPSEEK_API_KEY"):
        openai_compatible_agent("deepseek", tools=tools, model="m", env={})

    assert ("http://localhost:11434/v1", "not-needed") == resolve_credentials("ollama", env={})


def test_an_unknown_name_is_an_error_that_lists_the_known() -> None:
    """With the way to add one."""
    with pytest.raises(ValueError, match=r"'gork'.*grok"):
        resolve_credentials("gork", env={})


def test_the_registry_cannot_be_written_to() -> None:
    """Neither it nor what is in it: one's own is a value that is handed over."""
    with pytest.raises(TypeError):
        PROVIDERS["mine"] = PROVIDERS["ollama"]  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        PROVIDERS["ollama"].base_url = "http://127.0.0.1:9"  # type: ignore[misc]


@pytest.mark.parametrize("by_name", [False, True])
async def test_a_service_of_ones_own_is_a_value(
    by_name: bool, service: ModelService, tools: ToolSet
) -> None:
    """Handed over itself, or in a registry of one's own."""
    mine = Provider("mine", f"{service.url}/v1", "MINE_KEY", key_optional=True)
    service.script(as_json(CHAT.whole(Turn("done"))))
    registry = {**PROVIDERS, "mine": mine}

    async with openai_compatible_agent(
        "mine" if by_name else mine, tools=tools, model="m", env={}, providers=registry
    ) as agent:
        action = await agent.step(ASKED)

    assert "done" == action.text


@pytest.mark.parametrize("name", NAMES)
async def test_the_limit_has_the_name_that_the_service_knows(
    name: str, service: ModelService
) -> None:
    """One of the two."""
    service.script(as_json(CHAT.whole(Turn("done"))))
    async with openai_compatible_agent(
        at(service, name), tools=ToolSet(), model="m", api_key="k", max_tokens=9
    ) as agent:
        await agent.step(ASKED)

    newer = name in ("openai", "grok", "groq")
    assert {"max_completion_tokens" if newer else "max_tokens": 9} == {
        key: value for key, value in service.requests[0].items() if key.startswith("max_")
    }


@pytest.mark.parametrize("name", NAMES)
async def test_every_effort_that_a_service_takes_is_sent(name: str, service: ModelService) -> None:
    """As its own field of the body."""
    efforts = PROVIDERS[name].reasoning_efforts
    for effort in efforts:
        service.script(as_json(CHAT.whole(Turn("done"))))
        async with openai_compatible_agent(
            at(service, name), tools=ToolSet(), model="m", api_key="k", reasoning_effort=effort
        ) as agent:
            await agent.step(ASKED)

    assert list(efforts) == [request["reasoning_effort"] for request in service.requests]


@pytest.mark.parametrize(
    ("name", "effort"), [("mistral", "low"), ("deepseek", "low"), ("grok", "max")]
)
def test_an_effort_that_a_service_does_not_take_fails_before_any_request(
    name: str, effort: str, tools: ToolSet
) -> None:
    """The error names the service and what it takes."""
    with pytest.raises(ValueError, match=f"reasoning_effort is '{effort}'; {name} has"):
        openai_compatible_agent(name, tools=tools, model="m", api_key="k", reasoning_effort=effort)


def test_a_service_that_declares_no_efforts_takes_none(tools: ToolSet) -> None:
    """Until its value says otherwise."""
    mine = Provider("mine", "http://127.0.0.1:9", "MINE_KEY", key_optional=True)

    with pytest.raises(ValueError, match="mine takes none"):
        openai_compatible_agent(mine, tools=tools, model="m", reasoning_effort="low", env={})


def test_tools_for_a_service_that_takes_none_fail_before_any_request(tools: ToolSet) -> None:
    """They would never be proposed."""
    with pytest.raises(ValueError, match="perplexity takes no tools"):
        openai_compatible_agent("perplexity", tools=tools, model="m", api_key="k")


async def test_a_service_that_knows_no_stream_options_gets_none(
    service: ModelService, tools: ToolSet
) -> None:
    """Its stream has the usage all the same."""
    events = CHAT.events(Turn("Two words."))
    service.script(as_events(events))
    async with openai_compatible_agent(
        at(service, "mistral"), tools=tools, model="m", api_key="k", stream=True
    ) as agent:
        action = await agent.step(ASKED)

    assert "stream_options" not in service.requests[0]
    assert 117 == action.usage.input_tokens


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_deepseeks_thinking_goes_back_with_its_calls(
    streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """It wants it while the turn goes on; nobody else is sent it."""
    turn = Turn("", ONE, thinking="Hm, where?")
    service.script(
        CHAT.answer(turn, streamed=streamed), CHAT.answer(Turn("done"), streamed=streamed)
    )
    async with openai_compatible_agent(
        at(service, "deepseek"), tools=tools, model="m", api_key="k", stream=streamed
    ) as agent:
        proposed = await agent.step(ASKED)
        said = Message("assistant", proposed.text, tool_calls=proposed.calls)
        told = Message("tool", "3", name="find", tool_call_id="call_1")
        await agent.step((*ASKED, said, told))

    assert "Hm, where?" == service.requests[1]["messages"][1]["reasoning_content"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_calls_under_another_ending_are_calls(
    streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """Some services end with "stop" where they propose."""
    events, whole = CHAT.events(Turn("", ONE)), CHAT.whole(Turn("", ONE))
    whole["choices"][0]["finish_reason"] = "stop"
    events[-3]["choices"][0]["finish_reason"] = "stop"
    service.script(as_events(events) if streamed else as_json(whole))

    action = await CHAT.agent(service.url, tools, stream=streamed).step(ASKED)

    assert "find" == action.calls[0].tool


async def test_calls_without_an_index_are_told_apart_by_their_ids(
    service: ModelService, tools: ToolSet
) -> None:
    """Some services leave it out of their streams."""
    events = CHAT.events(Turn("", (*ONE, ("call_2", "find", '{"place": "there"}'))))
    for chunk in events[:-1]:
        for choice in chunk["choices"]:
            for part in choice["delta"].get("tool_calls", ()):
                del part["index"]
    service.script(as_events(events))

    action = await CHAT.agent(service.url, tools, stream=True).step(ASKED)

    assert [("call_1", '{"place": "here"}'), ("call_2", '{"place": "there"}')] == [
        (call.call_id, call.args) for call in action.calls
    ]


async def test_a_service_that_tells_no_usage_leaves_it_unknown(
    service: ModelService, tools: ToolSet
) -> None:
    """None is not nothing."""
    reply = CHAT.whole(Turn("done"))
    del reply["usage"]
    service.script(as_json(reply))

    assert FinalAnswer("done") == await CHAT.agent(service.url, tools).step(ASKED)
