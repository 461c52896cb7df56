"""What governing costs in CrewAI: a tool's call, and a crew's run.

    python integrations/crewai/benchmarks/overhead.py --json docs/reference/speed.json

The model is a scripted one in this process, so a run is the framework's own work and the tool's.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from typing import Any

# Before CrewAI is imported: it would report to its makers, and keep files in the home directory.
os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TESTING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "HOME": tempfile.mkdtemp(prefix="crewai-home-"),
}
with warnings.catch_warnings():
    # CrewAI and what it needs warn while they are imported.
    warnings.simplefilter("ignore")
    from crewai import Agent, BaseLLM, Crew, Task
    from crewai.tools import tool

from adjudge import ToolGuard
from adjudge_conformance.overhead import ANSWER, ARGUMENTS, TOOL, Way, Ways, main
from adjudge_crewai import govern

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": TOOL, "arguments": json.dumps(dict(ARGUMENTS))},
}


@tool
def refund(order: int, amount: float, to: str) -> str:
    """Refund an order."""
    return ANSWER


class Scripted(BaseLLM):
    """A model that calls the tool once, and then says what the tool said."""

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        """Answer without asking anybody."""
        said = [each["content"] for each in messages if each["role"] == "tool"]
        return said[-1] if said else [CALL]

    def supports_function_calling(self) -> bool:
        """It does."""
        return True

    def get_input_tokens_count(self, *args: Any, **options: Any) -> int:
        """A few; CrewAI would log that it has to guess."""
        return 10


def ways(guard: ToolGuard | None) -> Ways:
    """Make both ways, governed if there is a guard."""
    governed = refund if guard is None else govern(refund, guard)
    about = {"role": "Desk", "goal": "Refund.", "backstory": "A clerk."}
    agent = Agent(**about, tools=[refund], llm=Scripted(model="scripted"))
    task = Task(description="Go.", expected_output="A word.", agent=agent)
    crew = Crew(agents=[agent], tasks=[task], cache=False)  # each run comes to the tool
    if guard is not None:
        govern(crew, guard)
    return {
        "call": Way("`tool.run`", lambda: governed.run(**ARGUMENTS)),
        "run": Way("`crew.kickoff`", lambda: crew.kickoff().raw),
    }


if __name__ == "__main__":
    main("crewai", "crewai", ways)
