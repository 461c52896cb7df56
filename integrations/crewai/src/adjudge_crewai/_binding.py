"""What one `govern` fixes for all that it reaches, and what one run knows of its calls."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeAlias

from adjudge import CallContext, GovernError, Principal, ToolGuard
from adjudge.integration import GovernedRun
from adjudge_crewai._paused import RunPaused

__all__ = [
    "AROUND",
    "CALL",
    "PATH",
    "PAUSES",
    "SCOPE",
    "SITE",
    "Binding",
    "CallSite",
    "ContextSource",
    "Kept",
    "Proposal",
    "Scope",
    "at",
    "inherited",
    "scope_of",
]


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a call was proposed; what is not known is None."""

    agent: Any = None
    task: Any = None
    crew: Any = None


ContextSource: TypeAlias = Callable[[CallSite], CallContext | Awaitable[CallContext]]


@dataclass(frozen=True, slots=True)
class Binding:
    """The guard, and how it was told to govern; what cannot be one raises `GovernError`."""

    guard: ToolGuard
    context: ContextSource | None = None
    ungoverned: frozenset[str] = frozenset()
    """The tools at the provider that may run unjudged."""

    def adds_to(self, held: Binding, what: str) -> bool:
        """Whether this says who is calling, and `held`, by which `what` is governed, does not.

        Raises `GovernError` where both say it, or for another guard.
        """
        if held.guard is not self.guard:
            raise GovernError(f"The {what} is under another guard; it has only one.")
        if self.context is None or self.context == held.context:
            return False
        if held.context is not None:
            raise GovernError(
                f"The {what} is governed with another context=, which would go on saying who is "
                "calling; give the same one."
            )
        return True

    @classmethod
    def of(
        cls,
        guard: ToolGuard,
        context: ContextSource | None = None,
        ungoverned: Collection[str] = (),
    ) -> Self:
        """Check what a user gave."""
        if not isinstance(guard, ToolGuard):
            raise GovernError(f"guard is a {type(guard).__name__}; give a ToolGuard.")
        asked: object = context
        if asked is not None and not callable(asked):
            raise GovernError(
                f"context is a {type(asked).__name__}; give a function of a CallSite that answers "
                "with a CallContext."
            )
        if isinstance(ungoverned, str) or not all(isinstance(name, str) for name in ungoverned):
            raise GovernError("ungoverned is a list of names; write ungoverned=['web_search'].")
        return cls(guard, context, frozenset(ungoverned))


class Kept(NamedTuple):
    """A result in a cache, and for whom it was made."""

    value: Any
    caller: Principal | None


@dataclass(slots=True)
class Proposal:
    """One call as an agent's executor proposed it; the executor may try its body several times."""

    tool: object
    """The tool that the executor is about to call."""
    call_id: str | None = None
    text: str | None = None
    """The arguments as the model wrote them."""
    sent: Mapping[str, Any] | None = None
    """The arguments that the executor is about to hand over."""
    attempts: int = 0
    number: int = 0
    """The n-th such call of its run, from 1; 0 until it reached its tool."""
    cached: Kept | None = None
    """What the executor's cache holds for it."""
    caller: Principal | None = None
    """Who is calling, where the application says it."""
    plain: bool = False
    """Whether the policy let it run as proposed, so that its result may be kept for another."""
    stopped: str | None = None
    """What the model is told where the call was stopped before it reached its tool."""


@dataclass(slots=True)
class Scope:
    """One run of a crew or an agent: everything between its start and its end or pause."""

    binding: Binding
    run: GovernedRun | None = None
    """What a guard that pauses knows the run by."""
    pause: BaseException | None = None
    """The pause that was raised, in case that the framework took it for an answer."""
    _counts: dict[str, int] = field(default_factory=dict)
    _taken: set[tuple[object, str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def begin(cls, binding: Binding, run: GovernedRun | None = None) -> Self:
        """Start a run, or go on with a reopened one."""
        if run is None and binding.guard.pauses:
            run = GovernedRun()
        return cls(binding, run)

    def count(self, identity: str) -> int:
        """Give the number of this call among those that look the same, from 1."""
        with self._lock:
            self._counts[identity] = self._counts.get(identity, 0) + 1
            return self._counts[identity]

    def take(self, owner: object, call_id: str) -> bool:
        """Take a provider's id for one call; False where another call has it."""
        with self._lock:
            if (owner, call_id) in self._taken:
                return False
            self._taken.add((owner, call_id))
            return True


SCOPE: ContextVar[Scope | None] = ContextVar("adjudge_scope", default=None)
AROUND: ContextVar[Binding | None] = ContextVar("adjudge_around", default=None)
"""How the innermost block of a run is governed, or the one around it that says who is calling."""
SITE: ContextVar[CallSite | None] = ContextVar("adjudge_site", default=None)
CALL: ContextVar[Proposal | None] = ContextVar("adjudge_call", default=None)
PATH: ContextVar[str] = ContextVar("adjudge_path", default="")
PAUSES: ContextVar[tuple[list[RunPaused], ...]] = ContextVar("adjudge_pauses", default=())
"""The pauses inside of each body that is running, the outermost first."""


def scope_of(guard: ToolGuard) -> Scope | None:
    """Find the run that is going on under a guard."""
    scope = SCOPE.get()
    return scope if scope is not None and scope.binding.guard is guard else None


def inherited(binding: Binding) -> Binding:
    """Give the binding around, where the same guard was told there alone who is calling."""
    around = AROUND.get()
    if binding.context is None and around is not None and around.guard is binding.guard:
        return around
    return binding


@contextmanager
def at(site: CallSite) -> Iterator[None]:
    """Say where the calls of a block are proposed."""
    token = SITE.set(site)
    try:
        yield
    finally:
        SITE.reset(token)
