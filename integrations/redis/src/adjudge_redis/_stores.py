"""Journals and sessions on a Redis server, for any number of workers on any number of machines.

A run is one hash from numbers to steps, and a number is set once (HSETNX); a session is one hash,
replaced by a script that compares its version first. The work is done in a thread, so that an event
loop never waits for the network. What outlives a crash of the server is a matter of its settings:
see `durable`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adjudge import SessionRecord, StepRecord, StoreError, step_record_to_json
from adjudge.integration import (
    duplicate_record,
    read_session,
    read_step,
    session_changed,
    session_exists,
    session_record_to_json,
    unknown_session,
)
from adjudge_redis._door import Door

__all__ = ["RedisRunStore", "RedisSessionStore"]

# KEYS: the session. ARGV: its version and record.
_CREATE = """
if redis.call('HLEN', KEYS[1]) > 0 then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'record', ARGV[2])
return 1
"""
# KEYS: the session. ARGV: the version that it has to be at, and its next one and record.
_SAVE = """
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3])
return 1
"""
_COUNT = re.compile(r"0|[1-9][0-9]{0,15}")


class RedisRunStore(Door):
    """A run store on the server that `url` names, as redis-py takes it; keys begin with `prefix`.

    `durable` is whether the server keeps what it acknowledged: by its settings, which are read
    here, or by your word. Where it does not, or does not say, this warns. `connections` is how many
    this process has at once. `connect_seconds` bounds connecting, `busy_seconds` the waiting for a
    free connection and for each answer. Every method raises `StoreError` where the server cannot be
    used. Threads, event loops and forked processes may share one.
    """

    _name = "The Redis run store"
    _error = StoreError

    async def append(self, record: StepRecord) -> None:
        """Keep a step; raises `DuplicateRecord` where the run has one of that number."""
        await asyncio.to_thread(self._append, record, step_record_to_json(record))

    async def load(self, run_id: str) -> Sequence[StepRecord]:
        """Give the steps of a run in order."""
        return await asyncio.to_thread(self._load, run_id)

    def _append(self, record: StepRecord, text: str) -> None:
        key = self._server.key("steps", record.run_id)
        if self._server.do(lambda client: client.hsetnx(key, str(record.seq), text)) != 1:
            raise duplicate_record(record)

    def _load(self, run_id: str) -> Sequence[StepRecord]:
        key = self._server.key("steps", run_id)
        found: dict[bytes, bytes] = self._server.do(lambda client: client.hgetall(key))
        steps = [read_step(run_id, _count(seq), _text(text)) for seq, text in found.items()]
        return tuple(sorted(steps, key=lambda step: step.seq))


class RedisSessionStore(Door):
    """A session store on the server that `url` names; keys begin with `prefix`.

    `durable` is whether the server keeps what it acknowledged: by its settings, which are read
    here, or by your word. Where it does not, or does not say, this warns. `connections` is how many
    this process has at once. `connect_seconds` bounds connecting, `busy_seconds` the waiting for a
    free connection and for each answer. Every method raises `StoreError` where the server cannot be
    used. Threads, event loops and forked processes may share one.
    """

    _name = "The Redis session store"
    _error = StoreError

    async def create(self, record: SessionRecord) -> SessionRecord:
        """Keep a new session; raises `SessionExists` where there is one of that id."""
        made = replace(record, version=1)
        if not await self._write(_CREATE, made, "1"):
            raise session_exists(made)
        return made

    async def load(self, session_id: str) -> SessionRecord:
        """Give a session; raises `UnknownSession` where there is none of that id."""
        key = self._server.key("session", session_id)
        found: dict[bytes, bytes] = await asyncio.to_thread(
            self._server.do, lambda client: client.hgetall(key)
        )
        if not found:
            raise unknown_session(session_id)
        if found.keys() != {b"version", b"record"}:
            raise StoreError(
                f"The session {session_id!r} is not as it was written: a field of it is missing "
                "or unknown."
            )
        return read_session(session_id, _count(found[b"version"]), _text(found[b"record"]))

    async def save(self, record: SessionRecord, *, expected_version: int) -> SessionRecord:
        """Replace the session that is at the expected version, and give what is kept."""
        made = replace(record, version=expected_version + 1)
        if not await self._write(_SAVE, made, str(expected_version), str(made.version)):
            raise session_changed(await self.load(made.session_id), expected_version)
        return made

    async def exists(self, session_id: str) -> bool:
        """Whether there is a session of that id."""
        key = self._server.key("session", session_id)
        count: int = await asyncio.to_thread(self._server.do, lambda client: client.hlen(key))
        return count > 0

    async def _write(self, script: str, made: SessionRecord, *versions: str) -> bool:
        """Run a script on a session; whether it wrote."""
        key = self._server.key("session", made.session_id)
        text = session_record_to_json(made)

        def run(client: Any) -> bool:
            wrote: int = client.eval(script, 1, key, *versions, text)
            return wrote == 1

        return await asyncio.to_thread(self._server.do, run)


def _count(value: bytes) -> int | bytes:
    """Read a number as we write it; what is none is given as it is, and matches no record."""
    text = value.decode(errors="replace")
    return int(text) if _COUNT.fullmatch(text) else value


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return ""  # which is no record, as the reader will say
