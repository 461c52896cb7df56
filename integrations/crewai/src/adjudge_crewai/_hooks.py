"""The hooks of a run: they tell the gates what is being called, and govern what has no gate yet.

CrewAI's hooks fail open: what one raises is swallowed and the tool runs. So nothing is judged in
one. The hook before a call puts a gate at the body of a tool that has none (delegation, memory, MCP
and whatever else a crew injects), and where that fails it blocks the call, the one thing that a
hook can do for sure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from crewai.agents.cache.cache_handler import CacheHandler
from crewai.events.event_context import get_current_parent_id, pop_event_scope
from crewai.hooks import HookAborted, InterceptionPoint
from crewai.hooks.dispatch import get_scoped_hooks, scoped_hooks
from crewai.hooks.tool_hooks import ToolCallHookContext
from crewai.tools import BaseTool
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import PrivateAttr

from adjudge import GovernError, ToolGuard
from adjudge.integration import GovernedRun, denied_text
from adjudge_crewai._binding import (
    AROUND,
    CALL,
    PATH,
    SCOPE,
    SITE,
    Binding,
    CallSite,
    ContextSource,
    Kept,
    Proposal,
    Scope,
    inherited,
)
from adjudge_crewai._calls import record_invalid, refuse
from adjudge_crewai._names import check_names
from adjudge_crewai._paused import PauseInside, RunPaused
from adjudge_crewai._tools import govern_in_place, original_of

__all__ = ["adjudge_hooks", "govern_cache", "running"]

_FOUND: ContextVar[tuple[tuple[str, str], Kept | None] | None] = ContextVar(
    "adjudge_found", default=None
)
"""What a cache last held, and for which tool and arguments."""


@contextmanager
def adjudge_hooks(guard: ToolGuard, *, context: ContextSource | None = None) -> Iterator[None]:
    """Govern every tool that an agent's executor calls inside of the block.

    That is for tools that nobody lists, because crews and agents inject them, and for crews that
    are not governed themselves. The block is one run: where the guard pauses, it is left by
    `RunPaused`. Hooks of the application's own `scoped_hooks()` inside of the block, or none there,
    take the place of these; `govern` the crew to be safe from that.
    """
    with running(Binding.of(guard, context)):
        yield


@contextmanager
def running(
    binding: Binding, run: GovernedRun | None = None, *, left: Scope | None = None
) -> Iterator[Scope]:
    """Be in a run of the guard: the one that is going on, else a new or a reopened one.

    `left` is a run that was left before what it started had begun.
    """
    scope = SCOPE.get() if left is None else left
    binding = inherited(binding)
    around, call = AROUND.set(binding), CALL.set(None)
    held = run is None and scope is not None and scope.binding.guard is binding.guard
    try:
        if scope is not None and held and scope is SCOPE.get():
            with _going_on(scope):
                yield scope
        else:
            begun = scope if scope is not None and held else Scope.begin(binding, run)
            with _begun(begun):
                yield begun
    finally:
        CALL.reset(call)
        AROUND.reset(around)


@contextmanager
def _going_on(scope: Scope) -> Iterator[None]:
    # Whether the application itself started this, and nothing else of the run.
    outermost = not PATH.get() and SITE.get() == CallSite()
    try:
        with _hooks():
            yield
    except (RunPaused, PauseInside):
        if outermost:
            scope.pause = None  # it is on its way to whoever started this
        raise


@contextmanager
def _begun(scope: Scope) -> Iterator[None]:
    token = SCOPE.set(scope)
    site = SITE.set(CallSite())
    event = get_current_parent_id()
    try:
        with _hooks():
            yield
        if scope.pause is not None:
            raise scope.pause  # which something in the run took for an answer
    except (RunPaused, PauseInside) as left:
        paused = left.paused if isinstance(left, PauseInside) else left
        scope.pause = None
        # CrewAI ends its events after an Exception alone, and has room for a hundred open ones.
        while get_current_parent_id() != event and pop_event_scope() is not None:
            pass
        if scope.run is not None and paused.run_id == scope.run.id:
            waiting = scope.binding.guard.waiting_sync(paused.run_id)
            raise RunPaused(paused.run_id, waiting) from None
        raise
    finally:
        SITE.reset(site)
        SCOPE.reset(token)


@contextmanager
def _hooks() -> Iterator[None]:
    """Add our hooks after those of the application's own scope."""
    before = get_scoped_hooks(InterceptionPoint.PRE_TOOL_CALL)
    if _before in before:
        yield
        return
    hooks = {point: get_scoped_hooks(point) for point in InterceptionPoint}
    hooks[InterceptionPoint.PRE_TOOL_CALL].append(_before)
    hooks[InterceptionPoint.POST_TOOL_CALL].append(_after)
    with scoped_hooks(hooks):
        yield


def _before(ctx: ToolCallHookContext) -> None:
    """Put down what is being called, and make sure that there is a gate before its body."""
    scope = SCOPE.get()
    CALL.set(None)
    if scope is None or ctx.tool is None:
        return
    proposal = Proposal(original_of(ctx.tool))
    CALL.set(proposal)
    try:
        _prepare(scope, ctx, proposal)
    except Exception as error:
        # Whatever else a hook raises is swallowed, and the tool runs.
        try:
            binding = AROUND.get() or scope.binding
            proposal.stopped = refuse(binding, ctx.tool, ctx.tool_input, str(error))
        except Exception:
            proposal.stopped = denied_text(str(error))
        raise HookAborted(str(error), "adjudge") from error


def _prepare(scope: Scope, ctx: ToolCallHookContext, proposal: Proposal) -> None:
    tool = proposal.tool
    if not isinstance(tool, BaseTool):
        raise GovernError(f"{ctx.tool_name} has no tool behind it at which a gate could stand")
    site = SITE.get() or CallSite()
    SITE.set(CallSite(ctx.agent or site.agent, ctx.task or site.task, ctx.crew or site.crew))
    proposal.call_id, proposal.text = _found(scope, ctx)
    sent: object = ctx.tool_input
    if not isinstance(sent, dict):
        # The framework fails to call the tool with it, and says so.
        around = AROUND.get() or scope.binding
        record_invalid(around, tool, {}, TypeError("the arguments are no object"))
    else:
        proposal.sent = ctx.tool_input
    assert ctx.tool is not None
    gate = govern_in_place(tool, ctx.tool)
    proposal.tool = gate.tool
    if gate.binding is None:
        _check_no_twin(tool, ctx)
    key = (ctx.tool_name, json.dumps(sent) if sent else "")
    unguarded = govern_cache(ctx.agent)
    if unguarded is not None and unguarded.read(*key) is not None:
        # Some releases look into the cache before they ask hooks, and this result may be served.
        raise GovernError("its result was kept before the guard stood before the cache; call again")
    found = _FOUND.get()
    if found is not None and found[0] == key:
        proposal.cached = found[1]
    _FOUND.set(None)


def _check_no_twin(tool: BaseTool, ctx: ToolCallHookContext) -> None:
    """Raise `GovernError` where CrewAI might run another tool than the one that it shows."""
    executor = getattr(ctx.agent, "agent_executor", None) if ctx.task is not None else None
    listed = getattr(executor, "original_tools", None) or getattr(ctx.agent, "tools", None) or ()
    check_names(
        [tool, *(each for each in listed if sanitize_tool_name(each.name) == ctx.tool_name)]
    )


def _after(ctx: ToolCallHookContext) -> str | None:
    """Tell the model why a call was stopped; whatever is called next is another one."""
    proposal = CALL.get()
    CALL.set(None)
    return None if proposal is None else proposal.stopped


def _found(scope: Scope, ctx: ToolCallHookContext) -> tuple[str | None, str | None]:
    """Find a call's id and text in the history of the agent's executor; ReAct has none."""
    executor = getattr(ctx.agent, "agent_executor", None)
    messages = getattr(executor, "messages", None) or []
    made: list[Any] = next((m["tool_calls"] for m in reversed(messages) if m.get("tool_calls")), [])
    for call in made:
        name, text = call["function"]["name"], call["function"]["arguments"]
        if sanitize_tool_name(name) != ctx.tool_name or _parsed(text) != ctx.tool_input:
            continue
        if scope.take(id(made), call["id"]):
            return str(call["id"]), text
    return None, None


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


class GovernedCache(CacheHandler):
    """A crew's cache, out of which a call is served only once it has been judged.

    Reading puts down what is there, for the gate at the body, and finds nothing; kept is only the
    result of a call that ran as it was proposed, for whoever was calling.
    """

    _inner: CacheHandler = PrivateAttr()
    _kept: dict[tuple[str, str], Kept] = PrivateAttr(default_factory=dict)

    @classmethod
    def over(cls, inner: CacheHandler) -> GovernedCache:
        """Stand before a cache."""
        made = cls()
        made._inner = inner
        return made

    def read(self, tool: str, input: str) -> Any | None:
        """Find nothing, in a governed run."""
        found = self._inner.read(tool, input)
        if SCOPE.get() is None:
            return found
        key = (tool, input)
        kept = None if found is None else self._kept.get(key)
        if kept is None or kept.value is not found:  # somebody else has kept it
            kept = None if found is None else Kept(found, None)
        # Some releases read before they ask the hooks, the others after it.
        _FOUND.set((key, kept))
        proposal = CALL.get()
        if proposal is not None and not proposal.attempts:
            proposal.cached = kept
        return None

    def add(self, tool: str, input: str, output: Any) -> None:
        """Keep a result."""
        proposal = CALL.get()
        if SCOPE.get() is None or (proposal is not None and proposal.plain):
            self._kept[tool, input] = Kept(output, None if proposal is None else proposal.caller)
            self._inner.add(tool, input, output)


def govern_cache(agent: Any) -> CacheHandler | None:
    """Stand before an agent's cache, and give the one that nobody stood before, if any."""
    handler: Any = getattr(agent, "tools_handler", None)
    cache = getattr(handler, "cache", None)
    if cache is None or isinstance(cache, GovernedCache):
        return None
    handler.cache = GovernedCache.over(cache)
    return cast(CacheHandler, cache)
