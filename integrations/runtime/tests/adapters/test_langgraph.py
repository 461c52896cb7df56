"""A real LangGraph graph proposes, and `run_agent` governs and runs what it proposes."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from adjudge import AuditEvent, GovernError, ToolSet, compile_policy, tool
from adjudge_runtime import FinalAnswer, Message, ToolCall, ToolCalls, Usage, run_agent
from adjudge_runtime.adapters import LangGraphAgent
from adjudge_runtime.models import ModelRefused, ModelReplyError

ASKED = (Message("user", "go"),)
POLICY = {
    "version": 1,
    "rules": [
        {"id": "small", "match": {"tool": "refund", "args.amount.lt": 51}, "decision": "allow"},
        {"id": "rest", "match": "always", "decision": "deny", "reason": "too much"},
    ],
}
RAN: list[str] = []


def graph_of(*nodes: tuple[str, Callable[[Any], Any]], **compiling: Any) -> Any:
    """A graph that runs its nodes one after the other."""
    builder = StateGraph(MessagesState)
    names = [START, *(name for name, _ in nodes), END]
    for name, node in nodes:
        builder.add_node(name, node)
    for one, next_one in pairwise(names):
        builder.add_edge(one, next_one)
    return builder.compile(**compiling)


def saying(*replies: AIMessage, seen: list[list[AnyMessage]] | None = None) -> Any:
    """A graph of a model that says the next reply in each step."""
    told = iter(replies)

    def model(state: MessagesState) -> dict[str, Any]:
        if seen is not None:
            seen.append(state["messages"])
        return {"messages": [next(told).model_copy()]}

    return graph_of(("model", model))


def calling(*calls: tuple[str, str, dict[str, Any]], text: str = "") -> AIMessage:
    """A reply that proposes calls."""
    return AIMessage(
        text, tool_calls=[{"id": i, "name": name, "args": args} for i, name, args in calls]
    )


async def test_a_text_is_the_final_answer_with_its_usage() -> None:
    """Counted as LangChain counts, by all models that ran."""
    used = {
        "input_tokens": 20,
        "output_tokens": 3,
        "total_tokens": 23,
        "input_token_details": {"cache_read": 12},
    }
    reply = AIMessage("Done.", usage_metadata=used, response_metadata={"model_name": "gpt-m"})

    action = await LangGraphAgent(saying(reply)).step(ASKED)

    assert FinalAnswer("Done.", Usage(20, 3, 12, None, "gpt-m")) == action


async def test_calls_of_one_message_are_one_proposal() -> None:
    """With their ids and the text beside them; none of them is dropped."""
    reply = calling(("c1", "refund", {"amount": 5}), ("c2", "refund", {"amount": 90}), text="So:")

    action = await LangGraphAgent(saying(reply)).step(ASKED)

    calls = (ToolCall("refund", {"amount": 5}, "c1"), ToolCall("refund", {"amount": 90}, "c2"))
    assert ToolCalls(calls, None, "So:") == action


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"response_metadata": {"finish_reason": "length"}}, ModelReplyError),
        ({"response_metadata": {"stop_reason": "max_tokens"}}, ModelReplyError),
        ({"response_metadata": {"finish_reason": "MAX_TOKENS"}}, ModelReplyError),
        ({"response_metadata": {"done_reason": "length"}}, ModelReplyError),
        (
            {
                "response_metadata": {
                    "status": "incomplete",
                    "incomplete_details": {"reason": "content_filter"},
                }
            },
            ModelRefused,
        ),
        ({"response_metadata": {"status": "incomplete"}}, ModelReplyError),
        ({"response_metadata": {"finish_reason": "content_filter"}}, ModelRefused),
        ({"response_metadata": {"stop_reason": "refusal"}}, ModelRefused),
        ({"response_metadata": {"stopReason": "guardrail_intervened"}}, ModelRefused),
        ({"additional_kwargs": {"refusal": "I will not."}}, ModelRefused),
        ({"content": [{"type": "refusal", "refusal": "I will not."}]}, ModelRefused),
    ],
)
async def test_a_part_of_an_answer_is_no_answer(how: Any, error: type[Exception]) -> None:
    """Nor is what a model or a filter says in place of one."""
    reply = AIMessage(**{"content": "half an ans", **how})

    with pytest.raises(error):
        await LangGraphAgent(saying(reply)).step(ASKED)


async def test_calls_of_a_message_that_was_cut_off_are_not_proposed() -> None:
    """Their arguments may be cut off as well; what it cost is told."""
    reply = calling(("c1", "refund", {"amount": 5}))
    reply.response_metadata = {"finish_reason": "length"}
    reply.usage_metadata = {"input_tokens": 20, "output_tokens": 3, "total_tokens": 23}

    with pytest.raises(ModelReplyError) as caught:
        await LangGraphAgent(saying(reply)).step(ASKED)
    assert caught.value.usage == Usage(20, 3)


@pytest.mark.parametrize("end", ["stop", "end_turn", "STOP", "completed", None])
async def test_an_answer_that_came_to_its_end_is_one(end: str | None) -> None:
    """Whatever its service calls that."""
    reply = AIMessage("Done.", response_metadata={"finish_reason": end, "status": end})

    assert FinalAnswer("Done.") == await LangGraphAgent(saying(reply)).step(ASKED)


async def test_a_call_that_could_not_be_parsed_is_proposed_as_text() -> None:
    """So that the guard refuses it on the record."""
    broken = {
        "id": "c1",
        "name": "refund",
        "args": '{"am',
        "error": "?",
        "type": "invalid_tool_call",
    }
    reply = AIMessage("", invalid_tool_calls=[broken])

    action = await LangGraphAgent(saying(reply)).step(ASKED)

    assert (ToolCall("refund", '{"am', "c1"),) == action.calls


async def test_the_graph_is_told_the_whole_talk() -> None:
    """In LangChain's messages, answers with the ids of their calls."""
    seen: list[list[AnyMessage]] = []
    talk = (
        Message("system", "Be kind."),
        *ASKED,
        Message("assistant", "So:", tool_calls=(ToolCall("refund", '{"amount": 5}', "c1"),)),
        Message("tool", "paid", name="refund", tool_call_id="c1"),
    )

    await LangGraphAgent(saying(AIMessage("Done."), seen=seen)).step(talk)

    system, user, said, told = seen[0]
    assert ["system", "human", "ai", "tool"] == [each.type for each in (system, user, said, told)]
    assert [("refund", {"amount": 5}, "c1")] == [
        (call["name"], call["args"], call["id"]) for call in said.tool_calls
    ]
    assert ("paid", "c1") == (told.content, told.tool_call_id)


async def test_run_agent_governs_what_the_graph_proposes() -> None:
    """One call is allowed and one denied; the graph is told of both and answers."""
    ran: list[int] = []
    seen: list[list[AnyMessage]] = []
    events: list[AuditEvent] = []

    @tool()
    def refund(amount: int) -> str:
        """Pay back."""
        ran.append(amount)
        return "paid"

    graph = saying(
        calling(("c1", "refund", {"amount": 5}), ("c2", "refund", {"amount": 90})),
        AIMessage("Done."),
        seen=seen,
    )

    result = await run_agent(
        LangGraphAgent(graph),
        "go",
        tools=ToolSet([refund]),
        policy=compile_policy(POLICY),
        sinks=[events.append],
    )

    assert ("Done.", [5]) == (result.final_answer, ran)
    assert [("c1", "paid"), ("c2", "[denied] too much")] == [
        (each.tool_call_id, each.content) for each in seen[1] if each.type == "tool"
    ]
    assert ["action.completed", "action.denied"] == sorted(
        event.kind for event in events if event.kind in ("action.completed", "action.denied")
    )


@langchain_tool
def erase(name: str) -> str:
    """Erase."""
    RAN.append(name)
    return "erased"


def with_tools_inside() -> Any:
    """A graph that runs its calls itself."""
    model = iter([calling(("c1", "erase", {"name": "a"})), AIMessage("Done.")])

    def say(state: MessagesState) -> dict[str, Any]:
        return {"messages": [next(model)]}

    return graph_of(("model", say), ("tools", ToolNode([erase])), ("answer", say))


def test_a_graph_that_runs_tools_itself_is_refused() -> None:
    """They would run past the policy (law 3)."""
    with pytest.raises(GovernError, match="in tools"):
        LangGraphAgent(with_tools_inside())


def test_a_graph_within_a_graph_is_looked_into() -> None:
    """Also there."""
    with pytest.raises(GovernError, match="tools"):
        LangGraphAgent(graph_of(("inner", with_tools_inside())))


@pytest.mark.parametrize("said", ["governed", "ungoverned"])
async def test_who_says_who_governs_them_may_have_tools_inside(said: Any) -> None:
    """The graph's answer is then the final one."""
    action = await LangGraphAgent(with_tools_inside(), tools_inside=said).step(ASKED)

    assert FinalAnswer("Done.") == action


async def test_a_tool_that_ran_in_a_node_of_another_kind_is_an_error() -> None:
    """It is seen after the fact, by the answer that it left."""

    def inside(state: MessagesState) -> dict[str, Any]:
        told = {"role": "tool", "content": "erased", "tool_call_id": "c1"}
        return {"messages": [calling(("c1", "erase", {})), told, AIMessage("Done.")]}

    with pytest.raises(GovernError, match="no policy has seen"):
        await LangGraphAgent(graph_of(("all", inside))).step(ASKED)


async def test_a_graph_that_interrupts_itself_is_an_error() -> None:
    """Nobody here could answer it."""

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [interrupt("May I?")]}

    agent = LangGraphAgent(graph_of(("ask", ask)))

    with pytest.raises((GovernError, RuntimeError)):
        await agent.step(ASKED)


async def test_a_graph_that_says_nothing_is_an_error() -> None:
    """There is neither an answer nor a proposal."""
    agent = LangGraphAgent(graph_of(("quiet", lambda state: {"messages": []})))

    with pytest.raises(GovernError, match="did not end with a message"):
        await agent.step(ASKED)


async def test_what_a_node_raises_ends_the_run() -> None:
    """As `agent_failed`, with its cause."""

    def fail(state: MessagesState) -> dict[str, Any]:
        raise KeyError("gone")

    result = await run_agent(
        LangGraphAgent(graph_of(("fail", fail))),
        "go",
        tools=ToolSet(),
        policy=compile_policy(POLICY),
    )

    assert ("agent_failed", True) == (result.code, "gone" in str(result.error))


def test_a_graph_with_a_checkpointer_is_refused() -> None:
    """It would keep the talk a second time."""
    graph = graph_of(("model", lambda state: {"messages": []}), checkpointer=InMemorySaver())

    with pytest.raises(GovernError, match="checkpointer"):
        LangGraphAgent(graph)


def test_what_is_no_graph_is_refused() -> None:
    """So is a word that means nothing."""
    with pytest.raises(GovernError, match="compile"):
        LangGraphAgent(StateGraph(MessagesState))
    with pytest.raises(ValueError, match="tools_inside"):
        LangGraphAgent(saying(), tools_inside="maybe")  # type: ignore[arg-type]
