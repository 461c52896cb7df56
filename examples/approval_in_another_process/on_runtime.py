"""An approval that outlives the process, on Adjudge's own loop.

Shows: a run that waits for a person is in a store's file, its process ends, and another one calls
`run_agent` again with the answer; a run that is finished gives its answer again and runs nothing.
Needs: `adjudge-runtime[openai]`, and `adjudge-conformance` for the scripted model; no key, no
network.

    python on_runtime.py start FOLDER
    python on_runtime.py resume FOLDER --grant      (or --refuse)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from desk import MODEL, TASK, Desk, run

from adjudge import ApprovalDecision, PendingApproval, SQLiteRunStore, ToolSet, tool
from adjudge_runtime import RunResult, run_agent
from adjudge_runtime.models import OpenAIAgent

RUN_ID = "order-7"


async def work(
    desk: Desk, base_url: str, answers: Mapping[str, ApprovalDecision] | None = None
) -> RunResult:
    """Run the agent, or go on with its run: the same call in each process."""
    tools = ToolSet.from_functions(tool()(desk.tool()))
    async with OpenAIAgent(tools=tools, model=MODEL, base_url=base_url, api_key="none") as agent:
        return await run_agent(
            agent,
            TASK,
            tools=tools,
            guard=desk.guard(),
            store=SQLiteRunStore(desk.folder / "runs.db"),
            run_id=RUN_ID,
            answers=answers,
        )


def start(desk: Desk, base_url: str) -> tuple[bytes, Sequence[PendingApproval]]:
    """Run until the policy has a person asked; give the run's name, and the questions."""
    return RUN_ID.encode(), asyncio.run(work(desk, base_url)).pending


def resume(desk: Desk, base_url: str, saved: bytes, answers: Mapping[str, ApprovalDecision]) -> str:
    """Go on where the run waits."""
    assert saved == RUN_ID.encode()
    return str(asyncio.run(work(desk, base_url, answers)).final_answer)


if __name__ == "__main__":
    run(start, resume)
