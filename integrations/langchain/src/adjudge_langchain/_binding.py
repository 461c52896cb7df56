"""What one `govern` fixes for all that it reaches, and what `context=` is asked with."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Self, TypeAlias, get_args

from langgraph.runtime import get_runtime

from adjudge import CallContext, GovernError, ToolGuard
from adjudge.integration import warn_unless_durable

__all__ = ["Binding", "ContextSource", "Hosted", "ToolRun", "check_same", "refuse_to_pickle"]

Hosted: TypeAlias = Literal["refuse", "strip", "allow"]


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What LangChain knows of the run in which a tool is called.

    `context` is the run's own context (`agent.invoke(..., context=...)`), None outside of a graph;
    `config` is the `RunnableConfig` with which the tool was called.
    """

    tool: str
    call_id: str | None
    context: Any
    config: Mapping[str, Any]


ContextSource: TypeAlias = Callable[[ToolRun], CallContext | Awaitable[CallContext]]


@dataclass(frozen=True, slots=True)
class Binding:
    """The guard, and how it was told to govern."""

    guard: ToolGuard
    hosted: Hosted = "refuse"
    ungoverned: frozenset[str] = frozenset()
    context: ContextSource | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Give itself: copies of what is governed are governed by the same guard."""
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise `GovernError`: what a guard stands before cannot be pickled."""
        refuse_to_pickle()

    @classmethod
    def of(
        cls,
        guard: ToolGuard,
        hosted: Hosted = "refuse",
        ungoverned: Collection[str] = (),
        context: ContextSource | None = None,
    ) -> Self:
        """Check what a user gave; raises `GovernError` for what cannot be a setting."""
        if not isinstance(guard, ToolGuard):
            raise GovernError(f"guard is a {type(guard).__name__}; give a ToolGuard.")
        if hosted not in get_args(Hosted):
            raise GovernError(f"hosted is {hosted!r}; say 'refuse', 'strip' or 'allow'.")
        if isinstance(ungoverned, str) or not all(isinstance(name, str) for name in ungoverned):
            raise GovernError("ungoverned is a list of names; write ungoverned=['web_search'].")
        asked: object = context
        if asked is not None and not callable(asked):
            raise GovernError(
                f"context is a {type(asked).__name__}; give a function of the ToolRun that answers "
                "with a CallContext."
            )
        if guard.pauses:
            warn_unless_durable(guard.ledger)
        return cls(guard, hosted, frozenset(ungoverned), context)

    def context_of(
        self, tool: str, call_id: str | None, config: Mapping[str, Any]
    ) -> Callable[[], CallContext | Awaitable[CallContext]] | None:
        """Bind the `context=` callable to one call."""
        if self.context is None:
            return None
        return functools.partial(self.context, ToolRun(tool, call_id, _run_context(), config))


def check_same(held: Binding, given: Binding, what: str) -> None:
    """Raise `GovernError` unless what is governed already is so by the same guard and context."""
    if held.guard is not given.guard:
        raise GovernError(f"The {what} is under another guard; it has only one.")
    if given.context not in (None, held.context):
        raise GovernError(
            f"The {what} is governed already, with another context=, and who is calling would be "
            "lost. Give that context= where it was governed first, or the original here."
        )


def refuse_to_pickle() -> NoReturn:
    """Raise the `GovernError` for a pickle of what is governed, which would lose its guard."""
    raise GovernError(
        "What is governed cannot be pickled, for its guard stays in this process; pickle what it "
        "was made of, and govern that anew where it is loaded."
    )


def _run_context() -> Any:
    """Give the context of the graph's run, None where there is no graph."""
    try:
        runtime = get_runtime()
    except (RuntimeError, KeyError):
        return None
    return getattr(runtime, "context", None)
