"""One run of a framework that can pause, across the processes that carry it on.

A run is known by an id of ours, which the ledger keeps with each call that waits. An integration
makes a `GovernedRun` where a run begins, or has `ToolGuard.reopen` make one out of the answers of
people, and names it in each `ProposedCall`.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from adjudge._enforcement.effects import Effect, UseLedger
from adjudge._enforcement.keeping import pending_of
from adjudge._enforcement.settings import Settings
from adjudge._ledger.entries import EntryState, Ledger, LedgerEntry
from adjudge._ledger.keys import ledger_key, occurrence_of
from adjudge._types import ApprovalDecision, CallContext, GovernedCall, PendingApproval
from adjudge._values import freeze_object
from adjudge.errors import AnswerError, ArgumentsRefused, EphemeralLedgerWarning, LedgerError

__all__ = ["Answers", "GovernedRun", "Look", "reopen", "waiting", "warn_unless_durable"]

Answers = Mapping[str, ApprovalDecision | None]


class Look(NamedTuple):
    """What a first look at a call found out, for the judging at its body.

    `denied` is the call where it should have been left waiting and could not be.
    """

    seq: int
    caller: CallContext | None
    denied: GovernedCall | None = None


class GovernedRun:
    """What is known of one run: the calls that wait in it, by occurrence.

    A call of the run that has an entry goes on with it, once; whatever comes after that under the
    same occurrence is a new call.
    """

    __slots__ = ("__weakref__", "_entries", "_looks", "id", "unanswered")

    def __init__(
        self,
        id: str | None = None,
        entries: Iterable[LedgerEntry] = (),
        *,
        unanswered: frozenset[str] = frozenset(),
    ) -> None:
        self.id = uuid.uuid4().hex if id is None else id
        """The id under which the ledger keeps the run's calls."""
        self.unanswered = unanswered
        """The ids of the entries that still wait for a person in a run that was opened again."""
        self._entries = {entry.occurrence: entry for entry in entries}
        self._looks: dict[str, Look] = {}

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """The calls that wait, or had to when the run was opened again, in order."""
        return tuple(self._entries.values())

    def keep(self, entry: LedgerEntry) -> None:
        """Add a call that waits."""
        self._entries[entry.occurrence] = entry

    def waits(self, occurrence: str) -> LedgerEntry | None:
        """Give the entry of a call."""
        return self._entries.get(occurrence)

    def entry_at(
        self, tool: str, call_id: str, *, agent: str | None = None, parent: str | None = None
    ) -> LedgerEntry | None:
        """Give the entry of a call by where it stands, whatever its arguments; None without one.

        For hosts that know the call again by `call_id`, which is unique within `parent`: the calls
        inside of whose bodies it was proposed.
        """
        for entry in self._entries.values():
            if (entry.tool, entry.call_id) != (tool, call_id):
                continue
            key = ledger_key(
                run=self.id,
                tool=tool,
                args=entry.args,
                namespace=entry.namespace,
                call_id=call_id,
                agent=agent,
                task=parent,
            )
            if entry.occurrence == occurrence_of(key, entry.attempt):  # ids alone repeat
                return entry
        return None

    def take(self, occurrence: str) -> LedgerEntry | None:
        """Give the entry of a call to whoever goes on with it."""
        return self._entries.pop(occurrence, None)

    def looked(self, occurrence: str, look: Look) -> None:
        """Put down what a first look found."""
        self._looks[occurrence] = look

    def look_at(self, occurrence: str) -> Look | None:
        """Give what the first look found, once."""
        return self._looks.pop(occurrence, None)


def warn_unless_durable(ledger: Ledger | None) -> None:
    """Warn the caller of `govern` that what pauses can go on in this process alone."""
    if ledger is not None and not ledger.durable:
        warnings.warn(
            "The ledger is in memory: a run that pauses can be resumed in this process alone. "
            "Give pause_approval(SQLiteLedger(path)) for one that outlives it.",
            EphemeralLedgerWarning,
            stacklevel=4,
        )


def reopen(
    settings: Settings, answers: Answers, run: str | None = None
) -> Generator[Effect, Any, GovernedRun]:
    """Keep people's answers in the ledger, and give the run that they belong to.

    An answer that comes too late, or after another, changes nothing; that shows when the call goes
    on. None leaves a call as the ledger has it, answered by then or not. `run` names the run where
    there need not be an answer. Raises `AnswerError` for answers that cannot be any, and then none
    is kept.
    """
    ledger = settings.ledger
    if not isinstance(answers, Mapping):
        raise AnswerError(
            f"The answers are a {type(answers).__name__}; give a mapping from the ids of what is "
            "pending to ApprovalDecisions."
        )
    if ledger is None:
        raise AnswerError("This guard has no ledger; give it on_approval=pause_approval(ledger).")
    if not answers and run is None:
        raise AnswerError("There is no answer; give at least one, by the id of what is pending.")
    checked = {key: _checked(key, answer) for key, answer in answers.items()}
    for key in checked:
        entry = yield UseLedger(ledger.get, (key,), may_block=True)
        found = _run_of(key, entry)
        if run not in (None, found):
            raise AnswerError(
                f"The call {key!r} is part of another run than the others; resume each run with "
                "the answers to its own calls."
            )
        run = found
    for key, answer in checked.items():
        if answer is None:
            continue
        yield UseLedger(ledger.answer, (key, answer), {"now": settings.now()}, may_block=True)
    assert run is not None
    entries = yield from _entries(ledger, run)
    now = settings.now()
    open_ids = (e.id for e in entries if e.state is EntryState.PAUSED and e.expires_at > now)
    return GovernedRun(run, entries, unanswered=frozenset(open_ids))


def waiting(settings: Settings, run: str) -> Generator[Effect, Any, tuple[PendingApproval, ...]]:
    """Give what waits for a person in a run, in the order in which it was asked."""
    if settings.ledger is None:
        return ()
    entries = yield from _entries(settings.ledger, run)
    return tuple(
        pending_of(entry, settings) for entry in entries if entry.state is EntryState.PAUSED
    )


def _entries(ledger: Ledger, run: str) -> Generator[Effect, Any, tuple[LedgerEntry, ...]]:
    read: Callable[[str], Any] = ledger.of_run
    entries = yield UseLedger(read, (run,), may_block=True)
    if not all(isinstance(entry, LedgerEntry) and entry.run == run for entry in entries):
        raise LedgerError("The ledger answered with something that is no entry of the run.")
    return tuple(entries)


def _checked(id: object, answer: object) -> ApprovalDecision | None:
    """Hold an answer to its type, and keep no values of others in it."""
    if not isinstance(id, str):
        raise AnswerError(f"{id!r} is no id of what is pending; give a PendingApproval's own id.")
    if answer is None:
        return None
    # A subclass could say what it likes about `granted`.
    if type(answer) is not ApprovalDecision or type(answer.granted) is not bool:
        raise AnswerError(
            f"The answer to {id!r} is {answer!r}; give ApprovalDecision(True, 'ana') or "
            "ApprovalDecision(False, 'ana')."
        )
    words: tuple[object, ...] = (answer.approver, answer.reason)
    if not all(isinstance(word, str) for word in words):
        raise AnswerError(f"The answer to {id!r} names approver or reason by what is no text.")
    if answer.edited_args is None:
        return answer
    try:
        return replace(answer, edited_args=freeze_object(answer.edited_args, where="edited_args"))
    except ArgumentsRefused as error:
        raise AnswerError(f"The answer to {id!r} has edits that are none: {error}") from None


def _run_of(id: str, entry: object) -> str:
    if not isinstance(entry, LedgerEntry):
        raise AnswerError(
            f"No call waits under {id!r} in this guard's ledger; give the id of what is pending, "
            "and the ledger of the guard that paused."
        )
    if entry.run is None:
        raise AnswerError(f"The call {id!r} is no part of a framework's run; use guard.resume.")
    return entry.run
