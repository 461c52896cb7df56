"""What the tests of the record share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adjudge._types import AuditEvent

MakeEvent = Callable[..., AuditEvent]


@pytest.fixture
def event() -> MakeEvent:
    """Make events; all of them say `step.proposed` unless told otherwise."""

    def make(seq: int = 1, kind: str = "step.proposed", **body: Any) -> AuditEvent:
        return AuditEvent(
            "run",
            "bundle",
            seq,
            kind,
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            {"tool": "t", **body},
        )

    return make


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """The path of a record that is not there yet."""
    return tmp_path / "audit.jsonl"
