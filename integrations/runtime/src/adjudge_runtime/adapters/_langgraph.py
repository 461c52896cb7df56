"""A compiled LangGraph graph as an agent: its model proposes, `run_agent` governs and runs.

Each step the graph runs once over the whole conversation. Calls in its last message are proposed;
a last message without calls is the final answer. A graph that runs tools itself would run them past
the policy, so one is refused, unless the caller says who governs them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge import GovernError
from adjudge_runtime._values import AgentAction, FinalAnswer, Message, ToolCall, ToolCalls, Usage
from adjudge_runtime.adapters._inside import Inside, checked_inside
from adjudge_runtime.models._adapter import with_call_ids
from adjudge_runtime.models._errors import ModelRefused, truncated
from adjudge_runtime.models._wording import as_object

__all__ = ["LangGraphAgent"]

# Where LangChain's integrations of model services say how a message ended, and what they say there.
_ENDS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
_CUT = frozenset(
    {
        "error",
        "failed",
        "incomplete",
        "length",
        "max_output_tokens",
        "max_tokens",
        "model_context_window_exceeded",
        "model_length",
    }
)
_REFUSED = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "error_toxic",
        "guardrail_intervened",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "spii",
    }
)


class LangGraphAgent:
    """An agent that is a compiled graph with a `messages` key in its state.

    - `compiled_graph`: what `StateGraph(...).compile()` gave, without a checkpointer: the
      conversation is `run_agent`'s, and the graph gets all of it in every step.
    - `tools_inside`: what is known of tools that the graph runs itself. "refuse" raises
      `GovernError` for a graph with a ToolNode, and in the step in which a tool has run inside all
      the same. "governed" says that `adjudge_langgraph.govern` holds the graph, "ungoverned" that
      they run without a policy.
    - `config`: the graph's configuration of each run (callbacks, a recursion limit).

    Raises `GovernError` for a graph that cannot be an agent here.
    """

    def __init__(
        self,
        compiled_graph: Any,
        *,
        tools_inside: Inside = "refuse",
        config: Mapping[str, Any] | None = None,
    ) -> None:
        checked_inside(tools_inside)
        if not callable(getattr(compiled_graph, "ainvoke", None)):
            raise GovernError(
                f"{compiled_graph!r} is no compiled graph; give what `.compile()` gives."
            )
        if getattr(compiled_graph, "checkpointer", None):
            raise GovernError(
                "The graph has a checkpointer and would keep the conversation a second time; "
                "compile it without one, and give run_agent a store."
            )
        if tools_inside == "refuse":
            _refuse_tool_nodes(compiled_graph)
        self.name = f"LangGraphAgent({getattr(compiled_graph, 'name', 'graph')})"
        self._graph = compiled_graph
        self._tools_inside = tools_inside
        self._config = dict(config) if config else None

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Run the graph over the conversation and give what its last message proposes.

        What a node raises is raised. Raises `GovernError` where the graph paused itself, ended
        without a message of the model's, or ran a tool that it should have proposed,
        `ModelRefused` where the model or a filter refused, and `ModelReplyError` for a last message
        that is cut off: a part of an answer is none.
        """
        told = [_told(message) for message in with_call_ids(conversation)]
        output = await self._graph.ainvoke({"messages": told}, self._config)
        messages = output["messages"]
        if output.get("__interrupt__"):
            raise GovernError(
                "The graph interrupted itself, and nobody here can answer it; ask for approval "
                "in the policy instead."
            )
        new = messages[len(told) :]
        if not new or new[-1].type != "ai":
            raise GovernError(
                "The graph did not end with a message of its model; an agent ends each step with "
                "one that answers or proposes calls."
            )
        if self._tools_inside == "refuse" and any(each.type == "tool" for each in new):
            raise GovernError(
                "The graph has run a tool by itself, which no policy has seen; let it end at the "
                "model's proposal, or say with tools_inside who governs it."
            )
        return _action(self.name, new)


def _refuse_tool_nodes(graph: Any) -> None:
    # The import is late: langgraph is an extra, and is there where a graph is.
    kind = importlib.import_module("langgraph.prebuilt").ToolNode
    inside = [name for name, node in graph.get_graph(xray=True).nodes.items() if _is(node, kind)]
    if inside:
        raise GovernError(
            f"The graph runs tools itself, in {', '.join(inside)}, which run_agent cannot govern; "
            "let it end at the model's proposal, or govern it with adjudge_langgraph and say "
            "tools_inside='governed'."
        )


def _is(node: Any, kind: type) -> bool:
    return isinstance(getattr(node, "data", None), kind)


def _told(message: Message) -> dict[str, Any]:
    told: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        told |= {"tool_call_id": message.tool_call_id, "name": message.name or ""}
    elif message.tool_calls:
        told["tool_calls"] = [
            {
                "type": "tool_call",
                "id": call.call_id,
                "name": call.tool,
                "args": as_object(call.args),
            }
            for call in message.tool_calls
        ]
    return told


def _action(name: str, new: Sequence[Any]) -> AgentAction:
    last = new[-1]
    usage = _usage(new)
    _check_end(name, last, usage)
    calls = [ToolCall(call["name"], call["args"], call["id"] or "") for call in last.tool_calls]
    # What LangChain could not parse is still proposed, so that it is refused on the record.
    calls += [
        ToolCall(call["name"] or "", call["args"] or "", call["id"] or "")
        for call in last.invalid_tool_calls
    ]
    text = _text(last.content)
    return ToolCalls(tuple(calls), usage, text) if calls else FinalAnswer(text, usage)


def _check_end(name: str, last: Any, usage: Usage | None) -> None:
    """Raise for a message that its model did not come to the end of, or would not write."""
    told = last.response_metadata
    details = told.get("incomplete_details") or {}
    ends = [details.get("reason"), *(told.get(key) for key in _ENDS)]
    for end in [end.lower() for end in ends if isinstance(end, str)]:
        if end in _REFUSED:
            raise ModelRefused(f"{name} refused to answer ({end}).", usage=usage)
        if end in _CUT:
            raise truncated(name, end, usage=usage)
    parts = last.content if isinstance(last.content, list) else []
    if last.additional_kwargs.get("refusal") or any(_is_refusal(part) for part in parts):
        raise ModelRefused(f"{name} refused to answer.", usage=usage)


def _is_refusal(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "refusal"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else part.get("text", "") for part in content]
    return "".join(parts)


def _usage(new: Sequence[Any]) -> Usage | None:
    total: Usage | None = None
    for message in new:
        told = getattr(message, "usage_metadata", None)
        if told:
            details = told.get("input_token_details") or {}
            used = Usage(
                input_tokens=told["input_tokens"],
                output_tokens=told["output_tokens"],
                cache_read_tokens=details.get("cache_read"),
                cache_write_tokens=details.get("cache_creation"),
                model=message.response_metadata.get("model_name"),
            )
            total = used if total is None else total + used
    return total
