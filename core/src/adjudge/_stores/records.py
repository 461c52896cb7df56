"""What the stores keep: the steps of a run, and the state of a session.

A run's journal only grows: each step has its number, and a number is given once, by whichever
worker comes first. A session is one value that is replaced as a whole, by whoever saw the version
that is there. Both are JSON and hold nothing that could be executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from adjudge._values import freeze_object
from adjudge.errors import ArgumentsRefused

__all__ = ["RunStore", "SessionRecord", "SessionStore", "StepRecord"]

# What every store can count to.
_MAX_COUNT = 2**53


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a run's journal; `(run_id, seq)` is there once.

    `seq` counts from 0. `kind` says what the step is and `body` what it holds, a JSON object.
    `idempotency_key` is the same whenever the same step is done again. `timestamp` is when the step
    was written, an aware time that is kept in UTC. Raises `TypeError` or `ValueError`, which name
    the field, for values that are none.
    """

    run_id: str
    seq: int
    kind: str
    idempotency_key: str
    body: Mapping[str, Any]
    timestamp: datetime

    def __post_init__(self) -> None:
        _check_text("run_id", self.run_id)
        _check_count("seq", self.seq)
        _check_text("kind", self.kind)
        _check_text("idempotency_key", self.idempotency_key, may_be_empty=True)
        object.__setattr__(self, "body", _frozen(self.body))
        if not isinstance(self.timestamp, datetime):
            raise TypeError(f"timestamp is {self.timestamp!r}; give a datetime.")
        if self.timestamp.utcoffset() is None:
            raise ValueError(
                f"timestamp is {self.timestamp.isoformat()}, in no time zone; give an aware "
                "datetime such as datetime.now(UTC)."
            )
        if self.timestamp.tzinfo is not UTC:
            object.__setattr__(self, "timestamp", self.timestamp.astimezone(UTC))


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """The state of one session; `version` counts how often it was written, from 1.

    `body` is a JSON object. Raises `TypeError` or `ValueError`, which name the field, for values
    that are none. A record that was never stored has the version 0.
    """

    session_id: str
    version: int
    body: Mapping[str, Any]

    def __post_init__(self) -> None:
        _check_text("session_id", self.session_id)
        _check_count("version", self.version)
        object.__setattr__(self, "body", _frozen(self.body))


class RunStore(Protocol):
    """Where the journals of runs are kept, for any number of workers at once."""

    @property
    def durable(self) -> bool:
        """Whether what was appended outlives the process."""
        ...

    async def append(self, record: StepRecord) -> None:
        """Keep a step; it is there for every worker, and to stay, when this returns.

        Raises `DuplicateRecord` where the run has a step of that number already, which is decided
        in one indivisible act, and `StoreError` where the store cannot be used: then nobody knows
        whether the step is there.
        """
        ...

    async def load(self, run_id: str) -> Sequence[StepRecord]:
        """Give the steps of a run in the order of their numbers, none for an unknown run.

        Raises `StoreError` where the store cannot be used or holds something that is no step.
        """
        ...


class SessionStore(Protocol):
    """Where sessions are kept, for any number of workers at once.

    Each method raises `StoreError` where the store cannot be used or holds something that is no
    session.
    """

    @property
    def durable(self) -> bool:
        """Whether what was saved outlives the process."""
        ...

    async def create(self, record: SessionRecord) -> SessionRecord:
        """Keep a new session, whatever version it says, and give it with the version 1.

        Raises `SessionExists` where there is one of that id.
        """
        ...

    async def load(self, session_id: str) -> SessionRecord:
        """Give the session as it was saved last; raises `UnknownSession` where there is none."""
        ...

    async def save(self, record: SessionRecord, *, expected_version: int) -> SessionRecord:
        """Replace the session that is at the expected version, and give it with the next one.

        Raises `ConcurrentModification` where it is at another version, which is decided and done
        in one indivisible act, and `UnknownSession` where there is none.
        """
        ...

    async def exists(self, session_id: str) -> bool:
        """Whether there is a session of that id."""
        ...


def _check_text(name: str, value: object, *, may_be_empty: bool = False) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}; give a string.")
    if not value and not may_be_empty:
        raise ValueError(f"{name} is empty; give it a name.")
    # PostgreSQL keeps no NUL in a text, and UTF-8 no lone surrogate.
    if "\0" in value or not _is_unicode(value):
        raise ValueError(f"{name} is {value!r}; give text without NUL and lone surrogates.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_count(name: str, value: object) -> None:
    if type(value) is not int:
        raise TypeError(f"{name} is {value!r}; give a whole number.")
    if not 0 <= value < _MAX_COUNT:
        raise ValueError(f"{name} is {value}; give a number from 0 to 2**53 - 1.")


def _frozen(body: object) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise TypeError(f"body is a {type(body).__name__}; give an object with named values.")
    try:
        return freeze_object(body, where="body")
    except ArgumentsRefused as error:
        raise ValueError(str(error)) from None
