"""A desk whose one tool waits for people: built anew for each process that it stands for."""

import asyncio
import json
from typing import Any

from agents import Agent, FunctionTool, RunConfig, Runner, function_tool

from adjudge import ApprovalDecision, SQLiteLedger, pause_approval
from adjudge_openai_agents import govern, resume

ASK = {"id": "ask", "match": {"tool": "pay"}, "decision": "approve_required", "reason": "money"}
CALL = ("pay", '{"to": "bo"}')
YES = ApprovalDecision(True, "ana")
NO = ApprovalDecision(False, "ana", "too much")
CONFIG = RunConfig(tracing_disabled=True)


class Desk:
    """An agent with one tool, made anew for each process that it is to stand for."""

    def __init__(self, stage, guard_of, folder) -> None:
        self.stage = stage
        self.ran: list[Any] = []
        self.tools: list[Any] | None = None
        self.rules: list[dict[str, Any]] = [ASK]
        self.options: dict[str, Any] = {}
        self.helpers: list[Agent[Any]] = []
        self._guard_of = guard_of
        self.ledger = folder / "ledger.db"

    def guard(self):
        """Make a guard that pauses."""
        return self._guard_of(*self.rules, on_approval=pause_approval(SQLiteLedger(self.ledger)))

    def pay(self, **fields: Any) -> FunctionTool:
        """Make the tool."""

        @function_tool(**fields)
        def pay(to: str, amount: int = 5) -> str:
            """Pay somebody."""
            self.ran.append((to, amount))
            return f"paid {to}"

        return pay

    def agent(self) -> Agent[Any]:
        """Make the agent, governed."""
        tools = [self.pay()] if self.tools is None else self.tools
        agent = self.stage.agent("desk", tools=tools)
        self.made = govern(agent, self.guard(), **self.options)
        return self.made

    def start(self, *calls, **options):
        """Run until the run ends or waits."""
        self.stage.script(desk=list(calls))
        return self.stage.run(self.agent(), **options)

    def approve_natively(self, result, **how):
        """Go on as if there were no Adjudge, with the SDK's own approval, in the same process."""
        state = result.to_state()
        for item in state.get_interruptions():
            state.approve(item, **how)
        return asyncio.run(Runner.run(self.made, state, run_config=CONFIG))

    def go_on(self, saved, answers, **options):
        """Go on with what was saved, with nothing but the ledger in common."""
        return asyncio.run(resume(self.agent(), saved, answers, run_config=CONFIG, **options))


def saved_of(result) -> dict[str, Any]:
    """Give the SDK's own state, by way of text."""
    return json.loads(json.dumps(result.to_state().to_json()))
