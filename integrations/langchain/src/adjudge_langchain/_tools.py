"""Governed tools: a copy whose class is a subclass of the tool's own, so that nothing else differs.

`run` and `arun` see the call as the model made it; `_run` and `_arun` are the doors of the body,
past LangChain's own validation. Every way to invoke a tool comes through them, but for the raw
`func` and `coroutine`, which are the body itself.
"""

from __future__ import annotations

import typing
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from threading import Lock
from typing import Any, NamedTuple, NoReturn, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp

from adjudge import ArgumentsRefused, GovernedCall, GovernError
from adjudge.integration import canonical_json, project_object
from adjudge_langchain._arguments import (
    INVALID,
    Unread,
    check_unforged,
    is_closed,
)
from adjudge_langchain._binding import Binding, check_same, refuse_to_pickle
from adjudge_langchain._bodies import (
    body_of,
    first_name,
    names_of,
    sent_to,
    takes_one,
    unread_values,
)
from adjudge_langchain._calls import (
    Call,
    judge,
    judge_sync,
    record_unjudged,
    record_unjudged_sync,
    tool_message,
)
from adjudge_langchain._frames import FRAME, Attempts, Frame
from adjudge_langchain._shown import OWN, SHOWN, Shown, is_own, visible

__all__ = ["Copies", "binding_of", "call_of", "governed_tool"]

T = TypeVar("T", bound=BaseTool)

_DOOR = "__adjudge_door__"
_DOORS = (
    *("run", "arun", "invoke", "ainvoke", "stream", "astream", "transform", "atransform"),
    *("batch", "abatch", "batch_as_completed", "abatch_as_completed", "__call__"),
)
_REJECTIONS = (*INVALID, ToolException, ValueError, TypeError)


def binding_of(tool: object) -> Binding | None:
    """Give what a tool is governed by, None where it is not."""
    held = getattr(type(tool), _DOOR, None)
    return held.binding if isinstance(held, _Door) else None


def call_of(
    tool: BaseTool, tool_input: dict[str, Any], call_id: str | None, config: Mapping[str, Any]
) -> Call | None:
    """Give a call of a governed tool before it is made, to be looked at alone.

    `tool_input` holds what is injected, too. None means that there is nothing to judge: the tool
    does not take the arguments, or they are refused.
    """
    door = getattr(type(tool), _DOOR, None)
    if not isinstance(door, _Door):
        raise GovernError(f"The tool {tool.name!r} is not governed.")
    frame = Frame(tool, sent_to(tool, tool_input), call_id, config)
    if _refusal(frame) is not None:
        return None
    token = FRAME.set(frame)
    try:
        # Its own reading of the arguments, without a callback being told; a test fails if it moves.
        args, kwargs = tool._to_args_and_kwargs(dict(tool_input), call_id)
        return door.call(tool, args, kwargs)
    except _REJECTIONS:
        return None
    finally:
        FRAME.reset(token)


def governed_tool(tool: T, binding: Binding) -> T:
    """Give a governed copy of a tool; one that is under the same guard is given back.

    Raises `GovernError` for a tool under another guard, or one that has a way to its body of its
    own.
    """
    held = binding_of(tool)
    if held is not None:
        check_same(held, binding, f"tool {tool.name!r}")
        return tool
    _check_doors(tool)
    copy = tool.model_copy()
    object.__setattr__(copy, "__class__", _governed_class(type(tool), binding))
    _check_reached(copy)
    return copy


class Copies:
    """The governed copies of recent tools, so that a tool keeps its copy from call to call."""

    _MOST = 256

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self._copies: OrderedDict[int, tuple[BaseTool, BaseTool]] = OrderedDict()
        self._lock = Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Copies:
        """Give none yet, under the same guard."""
        return Copies(self._binding)

    def of(self, tool: BaseTool) -> BaseTool:
        """Give the governed copy of a tool; raises as `governed_tool` does."""
        with self._lock:
            known = self._copies.get(id(tool))
            if known is None:
                known = (tool, governed_tool(tool, self._binding))
                self._copies[id(tool)] = known
                if len(self._copies) > self._MOST:
                    self._copies.popitem(last=False)
            return known[1]


def _check_doors(tool: BaseTool) -> None:
    for name in _DOORS:
        owner = next((each for each in type(tool).__mro__ if name in vars(each)), BaseTool)
        if name in vars(tool) or owner.__module__.partition(".")[0] != "langchain_core":
            raise GovernError(
                f"The tool {tool.name!r} has a {name} of its own, which could reach its body past "
                "the guard; override _run and _arun in place of it."
            )
    for name in ("_run", "_arun"):
        if name in vars(tool):
            raise GovernError(
                f"The tool {tool.name!r} has {name} replaced on the object itself, which would "
                "hide the governed one; override it in a subclass."
            )


def _check_reached(copy: BaseTool) -> None:
    """Raise `GovernError` where a tool's class answers for its methods with others."""
    for name in (*_DOORS, "_run", "_arun"):
        own = next((vars(each)[name] for each in type(copy).__mro__ if name in vars(each)), None)
        if getattr(getattr(copy, name, None), "__func__", None) is not own:
            raise GovernError(
                f"The class of the tool {copy.name!r} gives {name} in a way of its own "
                "(__getattribute__), which could reach its body past the guard; take that away."
            )


def _governed_class(base: type[T], binding: Binding) -> type[T]:
    door = _Door(binding, _config_names(base._run))
    async_door = replace(door, configs=_config_names(base._arun), in_loop=True)

    class Governed(base):  # type: ignore[misc, valid-type]
        @wraps(base.run)
        def run(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
            frame = _frame(self, tool_input, kwargs)
            return _invoke(binding, frame, partial(super().run, tool_input, *args, **kwargs))

        @wraps(base.arun)
        async def arun(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
            frame = _frame(self, tool_input, kwargs)
            return await _ainvoke(
                binding, frame, partial(super().arun, tool_input, *args, **kwargs)
            )

        # Private, for there is no other word of where reading begins; a test fails if it moves.
        @wraps(base._to_args_and_kwargs)
        def _to_args_and_kwargs(self, *args: Any, **kwargs: Any) -> Any:
            frame = FRAME.get()
            if frame is not None and frame.tool is self:
                frame.reading = True
            return super()._to_args_and_kwargs(*args, **kwargs)

        @wraps(base._run)
        def _run(self, *args: Any, **kwargs: Any) -> Any:
            body = super()._run
            if door.passes(self, args, kwargs):
                return body(*args, **kwargs)
            return judge_sync(door.call(self, args, kwargs), body)

        def __reduce_ex__(self, protocol: object) -> NoReturn:
            refuse_to_pickle()

    if base._arun is not BaseTool._arun:

        @wraps(base._arun)
        async def _arun(self: Any, *args: Any, **kwargs: Any) -> Any:
            body = partial(base._arun, self)
            return await judge(async_door.call(self, args, kwargs), body)

        Governed._arun = _arun

    setattr(Governed, _DOOR, door)
    setattr(Governed, SHOWN, Shown.where_kept(base))
    Governed.__name__, Governed.__qualname__ = base.__name__, base.__qualname__
    Governed.__module__ = base.__module__
    return Governed


def _invoke(binding: Binding, frame: Frame, run: Callable[[], Any]) -> Any:
    """Let LangChain run a tool, and put on record what it rejects before the body's door."""
    refusal = _refusal(frame)
    if refusal is not None:
        return _denial(frame, record_unjudged_sync(binding, frame, refusal))
    token = FRAME.set(frame)
    try:
        result = run()
    except GraphBubbleUp:
        raise  # another handler has the run wait
    except Exception as error:
        if not frame.reached:
            record_unjudged_sync(binding, frame, error)
        raise
    finally:
        FRAME.reset(token)
    if not frame.reached:
        record_unjudged_sync(binding, frame, None)
    return result


async def _ainvoke(binding: Binding, frame: Frame, run: Callable[[], Awaitable[Any]]) -> Any:
    """Do what `_invoke` does, on an event loop."""
    refusal = _refusal(frame)
    if refusal is not None:
        return _denial(frame, await record_unjudged(binding, frame, refusal))
    token = FRAME.set(frame)
    try:
        result = await run()
    except GraphBubbleUp:
        raise  # another handler has the run wait
    except Exception as error:
        if not frame.reached:
            await record_unjudged(binding, frame, error)
        raise
    finally:
        FRAME.reset(token)
    if not frame.reached:
        await record_unjudged(binding, frame, None)
    return result


# What was sent


def _frame(tool: BaseTool, tool_input: Any, options: Mapping[str, Any]) -> Frame:
    call_id, config = options.get("tool_call_id"), options.get("config") or {}
    return Frame(tool, sent_to(tool, tool_input), call_id, config)


def _refusal(frame: Frame) -> ArgumentsRefused | None:
    """Say why a call is denied before LangChain reads its arguments, None where it is not."""
    try:
        check_unforged(frame.tool, frame.sent)
        project_object(frame.sent)
    except ArgumentsRefused as error:
        return error
    return None


def _denial(frame: Frame, call: GovernedCall) -> Any:
    return tool_message(frame.tool, frame.call_id, str(call.text), denied=True)


# What the body gets


@dataclass(frozen=True, slots=True)
class _Door:
    """The door of a tool's body: what stands there, and what LangChain hands over beside."""

    binding: Binding
    configs: frozenset[str]
    in_loop: bool = False
    attempts: Attempts = field(default_factory=Attempts)

    def call(self, tool: BaseTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Give the call that has come here."""
        frame = FRAME.get()
        if frame is None or frame.tool is not tool or frame.reached:
            # Somebody calls the body's door itself.
            frame = Frame(tool, {}, begun=False)
        given = self._values(tool, frame, args, kwargs)
        if not frame.begun:
            frame.sent = dict(given.values)
        frame.reached = True
        return Call(tool, self.binding, self.attempts, frame, *given)

    def passes(self, tool: BaseTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Whether this is a judged `_arun` that enters its own `_run`."""
        frame = FRAME.get()
        if frame is None or frame.tool is not tool or frame.passing is None:
            return False
        return frame.takes_pass(_seen(self._values(tool, frame, args, kwargs).values))

    def _values(
        self, tool: BaseTool, frame: Frame, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> _Values:
        own = {
            name: value
            for name, value in kwargs.items()
            if name in self.configs or (name in OWN and (value is None or is_own(value)))
        }
        rest = {name: value for name, value in kwargs.items() if name not in own}
        shown = visible(tool, rest)
        injected = {name: value for name, value in rest.items() if name not in shown}
        begun = frame.begun
        if begun and not args and is_closed(tool):
            return _Values(shown, (), injected, own, None)
        body = body_of(tool, in_loop=self.in_loop)
        names = names_of(body)
        first = (first_name(tool, frame.sent),) if args and (begun or takes_one(tool)) else ()
        positions = (*first, *names[len(first) :])[: len(args)]
        positions += tuple(f"__arg{i + 1}" for i in range(len(positions), len(args)))
        named = dict(zip(positions, args, strict=True)) | shown
        hidden = {*own, *injected, *self.configs, *OWN, *(names[:1] if first else ())}
        unread = unread_values(tool, body, first, hidden)
        return _Values(named, positions, injected, own, unread)


class _Values(NamedTuple):
    """A call's arguments, by name, apart from what LangChain adds."""

    values: dict[str, Any]
    positions: tuple[str, ...]
    injected: dict[str, Any]
    own: dict[str, Any]
    unread: Unread | None


def _config_names(method: Callable[..., Any]) -> frozenset[str]:
    """Name the parameters in which LangChain hands over the `RunnableConfig`."""
    try:
        hints = typing.get_type_hints(method)
    except (NameError, TypeError):
        return frozenset()  # and LangChain hands over none
    # It hands it over in the first that is annotated so. `RunnableConfig | None` is an argument,
    # which takes what a model sends. A test fails if that moves.
    return frozenset([name for name, hint in hints.items() if hint is RunnableConfig][:1])


def _seen(values: Mapping[str, Any]) -> str:
    try:
        return canonical_json(project_object(values))
    except ArgumentsRefused:
        return ""
