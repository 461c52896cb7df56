"""Where in a host's run a call stands, for calls that come through `ToolGuard.check`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adjudge._enforcement.runs import GovernedRun
    from adjudge._types import ActionRequest

__all__ = ["CallPlace"]


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call of a `ToolSet`'s tool stands in a run; each as in `ProposedCall`.

    `before_asking` is told the call, as it was judged, before a person is asked about it. It gives
    None, or the code and the reason with which the call is denied and nobody is asked.
    """

    call_id: str | None = None
    run: GovernedRun | None = None
    agent: str | None = None
    parent: str | None = None
    control_flow: tuple[type[BaseException], ...] = ()
    may_pause: bool = True
    before_asking: Callable[[ActionRequest], tuple[str, str] | None] | None = None
