"""What mediation asks a driver to do, and how the answers come back.

The mediating generator yields these; a driver carries each out and sends its value in, or throws
in what it raised. They are plain data, so that a driver is small and an integration may carry out
`Ask` with its framework's own pause. Those of every call are not frozen, or a tuple, to cost less.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from adjudge._types import ApprovalRequest, AuditEvent, GovernedCall
from adjudge._values import EMPTY

__all__ = [
    "ApprovalHandlerFailed",
    "ApprovalTimedOut",
    "Approach",
    "Ask",
    "BindContext",
    "Discharge",
    "Effect",
    "Emit",
    "Execute",
    "Invocation",
    "Mediating",
    "Preview",
    "Raised",
    "Resolve",
    "UseLedger",
]


@dataclass(slots=True)
class Invocation:
    """Call `function`, and await what it returns if that is awaitable; the value is the answer.

    `may_block` says that the async driver should call a function that is not async in a thread.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    may_block: bool = False


class BindContext(Invocation):
    """Ask who is calling (clause 26)."""

    __slots__ = ()


class Preview(Invocation):
    """Run a tool's shadow."""

    __slots__ = ()


class Discharge(Invocation):
    """Run an obligation's handler."""

    __slots__ = ()


class UseLedger(Invocation):
    """Read or change the ledger."""

    __slots__ = ()


class Execute(Invocation):
    """Run the body. No other effect may."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Resolve:
    """Resolve path texts against a workspace; the answer maps to absolute paths what could be."""

    paths: tuple[str, ...]
    workspace: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Put one question to an approval handler.

    The answer is what the handler returned, of whatever type. `ApprovalTimedOut` and
    `ApprovalHandlerFailed` are thrown in; an answer that comes later is dropped.
    """

    handler: Callable[[ApprovalRequest], Any]
    request: ApprovalRequest
    timeout_seconds: float


class ApprovalTimedOut(Exception):
    """Nobody answered in time."""


class ApprovalHandlerFailed(Exception):
    """The handler raised `error`, its own cancellation included."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Raised:
    """The end of a mediation that raises: the driver raises exactly this exception."""

    error: BaseException


Emit: TypeAlias = tuple[AuditEvent, ...]
"""Hand these to the sinks; a required one that does not take them throws in `RecordError`."""
Effect: TypeAlias = Invocation | Resolve | Ask | Emit
Mediating: TypeAlias = Generator[Effect, Any, GovernedCall | Raised]
Approach: TypeAlias = Generator[Effect, Any, GovernedCall | Raised | Execute]
"""The way to a body: it ends in how that is run, or with the call where it is not."""
