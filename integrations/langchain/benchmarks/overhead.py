"""What governing costs in LangChain: a tool's call, and an agent's run.

    python integrations/langchain/benchmarks/overhead.py --json docs/reference/speed.json

The model is a scripted one in this process, so a run is the framework's own work and the tool's.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from adjudge import ToolGuard
from adjudge_conformance.overhead import ANSWER, ARGUMENTS, TOOL, Way, Ways, main
from adjudge_langchain import govern

CALL: Any = {"name": TOOL, "args": dict(ARGUMENTS), "id": "call_1", "type": "tool_call"}


@tool
def refund(order: int, amount: float, to: str) -> str:
    """Refund an order."""
    return ANSWER


class Scripted(BaseChatModel):
    """A model that calls the tool once, and then says what the tool said."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Scripted:
        """Know the tools already."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        last = messages[-1]
        done = isinstance(last, ToolMessage)
        message = AIMessage(last.text) if done else AIMessage("", tool_calls=[CALL])
        return ChatResult(generations=[ChatGeneration(message=message)])


def ways(guard: ToolGuard | None) -> Ways:
    """Make both ways, governed if there is a guard."""
    governed: Any = refund if guard is None else govern(refund, guard)
    agent: Any = create_agent(Scripted(), [refund])
    if guard is not None:
        govern(agent, guard)
    go = {"messages": [HumanMessage("Go.")]}
    return {
        "call": Way("`tool.invoke`", lambda: governed.invoke(CALL).text),
        "run": Way("`create_agent(...).invoke`", lambda: agent.invoke(go)["messages"][-1].text),
    }


if __name__ == "__main__":
    main("langchain", "langchain", ways)
