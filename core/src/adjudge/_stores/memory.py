"""Stores in this process's memory: safe for many threads and event loops, gone when it ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from adjudge._stores.codec import session_record_to_json, step_record_to_json
from adjudge._stores.outcomes import (
    duplicate_record,
    session_changed,
    session_exists,
    unknown_session,
)
from adjudge._stores.records import SessionRecord, StepRecord

__all__ = ["MemoryRunStore", "MemorySessionStore"]


class MemoryRunStore:
    """A run store for tests and for runs that need not outlive the process."""

    durable = False

    def __init__(self) -> None:
        self._runs: dict[str, dict[int, StepRecord]] = {}
        self._lock = threading.Lock()

    async def append(self, record: StepRecord) -> None:
        """Keep a step; raises `DuplicateRecord` where the run has one of that number."""
        step_record_to_json(record)  # what no other store would keep, this one refuses too
        with self._lock:
            kept = self._runs.setdefault(record.run_id, {})
            if record.seq in kept:
                raise duplicate_record(record)
            kept[record.seq] = record

    async def load(self, run_id: str) -> Sequence[StepRecord]:
        """Give the steps of a run in order."""
        with self._lock:
            kept = self._runs.get(run_id, {})
            return tuple(kept[seq] for seq in sorted(kept))


class MemorySessionStore:
    """A session store for tests and for sessions that need not outlive the process."""

    durable = False

    def __init__(self) -> None:
        self._sessions: dict[str, SessionRecord] = {}
        self._lock = threading.Lock()

    async def create(self, record: SessionRecord) -> SessionRecord:
        """Keep a new session; raises `SessionExists` where there is one of that id."""
        made = replace(record, version=1)
        session_record_to_json(made)
        with self._lock:
            if self._sessions.setdefault(made.session_id, made) is not made:
                raise session_exists(record)
        return made

    async def load(self, session_id: str) -> SessionRecord:
        """Give a session; raises `UnknownSession` where there is none of that id."""
        with self._lock:
            found = self._sessions.get(session_id)
        if found is None:
            raise unknown_session(session_id)
        return found

    async def save(self, record: SessionRecord, *, expected_version: int) -> SessionRecord:
        """Replace the session that is at the expected version, and give what is kept."""
        made = replace(record, version=expected_version + 1)
        session_record_to_json(made)
        with self._lock:
            found = self._sessions.get(record.session_id)
            if found is None:
                raise unknown_session(record.session_id)
            if found.version != expected_version:
                raise session_changed(found, expected_version)
            self._sessions[record.session_id] = made
        return made

    async def exists(self, session_id: str) -> bool:
        """Whether there is a session of that id."""
        with self._lock:
            return session_id in self._sessions
