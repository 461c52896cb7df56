"""Where in a host's run a call stands, for calls that come through `ToolGuard.check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adjudge._enforcement.runs import GovernedRun

__all__ = ["CallPlace"]


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call of a `ToolSet`'s tool stands in a run; each as in `ProposedCall`."""

    call_id: str | None = None
    run: GovernedRun | None = None
    agent: str | None = None
    parent: str | None = None
    control_flow: tuple[type[BaseException], ...] = ()
