"""What a paused run carries of Adjudge: an entry's id, and where it goes on, the reopened run.

The framework's saved state may be in anybody's hands. Nothing in it grants: a call that goes on
needs the ledger's own entry, answered, and takes it once. Only a live object of this process names
a reopened run; what JSON can say does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired

from adjudge.integration import GovernedRun

__all__ = [
    "answers_another",
    "Reopened",
    "approval_required",
    "mark_of",
    "reopened",
    "reopened_call",
    "reopened_run",
]

_KEY = "adjudge"


@dataclass(frozen=True, slots=True)
class Reopened:
    """What the metadata of an answered call holds: its run, and what was saved with it."""

    run: GovernedRun
    saved: Mapping[str, Any]


def approval_required(run: str, pending: str | None, **saved: Any) -> ApprovalRequired:
    """Make the exception by which the framework leaves a call waiting."""
    return ApprovalRequired(metadata={_KEY: {"run": run, "pending": pending, **saved}})


def mark_of(metadata: object) -> Mapping[str, Any] | None:
    """Read what `approval_required` wrote, None where it is not ours."""
    mark = metadata.get(_KEY) if isinstance(metadata, Mapping) else None
    return mark if isinstance(mark, Mapping) and isinstance(mark.get("run"), str) else None


def reopened(run: GovernedRun, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Give the metadata with which a call goes on in a reopened run."""
    return {**metadata, _KEY: Reopened(run, mark_of(metadata) or {})}


def reopened_call(ctx: RunContext[Any]) -> Reopened | None:
    """Find what a call goes on with, None for a call that does not."""
    metadata = ctx.tool_call_metadata
    found = metadata.get(_KEY) if isinstance(metadata, Mapping) else None
    return found if type(found) is Reopened else None


def reopened_run(ctx: RunContext[Any]) -> GovernedRun | None:
    """Find the run in which a call goes on."""
    call = reopened_call(ctx)
    return None if call is None else call.run


def answers_another(ctx: RunContext[Any], name: str) -> bool:
    """Whether a call goes on by our answer to another one: its history was changed.

    The framework was told that the call is approved, which our answer is not for any other tool.
    """
    call = reopened_call(ctx)
    if call is None or not call.saved:
        return False
    return not any(
        (entry.tool, entry.call_id) == (name, ctx.tool_call_id) for entry in call.run.entries
    )
