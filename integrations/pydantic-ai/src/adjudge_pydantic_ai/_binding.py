"""What one `govern` fixes for all that it reaches, and what one run knows of its calls."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, cast, get_args

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from adjudge import CallContext, GovernError, ToolGuard
from adjudge.integration import GovernedRun

__all__ = [
    "BODY",
    "Binding",
    "Body",
    "ContextSource",
    "Hosted",
    "RunState",
    "call_key",
    "namespace_of",
    "source_of",
    "written_call",
]

Hosted: TypeAlias = Literal["refuse", "strip", "allow"]
ContextSource: TypeAlias = Callable[[RunContext[Any]], CallContext | Awaitable[CallContext]]
# Providers repeat their ids, so a call is known by its step and tool, too.
CallKey: TypeAlias = tuple[int, str, str | None]


@dataclass(frozen=True, slots=True)
class Binding:
    """The guard, and how it was told to govern; what cannot be one raises `GovernError`."""

    guard: ToolGuard
    hosted: Hosted = "refuse"
    ungoverned: frozenset[str] = frozenset()
    context: ContextSource | None = None

    @classmethod
    def of(
        cls,
        guard: ToolGuard,
        hosted: Hosted = "refuse",
        ungoverned: Collection[str] = (),
        context: ContextSource | None = None,
    ) -> Self:
        """Check what a user gave."""
        if not isinstance(guard, ToolGuard):
            raise GovernError(f"guard is a {type(guard).__name__}; give a ToolGuard.")
        if hosted not in get_args(Hosted):
            raise GovernError(f"hosted is {hosted!r}; say 'refuse', 'strip' or 'allow'.")
        if isinstance(ungoverned, str) or not all(isinstance(name, str) for name in ungoverned):
            raise GovernError("ungoverned is a list of names; write ungoverned=['web_search'].")
        asked: object = context
        if asked is not None and not callable(asked):
            raise GovernError(
                f"context is a {type(asked).__name__}; give a function of the run context that "
                "answers with a CallContext."
            )
        return cls(guard, hosted, frozenset(ungoverned), context)

    def context_of(
        self, ctx: RunContext[Any]
    ) -> Callable[[], CallContext | Awaitable[CallContext]] | None:
        """Bind the `context=` callable to one call."""
        return None if self.context is None else functools.partial(self.context, ctx)


@dataclass(slots=True)
class Body:
    """The call whose body is running, for what it calls in turn."""

    guard: ToolGuard
    run: GovernedRun | None
    reopened: bool
    path: str
    """The ids of this call and of those inside of whose bodies it runs."""
    run_id: str | None
    call_id: str | None
    values: str
    """The canonical form of what the body got."""
    next_gate: object = None
    """The gate further in that the call still comes through, where there is one."""
    next_name: str | None = None
    """The name by which that gate knows the tool."""
    delegated: int = 0
    """How many agents the body has delegated to."""


BODY: ContextVar[Body | None] = ContextVar("adjudge_body", default=None)


@dataclass(slots=True)
class RunState:
    """What the hooks of one run tell its toolset, and the other way round."""

    sent: dict[CallKey, str | dict[str, Any]] = field(default_factory=dict)
    """The arguments of each call as they came to validation."""
    judged: set[CallKey] = field(default_factory=set)
    """The calls that were put to the guard."""
    waiting: dict[CallKey, dict[str, Any]] = field(default_factory=dict)
    """The metadata of the calls that wait for a person."""
    tools: dict[str, ToolsetTool[Any]] = field(default_factory=dict)
    """The tools that the model was offered, by the names that it knows."""
    idle: bool = False
    """Whether another capability of the same guard stands further in and does the work."""
    run: GovernedRun | None = None
    """What a guard that pauses knows the run by."""
    reopened: bool = False
    """Whether people have answered, and the run goes on."""
    parent: str = ""
    """The ids of the calls inside of whose bodies the run takes place."""

    @classmethod
    def begin(cls, guard: ToolGuard) -> Self:
        """Start a run; one inside of a governed body is part of the run outside."""
        body = BODY.get()
        if body is not None and body.guard is guard and body.run is not None:
            return cls(run=body.run, reopened=body.reopened, parent=body.path)
        return cls(run=GovernedRun() if guard.pauses else None)

    def tool_of(self, ctx: RunContext[Any], name: str) -> ToolsetTool[Any] | None:
        """Find the tool of that name, also one that stands further out than ours."""
        tool = self.tools.get(name)
        if tool is None and ctx.tool_manager is not None and ctx.tool_manager.tools is not None:
            tool = ctx.tool_manager.tools.get(name)
        return tool

    def sent_arguments(self, ctx: RunContext[Any]) -> str | Mapping[str, Any] | None:
        """Give what the model sent in this call, None where that is not known."""
        if ctx.tool_call_id is None:
            return None
        key = call_key(ctx)
        if key in self.sent:
            return self.sent[key]
        part = written_call(ctx)
        return None if part is None else cast(str | Mapping[str, Any], part.args or {})


def call_key(ctx: RunContext[Any], name: str | None = None, call_id: str | None = None) -> CallKey:
    """Tell a call from the others of its run; a context is about its own call unless told."""
    return ctx.run_step, name or ctx.tool_name or "", call_id or ctx.tool_call_id


def written_call(ctx: RunContext[Any]) -> ToolCallPart | None:
    """Find the call as the model wrote it; None for one that it did not write."""
    for message in reversed(ctx.messages):
        for part in message.parts if isinstance(message, ModelResponse) else ():
            if isinstance(part, ToolCallPart) and part.tool_call_id == ctx.tool_call_id:
                return part
    return None


def namespace_of(tool: ToolsetTool[Any] | None) -> str | None:
    """Name the toolset that a tool comes from: the id of an MCP server or of a named toolset.

    Raises `GovernError` where that cannot be told.
    """
    return None if tool is None else _name_of(source_of(tool))


def source_of(tool: ToolsetTool[Any]) -> AbstractToolset[Any]:
    """Give the toolset behind whatever renames, filters, prepares or combines its tools.

    Raises `GovernError` where several that differ could be it.
    """
    source: Any = tool
    # Those that rename put themselves in the place of the toolset; what was combined is kept.
    while getattr(source, "source_tool", None) is not None:
        source = source.source_tool
    toolset: AbstractToolset[Any] = source.toolset
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    found: list[AbstractToolset[Any]] = []
    toolset.apply(found.append)
    leaves = [each for each in found if not isinstance(each, WrapperToolset)]
    if not leaves:
        return toolset
    if len({(type(each), _name_of(each)) for each in leaves}) > 1:
        raise GovernError(
            f"The tool {tool.tool_def.name!r} may come from any of {len(leaves)} toolsets, and "
            "which one decides its namespace; let the toolset that combines them keep the tools "
            "that it gets, or give them to the agent one by one."
        )
    return leaves[0]


def _name_of(toolset: AbstractToolset[Any]) -> str | None:
    name = toolset.id
    return None if name is None or name.startswith("<") else name
