"""`AdjudgeCallbackHandler`: the guard where only LangChain's callbacks reach.

A callback sees a call before its tool validates it, and can stop it by raising, and in no other
way. So it enforces allow, deny and approval; what would need a preview or other arguments is
denied, with the reason. A governed tool judges its own calls, and the handler leaves them to it.
A tool that is invoked without the callbacks is not seen at all: prefer `govern`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from inspect import getattr_static
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt

from adjudge import AdjudgeError, GovernedCall, GovernError, Outcome, ToolGuard
from adjudge.integration import (
    Admitted,
    Effective,
    FrozenDict,
    GovernedRun,
    InvalidArguments,
    ProposedCall,
    denied_text,
    freeze_object,
    ledger_key,
    normalise,
)
from adjudge_langchain._arguments import INVALID, ONLY, check_unforged, read_values, validation_text
from adjudge_langchain._binding import Binding, ContextSource
from adjudge_langchain._calls import projected
from adjudge_langchain._frames import FRAME
from adjudge_langchain._runs import Place, carry_on, governed_run_sync, place_of, wait
from adjudge_langchain._tools import binding_of

__all__ = ["AdjudgeCallbackHandler", "ToolCallDenied", "denial_for_model"]

_FIXED = (
    "raise_error",
    "run_inline",
    "ignore_agent",
    "on_tool_start",
    "on_tool_end",
    "on_tool_error",
)


class ToolCallDenied(AdjudgeError):
    """A call that the handler has stopped; `text` is what a model is to be told."""

    code = "tool_call_denied"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def denial_for_model(error: ToolCallDenied, request: object = None) -> str | None:
    """Give a denial as text for the model, None for other errors.

    For `ToolErrorMiddleware(on_error=denial_for_model)`, and for
    `ToolNode(handle_tool_errors=denial_for_model)`: without one of them a denial ends the run.
    """
    given: object = error
    return given.text if isinstance(given, ToolCallDenied) else None


class AdjudgeCallbackHandler(BaseCallbackHandler):
    """Stops the calls of tools that a guard does not allow, by raising `ToolCallDenied`.

    `tools` are those whose calls it will see: with them it judges the arguments as their schemas
    read them, defaults included; without, as the model sent them. `context` gets the `ToolRun` of
    each call. While a person is asked, the thread of the call waits, also that of an event loop.
    The settings by which LangChain would swallow its denials are fixed.
    """

    def __init__(
        self,
        guard: ToolGuard,
        *,
        tools: Iterable[BaseTool] = (),
        context: ContextSource | None = None,
    ) -> None:
        self._binding = Binding.of(guard, context=context)
        self._tools = {tool.name: tool for tool in tools}
        self._running: dict[UUID, _Watched] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if AsyncCallbackHandler in cls.__mro__:
            raise GovernError(
                f"{cls.__name__} is an AsyncCallbackHandler, whose errors LangChain swallows where "
                "a tool is called from plain code; derive from AdjudgeCallbackHandler alone."
            )
        own = vars(AdjudgeCallbackHandler)
        changed = [name for name in _FIXED if getattr_static(cls, name) is not own[name]]
        if changed:
            raise GovernError(
                f"{cls.__name__} has a {changed[0]} of its own, by which calls could run unjudged; "
                "use a second handler beside this one."
            )

    def __eq__(self, other: object) -> bool:
        """Whether both judge the same calls: LangChain installs only one of equal handlers."""
        return isinstance(other, AdjudgeCallbackHandler) and other._binding == self._binding

    def __hash__(self) -> int:
        return id(self.guard)

    @property
    def guard(self) -> ToolGuard:
        """The guard that judges."""
        return self._binding.guard

    @property
    def raise_error(self) -> bool:
        """True: LangChain would log denials and run the tool all the same."""
        return True

    @raise_error.setter
    def raise_error(self, value: bool) -> None:
        _refuse("raise_error", wanted=value is True)

    @property
    def run_inline(self) -> bool:
        """True: the handler runs where the call is made."""
        return True

    @run_inline.setter
    def run_inline(self, value: bool) -> None:
        _refuse("run_inline", wanted=value is True)

    @property
    def ignore_agent(self) -> bool:
        """False: LangChain would not tell the handler of calls."""
        return False

    @ignore_agent.setter
    def ignore_agent(self, value: bool) -> None:
        _refuse("ignore_agent", wanted=value is False)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        inputs: dict[str, Any] | None = None,
        tool_call_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Judge a call; raises `ToolCallDenied` where it may not run."""
        name = str(serialized.get("name") or kwargs.get("name") or "")
        if self._is_governed(name):
            return
        try:
            sent = {ONLY: input_str} if inputs is None else inputs
            self._judge(run_id, name, sent, tool_call_id)
        except (ToolCallDenied, GraphInterrupt):
            raise
        except Exception as error:
            # LangChain swallows a NotImplementedError, whatever the handler says.
            text = denied_text(f"the call could not be judged ({type(error).__name__})")
            raise ToolCallDenied(text) from error

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Put down that a call's body is done."""
        watched = self._running.pop(run_id, None)
        if watched is not None:
            watched.end(None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Put down that a call's body raised."""
        watched = self._running.pop(run_id, None)
        if watched is not None:
            watched.end(error)

    def _is_governed(self, name: str) -> bool:
        frame = FRAME.get()
        if frame is None or frame.reached or frame.tool.name != name:
            return False
        held = binding_of(frame.tool)
        return held is not None and held.guard is self.guard

    def _judge(self, run_id: UUID, name: str, sent: Mapping[str, Any], call_id: str | None) -> None:
        args = projected(sent)
        config = _config()
        place = place_of(config) if self.guard.pauses else None
        run = None if place is None else governed_run_sync(self.guard, place.run_id)
        key = None
        if run is not None and place is not None:
            key = ledger_key(run=run.id, tool=name, args=args, call_id=call_id, task=place.task)
            carry_on(run, f"{key}/1")
        proposed = self._proposal(name, args, call_id, run, key, place)
        watched = _Watched(self.guard, proposed, self._binding.context_of(name, call_id, config))
        governed = watched.until_it_runs()
        if governed is None:
            self._running[run_id] = watched
            _when_given_up(lambda: self.on_tool_error(asyncio.CancelledError(), run_id=run_id))
            return
        if governed.pending is not None:
            wait(governed.pending, goes_on=False)
        if governed.outcome is Outcome.PREVIEWED:
            raise ToolCallDenied(
                denied_text("dry_run: a callback handler cannot give a preview; govern the tool")
            )
        raise ToolCallDenied(governed.text or denied_text(governed.result.error or ""))

    def _proposal(
        self,
        name: str,
        args: Mapping[str, Any],
        call_id: str | None,
        run: GovernedRun | None,
        key: str | None,
        place: Place | None,
    ) -> ProposedCall:
        return ProposedCall(
            name,
            args,
            call_id=call_id,
            validate=_Reading(self._tools.get(name)).validate,
            control_flow=(GraphInterrupt,),
            run=run,
            key=key,
            may_pause=place is not None and place.pauses,
        )


class _Reading:
    """The reading of one call's arguments: once, for nothing can be rewritten here."""

    def __init__(self, tool: BaseTool | None) -> None:
        self._tool = tool
        self._read = False

    def validate(self, args: FrozenDict) -> Admitted:
        if self._read:
            raise InvalidArguments("a callback handler cannot change arguments; govern the tool")
        self._read = True
        if self._tool is None:
            return Admitted(args)
        check_unforged(self._tool, args)
        schema = self._tool.tool_call_schema
        if isinstance(schema, dict):
            return Admitted(normalise(schema, args, coerce=False).args, frozenset(args))
        try:
            values = read_values(schema, dict(args))
        except INVALID as error:
            raise InvalidArguments(validation_text(error)) from None
        return Admitted(freeze_object(projected(values)), frozenset(args) & values.keys())


class _Watched:
    """A call whose body LangChain runs, while a thread of its own stands for it at the guard."""

    def __init__(self, guard: ToolGuard, proposed: ProposedCall, context: Any) -> None:
        self._moved, self._ended = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        self._started = False
        self._governed: GovernedCall | None = None
        self._failed: BaseException | None = None
        target = copy_context().run
        govern = guard.govern_call_sync
        self._thread = threading.Thread(
            target=target, args=(self._run, govern, proposed, context), daemon=True
        )

    def until_it_runs(self) -> GovernedCall | None:
        """Have the call judged; None where its body may run now."""
        self._thread.start()
        self._moved.wait()
        if self._started:
            return None
        if self._failed is not None:
            raise self._failed
        return self._governed

    def end(self, error: BaseException | None) -> None:
        """Say what became of the body, and wait until that is on record."""
        trace = None if error is None else error.__traceback__
        self._error = error
        self._ended.set()
        self._thread.join()
        if error is not None:
            error.__traceback__ = trace

    def _run(self, govern: Any, proposed: ProposedCall, context: Any) -> None:
        try:
            self._governed = govern(proposed, self._body, context=context)
        except BaseException as error:
            self._failed = error
        finally:
            self._moved.set()

    def _body(self, effective: Effective) -> None:
        self._started = True
        self._moved.set()
        self._ended.wait()
        if self._error is not None:
            raise self._error


def _when_given_up(then: Callable[[], None]) -> None:
    """Do something when the task of a call has ended, for a call that nobody has heard of since.

    Before langchain-core 1.8 a handler is not told of one that is cancelled, and of one that
    another handler stops it is told in no release.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return  # plain code, which nobody cancels
    if task is not None:
        task.add_done_callback(lambda _: then())


def _config() -> Mapping[str, Any]:
    try:
        return get_config()
    except RuntimeError:
        return {}


def _refuse(name: str, *, wanted: bool) -> None:
    if wanted:
        return
    raise GovernError(f"{name} is fixed: set otherwise, LangChain would run what is denied.")
