"""One worker's hold on one session: it reads, claims, goes on and saves.

The chain is claimed first and the session is saved after, so that whoever loses has done nothing.
Where a save was lost to a crash, the chain says what it would have held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from adjudge import ConcurrentModification, RunStore, SessionStore, StoreError
from adjudge_runtime.kernel._chain import Chain, chain_id
from adjudge_runtime.kernel._lifecycle import TERMINAL_STATES
from adjudge_runtime.kernel._scratchpad import Scratchpad
from adjudge_runtime.kernel._sessions import (
    SessionSnapshot,
    session_from_record,
)
from adjudge_runtime.kernel._working import Working

__all__ = ["MakePad", "Worker", "open_session"]

MakePad = Callable[[SessionSnapshot], Scratchpad]


class Worker:
    """A session in this process, and its chain."""

    def __init__(
        self, store: SessionStore, saved: SessionSnapshot, chain: Chain, *, make_pad: MakePad
    ) -> None:
        self._store = store
        self._make_pad = make_pad
        self.chain = chain
        self.written = list(chain.records)
        self.working = self._rebuilt(saved)
        self.is_saved = self.working.now == saved
        """Whether the store had all of it when this worker came."""

    @property
    def now(self) -> SessionSnapshot:
        """The session as it stands."""
        return self.working.now

    @property
    def has_ended(self) -> bool:
        """Whether it is in a terminal state."""
        return self.now.state in TERMINAL_STATES

    async def claim(self, kind: str, body: Mapping[str, Any]) -> None:
        """Go on with the session in place of whoever had it; raises `ConcurrentModification`.

        What that worker may still have saved before it came to know is read again.
        """
        self.chain.applies = self.written.append
        await self.chain.append(kind, body)
        saved = session_from_record(await self._store.load(self.now.session_id))
        self.working = self._rebuilt(saved)
        self.chain.applies = self._follow

    async def save(self) -> None:
        """Checkpoint; raises `ConcurrentModification` where another worker has gone on with it.

        A worker that was overtaken may save once more before it comes to know. What it saves covers
        less of the chain, so that it is replaced; what covers as much is the same session.
        """
        while True:
            now = self.now
            try:
                kept = await self._store.save(self.working.record(), expected_version=now.version)
            except ConcurrentModification:
                saved = session_from_record(await self._store.load(now.session_id))
                if saved.version == now.version or saved.covers > now.covers:
                    raise
                self.working.saved_as(saved.version)
                if saved.covers == now.covers:
                    return
            else:
                self.working.saved_as(kept.version)
                return

    def _follow(self, record: Any) -> None:
        self.working.apply(record)

    def _rebuilt(self, saved: SessionSnapshot) -> Working:
        if saved.covers > len(self.written):
            raise StoreError(
                f"The session {saved.session_id!r} covers {saved.covers} records, and its chain "
                f"has {len(self.written)}: is it the chain's store?"
            )
        working = Working(saved, self._make_pad(saved))
        for record in self.written[saved.covers :]:
            working.apply(record)
        return working


async def open_session(
    store: SessionStore,
    chain: RunStore,
    session_id: str,
    *,
    make_pad: MakePad,
    now: Callable[[], datetime],
) -> Worker:
    """Read a session and its chain; raises `UnknownSession`, and `StoreError` for what is none."""
    saved = session_from_record(await store.load(session_id))
    records = await chain.load(chain_id(session_id))
    return Worker(store, saved, Chain(chain, session_id, records, now=now), make_pad=make_pad)
