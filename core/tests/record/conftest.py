"""What the tests of the record share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adjudge._record.chain import hash_chained_sink
from adjudge._record.signing import new_signing_key
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


@pytest.fixture
def files(event: MakeEvent, record: Path) -> list[Path]:
    """A record of four files, with three events in each; the last one is at the path."""
    plain, rotating = hash_chained_sink(record), hash_chained_sink(record, rotate_bytes=1)
    for seq in range(12):
        (plain if seq % 3 else rotating)(event(seq))
    return [*sorted(record.parent.glob("audit.0*.jsonl")), record]


@pytest.fixture
def written(event: MakeEvent, record: Path) -> Path:
    """A record of six events in one file."""
    sink = hash_chained_sink(record)
    for seq in range(6):
        sink(event(seq))
    return record


@pytest.fixture
def kept(record: Path) -> Path:
    """Where the checkpoints of the record are looked for."""
    return record.with_name("audit.jsonl.checkpoints")


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a private key; its public half is beside it."""
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    new_signing_key(path)
    return path


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another private key."""
    path = tmp_path_factory.mktemp("keys") / "other.pem"
    new_signing_key(path)
    return path
