"""Whole runs: `run_agent` with each model, governed, streamed and not."""

import json
from pathlib import Path
from typing import Any

import pytest
from model_service import ModelService
from openai import AsyncOpenAI
from wires import WIRES, Turn, Wire

from adjudge import AuditEvent, ToolSet, compile_policy
from adjudge_conformance.wire import Script, ScriptedCall, ScriptedServer
from adjudge_conformance.wire import Turn as ScriptedTurn
from adjudge_runtime import Usage, run_agent
from adjudge_runtime.models import OpenAIAgent, OpenAIChatAgent

POLICY = compile_policy(
    {
        "version": 1,
        "rules": [
            {"id": "look", "match": {"tool": "find"}, "decision": "allow"},
            {"id": "no", "match": "always", "decision": "deny", "reason": "not today"},
        ],
    }
)
CALLS = (
    ("call_1", "find", '{"place": "here"}'),
    ("call_2", "refund", '{"order": "7", "speed": "fast"}'),
)

each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
each_way = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@each_wire
@each_way
async def test_a_run_is_governed(
    wire: Wire, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """One call runs, the other is denied, the model is told of both, and the usage is summed."""
    turns = [Turn("Let me look.", CALLS), Turn("It is done.")]
    service.script(*[wire.answer(turn, streamed=streamed) for turn in turns])
    heard: list[str] = []

    result = await run_agent(
        wire.agent(service.url, tools),
        "go",
        tools=tools,
        policy=POLICY,
        on_token=heard.append if streamed else None,
    )

    told = json.dumps(service.requests[1])
    model = "claude-m-20261101" if wire.name == "claude" else "gpt-m-2026"
    assert ("It is done.", "") == (result.final_answer, result.code)
    assert Usage(234, 6, 200, 14, model) == result.usage
    assert ("Let me look.It is done." if streamed else "") == "".join(heard)
    assert ("3 things in here" in told, "[denied] not today" in told) == (True, True)


@each_wire
@pytest.mark.parametrize("text", ['{"place": "a", "place": "b"}', '{"pla'], ids=["twice", "half"])
async def test_arguments_that_a_lenient_parser_would_accept_never_run(
    wire: Wire, text: str, service: ModelService, tools: ToolSet
) -> None:
    """Streamed by any API, the guard reads the text itself; the model is told and goes on."""
    turns = [Turn("", (("call_1", "find", text),)), Turn("Never mind.")]
    service.script(*[wire.answer(turn, streamed=True) for turn in turns])
    events: list[AuditEvent] = []

    result = await run_agent(
        wire.agent(service.url, tools, stream=True),
        "go",
        tools=tools,
        policy=POLICY,
        sinks=[events.append],
    )

    assert "Never mind." == result.final_answer
    assert "action.completed" not in [event.kind for event in events]
    assert "call_1" in json.dumps(service.requests[1])


@each_wire
@each_way
async def test_a_cut_reply_ends_the_run_as_a_failure(
    wire: Wire, streamed: bool, service: ModelService, tools: ToolSet
) -> None:
    """What was cut off is not taken for an answer."""
    service.script(wire.answer(Turn("It is", ending="cut"), streamed=streamed))

    result = await run_agent(
        wire.agent(service.url, tools, stream=streamed), "go", tools=tools, policy=POLICY
    )

    assert ("agent_failed", None) == (result.code, result.final_answer)
    assert "cut off" in str(result.error)


@pytest.mark.parametrize(
    ("agent", "api"),
    [(OpenAIAgent, "responses"), (OpenAIChatAgent, "chat")],
    ids=["responses", "chat"],
)
@each_way
async def test_a_run_on_the_suites_service(
    agent: Any, api: Any, streamed: bool, tools: ToolSet, tmp_path: Path
) -> None:
    """The service of the conformance suite reads the talk that it is told, and goes on from it."""
    script = Script(
        {"m": [ScriptedTurn((ScriptedCall("find", '{"place": "x"}'),)), ScriptedTurn(text="Done.")]}
    )
    with ScriptedServer() as server:
        exchange = server.open(script, api=api, log=tmp_path / "requests.jsonl")
        async with AsyncOpenAI(base_url=exchange.base_url, api_key="none") as client:
            result = await run_agent(
                agent(tools=tools, model="m", client=client, stream=streamed),
                "go",
                tools=tools,
                policy=POLICY,
            )

        assert ("Done.", []) == (result.final_answer, exchange.problems)
        assert ["3 things in x"] == list(exchange.requests[-1].outputs.values())
