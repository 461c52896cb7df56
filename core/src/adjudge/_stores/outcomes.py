"""What the stores say where somebody else was first, in the same words everywhere."""

from __future__ import annotations

from adjudge._stores.records import SessionRecord, StepRecord
from adjudge.errors import (
    ConcurrentModification,
    DuplicateRecord,
    SessionExists,
    UnknownSession,
)

__all__ = ["duplicate_record", "session_changed", "session_exists", "unknown_session"]


def duplicate_record(record: StepRecord) -> DuplicateRecord:
    """Give the error for a number that the run has already."""
    return DuplicateRecord(f"The run {record.run_id!r} has a step {record.seq} already.")


def session_exists(record: SessionRecord) -> SessionExists:
    """Give the error for a session that is there already."""
    return SessionExists(f"There is a session {record.session_id!r} already; load it.")


def unknown_session(session_id: str) -> UnknownSession:
    """Give the error for a session that is not there."""
    return UnknownSession(f"There is no session {session_id!r}; create it.")


def session_changed(found: SessionRecord, expected_version: int) -> ConcurrentModification:
    """Give the error for a session that is at another version than the saver saw."""
    return ConcurrentModification(
        f"The session {found.session_id!r} is at version {found.version}, and not at "
        f"{expected_version} any more; load it and decide again."
    )
