"""The scripted model service: it answers by what a request holds, and keeps what was sent."""

import json
import urllib.error
import urllib.request

import pytest

from adjudge_conformance.wire import (
    Script,
    ScriptedCall,
    ScriptedServer,
    Turn,
    WireRequest,
    call_id,
)

USER = {"role": "user", "content": "hello"}


@pytest.fixture(scope="module")
def server():
    """Give the model service for the module."""
    with ScriptedServer() as running:
        yield running


def post(exchange, path, body):
    """Send a body and give what came back, as text."""
    raw = json.dumps(body).encode()
    request = urllib.request.Request(exchange.base_url + path, raw)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def chat(exchange, *messages, model="m", **more):
    """Ask over Chat Completions."""
    body = {"model": model, "messages": [USER, *messages], **more}
    return post(exchange, "/chat/completions", body)


def responses(exchange, *items, model="m", **more):
    """Ask over Responses."""
    return post(exchange, "/responses", {"model": model, "input": [USER, *items], **more})


def two_calls_then_done():
    """Give a script of two parallel calls, one of them malformed, and an end."""
    calls = (ScriptedCall("pay", '{"to": "bo"}'), ScriptedCall("read", '{"a": NaN, "a": 1'))
    return {"m": [Turn(calls), Turn(text="done")]}


@pytest.fixture
def opened(server, tmp_path):
    """Give a function that opens a script."""

    def open_script(turns, api):
        return server.open(Script(turns), api=api, log=tmp_path / f"{api}.jsonl")

    return open_script


class TestTurns:
    def test_first_turn_answers_a_bare_prompt(self, opened):
        """A request without history gets the first turn, its argument text verbatim."""
        message = json.loads(chat(opened(two_calls_then_done(), "chat")))["choices"][0]["message"]

        assert ['{"to": "bo"}', '{"a": NaN, "a": 1'] == [
            call["function"]["arguments"] for call in message["tool_calls"]
        ]

    def test_turn_follows_the_calls_in_the_history(self, opened):
        """The next turn is chosen by the call ids that the history holds, not by counting."""
        exchange = opened(two_calls_then_done(), "chat")
        asked = json.loads(chat(exchange))["choices"][0]["message"]
        told = {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "ok"}

        again = [json.loads(chat(exchange, asked, told)) for _ in range(2)]

        assert ["done", "done"] == [answer["choices"][0]["message"]["content"] for answer in again]

    def test_an_agent_ignores_calls_of_another(self, opened):
        """A history that holds another model's calls, as after a handoff, starts at turn one."""
        turns = {"m": [Turn(text="m speaks")], "n": [Turn((ScriptedCall("pay", "{}"),))]}
        exchange = opened(turns, "responses")
        foreign = {
            "type": "function_call",
            "call_id": call_id("n", "hello", 0, 0),
            "name": "pay",
            "arguments": "{}",
        }

        answer = json.loads(responses(exchange, foreign))

        assert "m speaks" == answer["output"][0]["content"][0]["text"]

    def test_same_request_gets_the_same_bytes(self, opened):
        """Ids, usage and times depend on the request alone."""
        exchange = opened(two_calls_then_done(), "responses")

        assert responses(exchange) == responses(exchange)

    def test_react_text_says_one_action(self, opened):
        """A ReAct model writes an action, and its final answer once the action was observed."""
        exchange = opened(
            {"m": [Turn((ScriptedCall("pay", '{"a": 1}'),)), Turn(text="done")]}, "react"
        )
        action = json.loads(chat(exchange))["choices"][0]["message"]["content"]
        observed = {"role": "assistant", "content": f"{action}Observation: paid"}
        final = json.loads(chat(exchange, observed))["choices"][0]["message"]["content"]

        assert "Action: pay\nAction Input: {" in action
        assert final.endswith("Final Answer: done")

    def test_script_that_has_ended_is_a_problem(self, opened):
        """A request beyond the script gets an error, and the exchange keeps the problem."""
        exchange = opened({"m": [Turn(text="done")]}, "chat")

        with pytest.raises(urllib.error.HTTPError):
            chat(exchange, {"role": "assistant", "content": "done"})

        assert 1 == len(exchange.problems)

    def test_model_without_script_is_a_problem(self, opened):
        """A model that nobody scripted gets an error, and the exchange keeps the problem."""
        exchange = opened({"m": [Turn(text="done")]}, "chat")

        with pytest.raises(urllib.error.HTTPError):
            chat(exchange, model="other")

        assert 1 == len(exchange.problems)

    def test_repeated_text_is_refused(self):
        """Two turns that a history could not tell apart are an error in the script."""
        with pytest.raises(ValueError, match="same text"):
            Script({"m": [Turn(text="a"), Turn(text="a")]})


class TestStreams:
    def test_chat_chunks_add_up(self, opened):
        """The pieces of a streamed call are the text that is sent whole otherwise."""
        exchange = opened(two_calls_then_done(), "chat")
        lines = chat(exchange, stream=True, stream_options={"include_usage": True}).split("\n\n")
        chunks = [json.loads(line.removeprefix("data: ")) for line in lines if "{" in line]
        texts = {0: "", 1: ""}
        for chunk in chunks:
            for choice in chunk["choices"]:
                for part in choice["delta"].get("tool_calls", ()):
                    texts[part["index"]] += part["function"]["arguments"]

        assert {0: '{"to": "bo"}', 1: '{"a": NaN, "a": 1'} == texts
        assert 31 == chunks[-1]["usage"]["total_tokens"]
        assert "data: [DONE]" == lines[-2]

    def test_chat_usage_comes_only_when_asked_for(self, opened):
        """Without `include_usage` no chunk has a usage block."""
        exchange = opened(two_calls_then_done(), "chat")

        assert '"prompt_tokens"' not in chat(exchange, stream=True)

    def test_responses_events_are_numbered_and_closed(self, opened):
        """Events count from nought and end with the whole response and its usage."""
        exchange = opened(two_calls_then_done(), "responses")
        blocks = responses(exchange, stream=True).strip().split("\n\n")
        events = [json.loads(block.partition("data: ")[2]) for block in blocks]

        assert list(range(len(events))) == [event["sequence_number"] for event in events]
        assert "response.completed" == events[-1]["type"]
        assert 31 == events[-1]["response"]["usage"]["total_tokens"]


class TestExtractors:
    def test_raw_bytes_are_kept(self, opened):
        """What was sent is there to the byte, spacing and spelling included."""
        exchange = opened({"m": [Turn(text="done")]}, "chat")
        raw = b'{"model" :  "m", "messages": [{"role":"user","content":"\\u0068i"}]}'
        urllib.request.urlopen(exchange.base_url + "/chat/completions", raw, timeout=10).close()

        assert [raw] == [request.raw for request in exchange.requests]

    @pytest.mark.parametrize(
        ("api", "body"),
        [
            (
                "chat",
                {
                    "messages": [
                        USER,
                        {
                            "role": "assistant",
                            "tool_calls": [
                                {"id": "c1", "function": {"name": "pay", "arguments": "{}"}},
                                {"id": "c2", "function": {"name": "pay", "arguments": "[]"}},
                            ],
                        },
                        {"role": "tool", "tool_call_id": "c1", "content": [{"text": "paid"}]},
                    ]
                },
            ),
            (
                "responses",
                {
                    "input": [
                        USER,
                        {
                            "type": "function_call",
                            "call_id": "c1",
                            "name": "pay",
                            "arguments": "{}",
                        },
                        {
                            "type": "function_call",
                            "call_id": "c2",
                            "name": "pay",
                            "arguments": "[]",
                        },
                        {"type": "function_call_output", "call_id": "c1", "output": "paid"},
                    ]
                },
            ),
        ],
    )
    def test_calls_and_outputs_read_the_same_in_both_apis(self, api, body):
        """Both APIs give the history's calls, and no output for one that is still open."""
        request = WireRequest(api, json.dumps(body).encode())

        assert [("c1", "pay", "{}", "paid"), ("c2", "pay", "[]", None)] == [
            (call.id, call.tool, call.arguments, call.output) for call in request.calls
        ]
        assert {"c1": "paid"} == request.outputs

    def test_react_observations_get_the_ids_of_the_script(self):
        """A ReAct history gives the calls that it tells of, with the ids that they would have."""
        step = 'Thought: step 0 of m\nAction: pay\nAction Input: {"to": "bo"}\nObservation: paid\n'
        later = "Thought: step 1 of m\nAction: read\nAction Input: {}\nObservation: [denied] no"
        messages = [USER, {"role": "assistant", "content": step + later}]
        request = WireRequest("react", json.dumps({"model": "m", "messages": messages}).encode())

        assert {
            call_id("m", "hello", 0, 0): "paid",
            call_id("m", "hello", 1, 0): "[denied] no",
        } == request.outputs

    def test_react_observation_ends_with_its_message(self):
        """What the next message says, a remark of the framework's, is no part of an observation."""
        step = "Thought: step 0 of m\nAction: pay\nAction Input: {}\nObservation: paid\ntwice\n"
        messages = [
            USER,
            {"role": "assistant", "content": step},
            {"role": "user", "content": "Go on"},
        ]
        request = WireRequest("react", json.dumps({"model": "m", "messages": messages}).encode())

        assert {call_id("m", "hello", 0, 0): "paid\ntwice"} == request.outputs

    def test_react_observation_may_be_a_message_of_its_own(self):
        """The action is the model's message, and what came of it the next one."""
        action = "Thought: step 0 of m\nAction: pay\nAction Input: {}"
        messages = [
            USER,
            {"role": "assistant", "content": action},
            {"role": "user", "content": "Observation: paid"},
        ]
        request = WireRequest("react", json.dumps({"model": "m", "messages": messages}).encode())

        assert {call_id("m", "hello", 0, 0): "paid"} == request.outputs

    def test_tools_are_what_the_model_is_told(self):
        """The offered tools come by name, in either API."""
        inner = {"name": "pay", "parameters": {"type": "object"}}
        as_chat = WireRequest("chat", json.dumps({"tools": [{"function": inner}]}).encode())
        as_responses = WireRequest("responses", json.dumps({"tools": [inner]}).encode())

        assert {"pay": inner} == as_chat.tools == as_responses.tools


SHELL = {"type": "shell_call", "action": {"commands": ["ls"]}}


class TestItemsOfTheirOwn:
    @pytest.mark.parametrize("stream", [False, True])
    def test_a_call_may_have_further_fields(self, opened, stream):
        """A namespace and the like stand beside those of a function's call."""
        call = ScriptedCall("find", "{}", item={"namespace": "crm"})
        exchange = opened({"m": [Turn((call,))]}, "responses")

        answer = responses(exchange, stream=stream)

        assert '"namespace": "crm"' in answer
        assert '"type": "function_call"' in answer

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_call_may_be_another_item(self, opened, stream):
        """A shell's call is no function's, and has the id of its turn."""
        exchange = opened({"m": [Turn((ScriptedCall("shell", "", item=SHELL),))]}, "responses")

        answer = responses(exchange, stream=stream)

        assert '"commands": ["ls"]' in answer
        assert '"type": "function_call"' not in answer
        assert f'"call_id": "{call_id("m", "hello", 0, 0)}"' in answer

    def test_the_next_turn_follows_its_answer(self, opened):
        """Such a call is part of the history as any other is."""
        turns = [Turn((ScriptedCall("shell", "", item=SHELL),)), Turn(text="done")]
        exchange = opened({"m": turns}, "responses")
        identity = call_id("m", "hello", 0, 0)
        output = {"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 0}}

        answer = responses(
            exchange,
            {**SHELL, "call_id": identity},
            {"type": "shell_call_output", "call_id": identity, "output": [output]},
        )

        assert "done" in answer
        (call,) = exchange.requests[-1].calls
        assert ("shell_call", '{"commands": ["ls"]}', "ab") == (
            call.tool,
            call.arguments,
            call.output,
        )

    def test_chat_completions_have_no_such_items(self, opened):
        """A script that asks for one there is told so."""
        exchange = opened({"m": [Turn((ScriptedCall("shell", "", item=SHELL),))]}, "chat")

        with pytest.raises(urllib.error.HTTPError):
            chat(exchange)
        assert "item of its own" in exchange.problems[0]
