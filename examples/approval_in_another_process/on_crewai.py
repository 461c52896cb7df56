"""An approval that outlives the process, on CrewAI.

Shows: a run that waits for a person is left by `RunPaused`; its `state` is saved, the process ends,
and another one starts the crew again with the answer; whatever is resumed a second time tells its
story again and runs nothing. Needs: `adjudge-crewai`, and `adjudge-conformance` for the scripted
model; no key, no network.

    python on_crewai.py start FOLDER
    python on_crewai.py resume FOLDER --grant      (or --refuse)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

# Before CrewAI is imported: it would report to its makers, and ask whether to show traces.
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from desk import MODEL, TASK, Desk, run

import adjudge_crewai as governed
from adjudge import ApprovalDecision, PendingApproval


def crew_of(desk: Desk, base_url: str) -> Crew:
    """Build the crew, the same in each process."""
    llm = LLM(model=f"openai/{MODEL}", base_url=base_url, api_key="not-needed", api="responses")
    agent = Agent(
        role="Desk",
        goal="Settle what customers are owed.",
        backstory="You know every order.",
        tools=[tool(desk.tool())],
        llm=llm,
    )
    task = Task(description=TASK, expected_output="What was done.", agent=agent)
    return governed.govern(Crew(agents=[agent], tasks=[task]), desk.guard())


def start(desk: Desk, base_url: str) -> tuple[bytes, Sequence[PendingApproval]]:
    """Run until the policy has a person asked; give the run's state, and the questions."""
    try:
        crew_of(desk, base_url).kickoff()
    except governed.RunPaused as paused:
        return json.dumps(paused.state).encode(), paused.pending
    raise AssertionError("the policy has a person asked about this refund")


def resume(desk: Desk, base_url: str, saved: bytes, answers: Mapping[str, ApprovalDecision]) -> str:
    """Go on: the crew starts again, and is given what it was given until it had to wait."""
    output = governed.resume(crew_of(desk, base_url), json.loads(saved), answers)
    return str(output.raw)


if __name__ == "__main__":
    run(start, resume)
