"""What governing costs in the reference loop: one call of a tool, and a run.

    python integrations/runtime/benchmarks/overhead.py --json docs/reference/speed.json

The loop is never without a guard for a user. What it is compared with is the same loop whose calls
parse the model's text, hold it to the tool's schema and run the body, as that of any framework. The
agent is a script, so a run is the loop's own work and the tool's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from adjudge import ToolDef, ToolGuard, ToolSet, tool
from adjudge.integration import normalise, parse_arguments, thaw
from adjudge_conformance.overhead import ANSWER, ARGUMENTS, TOOL, Way, Ways, main
from adjudge_runtime import AgentAction, Budget, FinalAnswer, Message, ToolCall
from adjudge_runtime import run_agent as run_governed
from adjudge_runtime._answers import Answer, text_of_value
from adjudge_runtime._calls import CallTools, GovernedCalls
from adjudge_runtime._desk import Desk
from adjudge_runtime._journal import NoJournal
from adjudge_runtime._loop import Loop
from adjudge_runtime._schema import tool_schema
from adjudge_runtime._stops import Halt

TEXT = json.dumps(dict(ARGUMENTS))


@tool()
async def refund(order: int, amount: float, to: str) -> str:
    """Refund an order."""
    return ANSWER


TOOLS = ToolSet([refund])
SCHEMAS = {each.name: tool_schema(each) for each in TOOLS}


class Script:
    """An agent that calls the tool once, and then says what the tool said."""

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Propose the call, or answer."""
        if len(conversation) == 1:
            return ToolCall(TOOL, TEXT, "call-1")
        return FinalAnswer(conversation[-1].content)


class PlainCalls:
    """The tools of the loop with no guard before them."""

    def tool(self, name: str) -> ToolDef | None:
        """Give the tool of that name, if there is one."""
        return TOOLS.get(name) if name in TOOLS else None

    async def run(self, step: int, index: int, call: ToolCall, *, uncertain: bool) -> Answer:
        """Run the body."""
        return Answer(await self.plain(call), "allow", "completed", ok=True)

    async def plain(self, call: ToolCall) -> str:
        """Run the body, and give the text that the model is told."""
        found = normalise(SCHEMAS[call.tool], parse_arguments(str(call.args)), coerce=True)
        assert not found.problems
        return text_of_value(await TOOLS.get(call.tool).fn(**thaw(found.args)))


def calls_of(guard: ToolGuard | None) -> CallTools:
    """Give the loop's one door to its tools, as `run_agent` makes it, or one that is open."""
    if guard is None:
        return PlainCalls()
    desk = Desk(guard=guard, journal=NoJournal(), halt=Halt(), cancelled=lambda: None)
    return GovernedCalls(desk, TOOLS, agent=None)


async def run_plainly(task: str) -> str:
    """Run the loop without a guard."""
    calls = PlainCalls()
    loop = Loop(
        Script(),
        task,
        calls=calls,
        plain=calls.plain,
        budget=Budget(),
        journal=NoJournal(),
        halt=Halt(),
        cancelled=lambda: None,
    )
    return await loop.run()


def ways(guard: ToolGuard | None) -> Ways:
    """Make both ways, governed if there is a guard."""
    calls = calls_of(guard)
    proposed = ToolCall(TOOL, TEXT, "call-1")

    async def call_tool() -> Any:
        return (await calls.run(0, 0, proposed, uncertain=False)).message

    async def run_agent() -> Any:
        if guard is None:
            return await run_plainly("Go.")
        return (await run_governed(Script(), "Go.", tools=TOOLS, guard=guard)).final_answer

    return {
        "call": Way("a call of the loop", call_tool),
        "run": Way("`run_agent`", run_agent),
    }


if __name__ == "__main__":
    main("runtime", "adjudge-runtime", ways)
