"""Values of a call as they may be shown: the secrets that the record leaves out are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adjudge._record.redaction import REDACTED, apply_redactor, default_redactor
from adjudge._types import ActionRequest
from adjudge._values import EMPTY
from adjudge.policy._faults import Fault
from adjudge.policy._model import Path
from adjudge.policy._subjects import subject

__all__ = ["Shown"]

_FIELDS = ("args", "injected", "extra", "session")


class Shown:
    """A request beside its redacted copy, in which everything that is shown is looked up."""

    def __init__(self, request: ActionRequest) -> None:
        self.request = request
        self._redactor = default_redactor(digests=False)
        context = request.context
        parts = self._redacted(
            {
                "args": request.args,
                "injected": request.injected,
                "extra": context.extra,
                "session": context.session,
            }
        )
        self._hidden = parts is None
        parts = {} if parts is None else parts
        self._copy = replace(
            request,
            args=parts.get("args", EMPTY),
            injected=parts.get("injected", EMPTY),
            context=replace(context, extra=parts.get("extra", EMPTY), session=parts.get("session")),
        )

    def _redacted(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        redacted = apply_redactor(self._redactor, body)
        return None if "redaction_failed" in redacted else redacted

    def args(self, args: Mapping[str, Any] | None) -> Any:
        """Give arguments as they may be shown."""
        if args is None:
            return None
        redacted = self._redacted({"args": args})
        return REDACTED if redacted is None else redacted["args"]

    def value(self, path: Path) -> tuple[Any, Any]:
        """Give what a path reads: the value itself, and what may be shown of it."""
        read = subject(path, ".")
        value = read(self.request, None)
        if value is None or isinstance(value, Fault):
            return value, None
        shown = REDACTED if self._hidden else read(self._copy, None)
        return value, REDACTED if isinstance(shown, Fault) else shown
