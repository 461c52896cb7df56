"""What came of one call, and what the model is told of it."""

from __future__ import annotations

import json

from adjudge import GovernedCall, Outcome
from adjudge_runtime._stops import said
from adjudge_runtime._values import Usage

__all__ = ["Answer", "failed_text", "storable", "text_of_value"]

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Answer:
    """What came of one call.

    `waits` says that the call is left open: by the id of what is pending, or by an empty text
    where something inside of its body waits. `usage` and `denials` are those of agents inside of
    its body.
    """

    __slots__ = (
        "code",
        "denials",
        "duration_ms",
        "error",
        "message",
        "ok",
        "outcome",
        "usage",
        "verdict",
        "waits",
    )

    def __init__(
        self,
        message: str,
        verdict: str,
        outcome: str,
        *,
        ok: bool,
        error: str | None = None,
        code: str = "",
        duration_ms: float = 0.0,
        waits: str | None = None,
    ) -> None:
        self.message = message
        self.verdict = verdict
        self.outcome = outcome
        self.ok = ok
        self.error = error
        self.code = code
        self.duration_ms = duration_ms
        self.waits = waits
        self.usage: Usage | None = None
        self.denials = 0

    @classmethod
    def of(cls, call: GovernedCall) -> Answer:
        """Give what came of a governed call."""
        result, outcome = call.result, call.outcome
        verdict = call.decision.verdict.value
        if outcome is Outcome.COMPLETED:
            text = text_of_value(result.value)
            return cls(text, verdict, "completed", ok=True, duration_ms=result.duration_ms)
        if call.pending is not None:
            return cls("", verdict, outcome.value, ok=False, waits=call.pending.id)
        text = call.text or failed_text(result.error)
        return cls(
            text,
            verdict,
            outcome.value,
            ok=result.ok,
            error=result.error,
            code=result.code,
            duration_ms=result.duration_ms,
        )


def text_of_value(value: object) -> str:
    """Write a tool's result for the model: text as it is, else JSON, else as Python shows it."""
    if type(value) is str:
        return value
    try:
        return str(value) if type(value) is int else _encode(value)
    except Exception:
        # A value may raise anything where its items are read.
        return _as_python_shows(value)


def _as_python_shows(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"[error] the tool ran, and its result cannot be shown: {said(error)}"


def failed_text(error: str | None) -> str:
    """Say that a tool failed, and how."""
    return f"[error] {error or 'the tool failed'}"


def storable(text: str) -> str:
    """Give a text that every store takes: one without lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
