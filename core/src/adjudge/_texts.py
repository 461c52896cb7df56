"""What a model reads where no result of a tool stands: the same in every framework (law 2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from adjudge._values import freeze
from adjudge.errors import ArgumentsRefused

if TYPE_CHECKING:
    from adjudge._types import GovernedCall

__all__ = ["denied_text", "dry_run_text", "model_text"]

_NO_REASON = "not permitted by policy"


def denied_text(reason: str) -> str:
    """Say that a call was denied, and why."""
    return f"[denied] {reason or _NO_REASON}"


def dry_run_text(preview: object) -> str:
    """Say that a call was not executed, with the shadow's preview as JSON.

    A preview that is no JSON value raises `ArgumentsRefused`.
    """
    value = freeze(preview, where="preview")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError:
        raise ArgumentsRefused(
            "preview holds a Decimal or a secret, which JSON cannot show."
        ) from None
    return f"[dry_run] not executed; preview: {text}"


def model_text(call: GovernedCall) -> str | None:
    """Give the text for a denied or previewed call, None for one whose body ran or that waits."""
    from adjudge._types import Outcome

    if call.outcome is Outcome.DENIED:
        return denied_text(call.result.error or "")
    if call.outcome is Outcome.PREVIEWED:
        return dry_run_text(call.result.value)
    return None
