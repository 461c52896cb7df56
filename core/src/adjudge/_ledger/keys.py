"""The key of one call: the same in every process that sees the call again.

A framework that resumes or re-runs builds its objects anew, so a call is known by what it is. A
provider's call id alone does not do: ids repeat between agents, turns and providers.
"""

from __future__ import annotations

from collections.abc import Mapping

from adjudge._values import digest

__all__ = ["ledger_key", "occurrence_of"]


def ledger_key(
    *,
    run: str,
    tool: str,
    args: Mapping[str, object],
    namespace: str | None = None,
    call_id: str | None = None,
    agent: str | None = None,
    task: str | None = None,
    occurrence: int = 1,
) -> str:
    """Name one call of one run, in hexadecimal.

    `args` are the arguments as the model sent them. Where the framework has no call id, `agent`,
    `task` and `occurrence` (the n-th such call of the run, from 1) tell equal calls apart. Values
    that are no JSON raise `ArgumentsRefused`.
    """
    return digest(
        {
            "run": run,
            "agent": agent,
            "task": task,
            "tool": tool,
            "namespace": namespace,
            "call_id": call_id,
            "args": args,
            "occurrence": occurrence,
        }
    )


def occurrence_of(key: str, attempt: int) -> str:
    """Name one attempt at the call of that key, as the ledger has it."""
    return f"{key}/{attempt}"
