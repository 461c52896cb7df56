"""The ledger: what was asked of people, what they granted, and what became of it.

An entry is one occurrence of one call. It can be claimed once, by one atomic compare-and-set,
before it expires; what was claimed and never finished is uncertain and is not run again. What a
finished one gave is kept where its framework will ask for it again. Entries are JSON and hold
nothing that could be executed.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from adjudge._types import ApprovalDecision, Principal
from adjudge.errors import LedgerError

__all__ = ["EntryState", "Ledger", "LedgerEntry", "MemoryLedger"]


class EntryState(StrEnum):
    """Where an entry stands."""

    ASKED = "asked"
    """A handler is being asked, in the process that made the entry."""
    PAUSED = "paused"
    """The call waits for a person, or for `resume`."""
    ANSWERED = "answered"
    """All that were to be asked have answered; the call waits for its framework's run to go on."""
    SUSPENDED = "suspended"
    """The body began, and waits for something inside of it; it goes on with the run."""
    CLAIMED = "claimed"
    """Somebody is at it; if that process died, what became of the body is not known."""
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One occurrence of one call: asked about, suspended, or to be given again once it is finished.

    `args` are the original arguments, as the model sent them, and `final_args` those that would
    run; `digest` binds tool identity, final arguments, principal and occurrence. `run` is the run
    of a framework that the call belongs to. `grants` names who has granted so far, one for each
    approver set in order; `answers` keeps what was answered ahead of the run's going on. `holder`
    is who claimed the entry. `outcome` says how a finished one ended, and `result` what is given
    where the call is proposed again, None where nothing is.
    """

    id: str
    tool: str
    namespace: str | None
    args: Mapping[str, Any]
    digest: str
    principal: Principal
    occurrence: str
    policy_id: str
    matched_rules: tuple[str, ...]
    approver_sets: tuple[tuple[str, ...], ...]
    correlation_id: str
    seq: int
    call_id: str | None
    attempt: int
    environment: str | None
    workspace: str
    extra: Mapping[str, Any]
    session: Mapping[str, Any] | None
    injected: Mapping[str, Any]
    expires_at: datetime
    state: EntryState
    run: str | None = None
    reason: str = ""
    final_args: Mapping[str, Any] | None = None
    grants: tuple[str, ...] = ()
    answers: tuple[ApprovalDecision, ...] = ()
    holder: str | None = None
    outcome: str | None = None
    result: Mapping[str, Any] | None = None


class Ledger(Protocol):
    """Where entries are kept; every method may be sync, or async and return an awaitable.

    `durable` says whether entries outlive the process. Each method raises `LedgerError` where the
    store cannot be read or written, or holds something that is no entry.
    """

    @property
    def durable(self) -> bool:
        """Whether entries outlive the process."""
        ...

    def add(self, entry: LedgerEntry) -> Awaitable[None] | None:
        """Keep a new entry; an id that is there already raises `LedgerError`."""
        ...

    def get(self, id: str) -> Awaitable[LedgerEntry | None] | LedgerEntry | None:
        """Give the entry of that id, None where there is none."""
        ...

    def of_run(self, run: str) -> Awaitable[tuple[LedgerEntry, ...]] | tuple[LedgerEntry, ...]:
        """Give the entries of a framework's run, in the order in which they were added."""
        ...

    def answer(
        self, id: str, answer: ApprovalDecision, *, now: datetime
    ) -> Awaitable[LedgerEntry | None] | LedgerEntry | None:
        """Atomically add an answer to the entry that is paused and has not expired.

        The entry is as `answered` gives it; None where it takes no answer any more.
        """
        ...

    def claim(
        self, id: str, *, expected: EntryState, holder: str, now: datetime
    ) -> Awaitable[LedgerEntry | None] | LedgerEntry | None:
        """Atomically take the entry that is in the expected state and has not expired, or None.

        One that is suspended does not expire: its body has begun.
        """
        ...

    def expire(self, id: str, *, now: datetime) -> bool | Awaitable[bool]:
        """Atomically finish an entry that waits and has expired; whether this call did it."""
        ...

    def settle(
        self,
        id: str,
        *,
        holder: str,
        state: EntryState,
        grants: tuple[str, ...],
        outcome: str | None,
        result: Mapping[str, Any] | None = None,
    ) -> bool | Awaitable[bool]:
        """Atomically move the entry that this holder has claimed; False where it has it no more."""
        ...


class MemoryLedger:
    """A ledger in this process's memory: safe for many threads, gone when the process ends."""

    durable = False

    def __init__(self) -> None:
        self._entries: dict[str, LedgerEntry] = {}
        self._runs: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def add(self, entry: LedgerEntry) -> None:
        """Keep a new entry."""
        with self._lock:
            if entry.id in self._entries:
                raise LedgerError(f"There is an entry {entry.id!r} already.")
            self._entries[entry.id] = entry
            if entry.run is not None:
                self._runs.setdefault(entry.run, []).append(entry.id)

    def get(self, id: str) -> LedgerEntry | None:
        """Give the entry of that id."""
        with self._lock:
            return self._entries.get(id)

    def of_run(self, run: str) -> tuple[LedgerEntry, ...]:
        """Give the entries of a run."""
        with self._lock:
            return tuple(self._entries[key] for key in self._runs.get(run, ()))

    def answer(self, id: str, answer: ApprovalDecision, *, now: datetime) -> LedgerEntry | None:
        """Add an answer to the entry, if it is paused and has not expired."""
        with self._lock:
            entry = self._entries.get(id)
            if entry is None or entry.state is not EntryState.PAUSED or entry.expires_at <= now:
                return None
            self._entries[id] = answered(entry, answer)
            return self._entries[id]

    def claim(
        self, id: str, *, expected: EntryState, holder: str, now: datetime
    ) -> LedgerEntry | None:
        """Take the entry, if it is in the expected state and has not expired."""
        with self._lock:
            entry = self._entries.get(id)
            if entry is None or entry.state is not expected or has_expired(entry, now):
                return None
            claimed = replace(entry, state=EntryState.CLAIMED, holder=holder)
            self._entries[id] = claimed
            return claimed

    def expire(self, id: str, *, now: datetime) -> bool:
        """Finish the entry, if it waits and has expired."""
        with self._lock:
            entry = self._entries.get(id)
            if entry is None or entry.state not in WAITING or not has_expired(entry, now):
                return False
            self._entries[id] = replace(entry, state=EntryState.FINISHED, outcome="expired")
            return True

    def settle(
        self,
        id: str,
        *,
        holder: str,
        state: EntryState,
        grants: tuple[str, ...],
        outcome: str | None,
        result: Mapping[str, Any] | None = None,
    ) -> bool:
        """Move the entry to another state, if this holder has it."""
        with self._lock:
            entry = self._entries.get(id)
            if entry is None or entry.state is not EntryState.CLAIMED or entry.holder != holder:
                return False
            holding = holder if state is EntryState.FINISHED else None
            self._entries[id] = replace(
                entry, state=state, grants=grants, outcome=outcome, holder=holding, result=result
            )
            return True


def checked_claim(answer: object, holder: str) -> LedgerEntry | None:
    """Give the entry that a ledger says was claimed, None for none; `LedgerError` for else."""
    if answer is None:
        return None
    if not isinstance(answer, LedgerEntry) or answer.holder != holder:
        raise LedgerError("The ledger answered a claim with something that was not claimed.")
    return answer


def has_expired(entry: LedgerEntry, now: datetime) -> bool:
    """Whether an entry has waited too long; a body that has begun waits for as long as it takes."""
    return entry.state is not EntryState.SUSPENDED and entry.expires_at <= now


def answered(entry: LedgerEntry, answer: ApprovalDecision) -> LedgerEntry:
    """Give an entry with one more answer: all that it needs once one refuses or all have granted.

    A refusal is an answer whose `granted` is not the bool True. Whoever has granted for one
    approver set cannot grant for another, so a grant that comes twice counts once.
    """
    if answer.granted is True and answer.approver in {each.approver for each in entry.answers}:
        return entry
    answers = (*entry.answers, answer)
    complete = answer.granted is not True or len(answers) >= max(1, len(entry.approver_sets))
    state = EntryState.ANSWERED if complete else EntryState.PAUSED
    return replace(entry, answers=answers, state=state)


WAITING = (
    EntryState.ASKED,
    EntryState.PAUSED,
    EntryState.ANSWERED,
    EntryState.SUSPENDED,
)
