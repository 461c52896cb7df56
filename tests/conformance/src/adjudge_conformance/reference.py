"""The reference driver: a plain loop with `ToolGuard` alone, which every other must equal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge import ToolGuard
from adjudge_conformance._host import Host, text_of
from adjudge_conformance.driver import Driver, GivenAnswer, Outcome, Scene, Style

__all__ = ["ReferenceDriver"]


class ReferenceDriver(Driver[Host]):
    """The loop above, in every style."""

    name = "reference"
    styles = tuple(Style)
    apis = ("chat", "responses")

    def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Host:
        """Make the host."""
        return Host(scene, base_url, guard)

    def run(self, target: Host, style: Style) -> Outcome:
        """Run the loop to its end or to a pause."""
        return target.run(style) if style.is_sync else asyncio.run(target.run_together(style))

    def transcript(self, outcome: Outcome) -> Mapping[str, Any]:
        """Give the history and the tokens."""
        return {"history": outcome.native.conversation.history, "tokens": outcome.native.tokens}

    def save(self, outcome: Outcome) -> bytes:
        """Give the history and the ids under which the ledger keeps what waits."""
        host, pending = outcome.native
        return json.dumps({"history": host.conversation.history, "pending": pending}).encode()

    def resume(self, target: Host, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Resume what waits, then go on with the loop."""
        state = json.loads(saved)
        target.conversation.history = state["history"]
        assert target.guard is not None
        for answer in answers:
            done = target.guard.resume_sync(state["pending"][answer.call_id], answer.decision)
            target.conversation.tell(answer.call_id, text_of(done))
        return self.run(target, Style.SYNC)
