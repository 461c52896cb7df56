"""A CrewAI crew as an agent: it runs as a whole and gives its answer in one step.

The crew has a loop of its own, and runs its agents' tools in it: none of its calls is seen by
`run_agent`, whose policy, budget of steps and journal cover the one answer alone. So a crew with
tools is refused, unless the caller says who governs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge import GovernError
from adjudge_runtime._values import AgentAction, FinalAnswer, Message, Usage
from adjudge_runtime.adapters._inside import Inside, checked_inside

__all__ = ["CrewAIAgent"]


class CrewAIAgent:
    """An agent that is a crew, kicked off once with the task as its input `task`.

    - `crew`: a `crewai.Crew`. Write `{task}` in a task's description to place the input. Two runs
      at the same time need a crew each.
    - `tools_inside`: what is known of the tools that the crew runs. "refuse" raises `GovernError`
      for a crew whose agents or tasks have tools, "governed" says that `adjudge_crewai.govern`
      holds the crew, "ungoverned" that they run without a policy.

    A crew does not say how its model's replies ended: one that was cut off or refused is its answer
    as any, unless the crew or its LLM raises.

    A run that is resumed before its answer was written down kicks the crew off again.
    """

    def __init__(self, crew: Any, *, tools_inside: Inside = "refuse") -> None:
        checked_inside(tools_inside)
        if not callable(getattr(crew, "akickoff", None)):
            raise GovernError(f"{crew!r} is no crew; give a crewai.Crew.")
        if tools_inside == "refuse":
            _refuse_tools(crew)
        self.name = f"CrewAIAgent({getattr(crew, 'name', None) or 'crew'})"
        self._crew = crew

    async def step(self, conversation: Sequence[Message]) -> AgentAction:
        """Kick the crew off with the last thing that the user said, and give its answer.

        What the crew raises is raised.
        """
        asked = [message.content for message in conversation if message.role == "user"]
        if not asked:
            raise ValueError("The conversation has no message of the user's to kick a crew off.")
        output = await self._crew.akickoff(inputs={"task": asked[-1]})
        if not isinstance(getattr(output, "raw", None), str):
            raise GovernError(
                "The crew streams its output, which has no answer yet; make it with stream=False."
            )
        return FinalAnswer(output.raw, _usage(output.token_usage))


def _refuse_tools(crew: Any) -> None:
    holders = [*crew.agents, *crew.tasks, *filter(None, [crew.manager_agent])]
    found = sorted({tool.name for holder in holders for tool in holder.tools or ()})
    if found:
        raise GovernError(
            f"The crew runs the tools {', '.join(found)} itself, which run_agent cannot govern; "
            "govern it with adjudge_crewai and say tools_inside='governed'."
        )


def _usage(told: Any) -> Usage | None:
    if not told or not told.total_tokens:
        return None
    return Usage(
        input_tokens=told.prompt_tokens,
        output_tokens=told.completion_tokens,
        cache_read_tokens=told.cached_prompt_tokens,
    )
