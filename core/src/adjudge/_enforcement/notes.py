"""Events of a host's own, on the same record as the calls: a run begins, a step used tokens.

They go the way of every event: redacted, to the same sinks, in order. What they say is the host's;
the kinds by which core says what became of a call are core's alone.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from typing import Any

from adjudge._enforcement.effects import Effect, Emit
from adjudge._enforcement.settings import Settings
from adjudge._record.redaction import apply_redactor
from adjudge._types import AuditEvent

__all__ = ["check_kind", "noted"]

_OWN_PREFIXES = ("action.", "approval.", "obligation.", "policy.", "record.")
_OWN_KINDS = ("step.proposed",)
_KIND = re.compile(r"[a-z][a-z_]*\.[a-z][a-z_.]*", re.ASCII)


def check_kind(kind: object) -> None:
    """Hold the kind of a host's event to its form; raises `ValueError`."""
    if not isinstance(kind, str) or _KIND.fullmatch(kind) is None:
        raise ValueError(
            f"The kind {kind!r} is none of an event; write two words such as 'run.started'."
        )
    if kind in _OWN_KINDS or kind.startswith(_OWN_PREFIXES):
        raise ValueError(
            f"Only Adjudge itself records {kind!r}; give the event a kind of your own, "
            "such as 'run.started'."
        )


def noted(
    settings: Settings, seq: int, kind: str, body: Mapping[str, Any]
) -> Generator[Effect, Any, None]:
    """Record one event; a required sink that does not take it raises `RecordError`."""
    if settings.records:
        redacted = apply_redactor(settings.redact, body)
        yield Emit(
            (
                AuditEvent(
                    settings.correlation_id, settings.policy.id, seq, kind, settings.now(), redacted
                ),
            )
        )
