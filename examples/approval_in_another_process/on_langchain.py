"""An approval that outlives the process, on LangChain.

Shows: a run that waits for a person lies in LangGraph's checkpointer, its process ends, and another
one goes on with the answer; whatever is resumed a second time runs nothing. Needs:
`adjudge-langchain`, `langchain-openai`, `langgraph-checkpoint-sqlite`, and `adjudge-conformance`
for the scripted model; no key, no network.

    python on_langchain.py start FOLDER
    python on_langchain.py resume FOLDER --grant      (or --refuse)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from desk import MODEL, TASK, Desk, run
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import SecretStr

import adjudge_langchain as governed
from adjudge import ApprovalDecision, PendingApproval

THREAD: Any = {"configurable": {"thread_id": "order 7"}}


@contextmanager
def agent_of(desk: Desk, base_url: str) -> Iterator[Any]:
    """Build the agent on its checkpoints, the same in each process."""
    model = ChatOpenAI(
        model=MODEL, base_url=base_url, api_key=SecretStr("not-needed"), use_responses_api=True
    )
    tools = [StructuredTool.from_function(desk.tool())]
    with SqliteSaver.from_conn_string(str(desk.folder / "checkpoints.db")) as saver:
        agent = create_agent(model, tools, checkpointer=saver)
        yield governed.govern(agent, desk.guard())


def start(desk: Desk, base_url: str) -> tuple[bytes, Sequence[PendingApproval]]:
    """Run until the policy has a person asked; give where the run waits, and the questions."""
    with agent_of(desk, base_url) as agent:
        agent.invoke({"messages": [{"role": "user", "content": TASK}]}, THREAD)
        # The thread, and the checkpoint at which it waits.
        saved = agent.get_state(THREAD).config
        return json.dumps(saved).encode(), governed.pending(agent, THREAD)


def resume(desk: Desk, base_url: str, saved: bytes, answers: Mapping[str, ApprovalDecision]) -> str:
    """Go on where the run waits."""
    with agent_of(desk, base_url) as agent:
        state = governed.resume(agent, json.loads(saved), answers)
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    run(start, resume)
