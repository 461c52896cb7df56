"""The desk's agent on CrewAI: its own crew, agent, tools, loop and model client."""

from __future__ import annotations

import os
from contextvars import ContextVar

# Before CrewAI is imported: it would report to its makers, and ask whether to show traces.
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from desk import Desk
from endpoint import Caller, Endpoint

from adjudge import CallContext, Principal, ToolGuard
from adjudge_crewai import CallSite, govern

DISTRIBUTION = "crewai"
CALLER: ContextVar[Caller] = ContextVar("caller")
"""Who is calling: CrewAI has no context of a run, so the application sets one around it."""


def run(desk: Desk, guard: ToolGuard, endpoint: Endpoint, caller: Caller, task: str) -> str:
    """Run the crew on a task and give its final answer."""
    llm = LLM(
        model=f"openai/{endpoint.model}",
        base_url=endpoint.base_url,
        api_key=endpoint.api_key,
        api="responses",
    )
    agent = Agent(
        role="Operations desk",
        goal=endpoint.instructions,
        backstory="You know every order.",
        tools=[tool(each) for each in desk.tools()],
        llm=llm,
    )
    work = Task(description=task, expected_output="What was done.", agent=agent)

    def who(_: CallSite) -> CallContext:
        caller = CALLER.get()
        return CallContext(
            principal=Principal("user", caller.user),
            environment="prod",
            workspace=str(desk.files),
            extra={"tenant": caller.tenant},
        )

    crew = govern(Crew(agents=[agent], tasks=[work]), guard, context=who)
    CALLER.set(caller)
    return str(crew.kickoff().raw)
