"""The redacted bodies of the events of one tool, and what they have in common from call to call.

What is the same for all calls of a tool is redacted and written once. Nothing here decides what an
event says, and nothing is kept without a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge._enforcement.circumstances import declaration
from adjudge._record.plain import Frame
from adjudge._record.redaction import Redactor, apply_redactor, frame_of
from adjudge._types import Decision, ToolMetadata, Verdict

__all__ = ["Bodies"]

_MOST_KEPT = 64


class Bodies:
    """Makes the bodies of the events of one tool, of the calls at one attempt.

    `keeps_judgments` says that the redactor gives the same for the same, whenever it is asked.
    """

    __slots__ = (
        "_about",
        "_ended",
        "_judged",
        "_keeps_judgments",
        "_namespace",
        "_proposed",
        "_redact",
    )

    def __init__(
        self,
        redact: Redactor,
        tool: str,
        attempt: int,
        namespace: str | None,
        *,
        keeps_judgments: bool,
    ) -> None:
        self._redact = redact
        self._keeps_judgments = keeps_judgments
        self._about = {"tool": tool, "attempt": attempt}
        self._namespace = namespace
        self._proposed: dict[
            tuple[str, ...], tuple[Frame | None, ToolMetadata | None, bool, Mapping[str, Any]]
        ] = {}
        self._ended: dict[
            tuple[Verdict | None, tuple[str, ...]], tuple[Frame | None, Mapping[str, Any]]
        ] = {}
        self._judged: dict[tuple[int, str, str | None], tuple[Decision, Mapping[str, Any]]] = {}

    def redacted(self, members: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give a body with these members."""
        return apply_redactor(self._redact, {**self._about, **members})

    def proposed(
        self, members: Mapping[str, Any], declared: ToolMetadata | None, *, has_shadow: bool
    ) -> Mapping[str, Any]:
        """Give the body of a proposal, of which these members differ from call to call."""
        names = tuple(members)
        kept = self._proposed.get(names)
        if kept is None or kept[1] is not declared or kept[2] is not has_shadow:
            about = declaration(declared, has_shadow=has_shadow)
            fixed = {**self._about, "namespace": self._namespace, "declared": about}
            kept = (frame_of(self._redact, fixed, names), declared, has_shadow, fixed)
            self._proposed[names] = kept
        frame = kept[0]
        body = None if frame is None else frame.body(members)
        return apply_redactor(self._redact, {**kept[3], **members}) if body is None else body

    def ended(self, members: Mapping[str, Any], verdict: Verdict | None) -> Mapping[str, Any]:
        """Give the body of a terminal event."""
        names = tuple(members)
        key = (verdict, names)
        kept = self._ended.get(key)
        if kept is None:
            fixed = dict(self._about)
            if verdict is not None:
                fixed["verdict"] = str(verdict)
            kept = self._ended[key] = (frame_of(self._redact, fixed, names), fixed)
        frame = kept[0]
        body = None if frame is None else frame.body(members)
        return apply_redactor(self._redact, {**kept[1], **members}) if body is None else body

    def judged(
        self, decision: Decision, phase: str, environment: str | None
    ) -> Mapping[str, Any] | None:
        """Give the body of an earlier judgment that was just this one."""
        kept = self._judged.get((id(decision), phase, environment))
        return kept[1] if kept is not None and kept[0] is decision else None

    def keep_judged(
        self, decision: Decision, phase: str, environment: str | None, body: Mapping[str, Any]
    ) -> None:
        """Keep the body of a judgment for the next call that the same decision is made about."""
        if self._keeps_judgments:
            if len(self._judged) >= _MOST_KEPT:
                self._judged.clear()
            self._judged[id(decision), phase, environment] = (decision, body)
