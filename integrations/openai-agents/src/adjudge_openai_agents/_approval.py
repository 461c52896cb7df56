"""Asking before the body: the `needs_approval` of a governed tool.

The SDK pauses a run here or not at all. What the policy has a person asked about is entered in the
ledger; whatever else it says of the call shows at the body. A tool's own setting still counts, and
is the SDK's affair.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents import RunContextWrapper

from adjudge_openai_agents._runs import frame_of

if TYPE_CHECKING:
    from adjudge_openai_agents._body import GovernedBody

__all__ = ["Approval"]


class Approval:
    """What decides whether a call of one tool waits for a person; `own` is the tool's setting."""

    def __init__(self, body: GovernedBody, own: Any) -> None:
        self._body = body
        self._own = own

    async def __call__(self, context: RunContextWrapper[Any], raw: Any, call_id: str) -> bool:
        """Leave the call waiting where the policy, or the tool itself, asks for a person."""
        guard = self._body.binding.guard
        frame = frame_of(context, guard)
        waits = False
        if frame.run is not None:
            source = self._body.binding.context
            call = replace(
                self._body.proposed(raw, call_id),
                run=frame.run,
                agent=self._body.binding.agent,
                parent=frame.parent,
            )
            pending = await guard.pause_call(
                call, context=source and functools.partial(source, context)
            )
            waits = pending is not None
        waits = waits or await self._own_answer(context, raw, call_id)
        frame.waits = frame.waits or waits
        return waits

    async def _own_answer(self, context: RunContextWrapper[Any], raw: Any, call_id: str) -> bool:
        if not callable(self._own):
            return bool(self._own)
        if self._body.changes(raw):
            return True
        answer = self._own(context, raw, call_id)
        return bool(await answer if inspect.isawaitable(answer) else answer)
