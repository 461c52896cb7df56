"""The reference driver: a plain loop with `ToolGuard` alone, which every other must equal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adjudge import ToolGuard
from adjudge_conformance._host import Host, Saved
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
        return json.dumps(outcome.native.save()).encode()

    def resume(self, target: Host, saved: bytes, answers: Sequence[GivenAnswer]) -> Outcome:
        """Go on with what waits, then with the loop."""
        state = json.loads(saved)
        ids = dict(_pending(state))
        given = {ids[answer.call_id]: answer.decision for answer in answers}
        assert target.guard is not None
        run = target.guard.reopen_sync(given)
        target.load(state, run)
        return target.go_on()

    def approve_natively(self, target: Host, saved: bytes) -> Outcome:
        """Go on with all that waits, in a run that nobody has opened again."""
        target.load(json.loads(saved), target.run_id)
        return target.go_on()


def _pending(saved: Saved) -> Iterator[tuple[str, str]]:
    yield from saved["pending"].items()
    for nested in saved["nested"].values():
        yield from _pending(nested)
