"""Governed tools: copies for users, and tools that a crew injects, governed where they stand.

The gate is at the body: `_run` and `_arun` of a `BaseTool`, the `func` of a `Tool`. CrewAI comes
there on both of its paths, after its own validation. What the tool is for the model (name, schema,
description, class) stays as it is.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from crewai.tools import BaseTool, tool
from crewai.tools.base_tool import Tool
from crewai.tools.structured_tool import CrewStructuredTool

from adjudge import GovernError, ToolGuard, ToolMetadata
from adjudge.integration import is_async
from adjudge_crewai._binding import CALL, Binding, ContextSource
from adjudge_crewai._calls import SENT, Gate, Sent, record_invalid

__all__ = ["govern_in_place", "govern_tool", "governed", "original_of"]

T = TypeVar("T")

_BASE = "__adjudge_base__"
_BODY = "__adjudge_body__"
_GATE = "__adjudge_gate__"
_SELF = "__adjudge_self__"
_TOOL = "__adjudge_tool__"

_METHODS = ("run", "arun", "_run", "_arun", "to_structured_tool")
"""By which a tool's body is reached."""


def governed(
    guard: ToolGuard,
    *,
    context: ContextSource | None = None,
    shadow: Callable[..., Any] | None = None,
    metadata: ToolMetadata | None = None,
) -> Callable[[Any], Any]:
    """Make the decorator that puts a tool under a guard.

    It takes what `@tool` gives, a `BaseTool` class or instance, or a plain function, of which it
    makes a tool first. `shadow` previews the tool, `metadata` says what it declares. Raises
    `GovernError` for anything else.
    """
    binding = Binding.of(guard, context)

    def decorate(target: Any) -> Any:
        if isinstance(target, type) and issubclass(target, BaseTool):
            return _decorated_class(target, binding, shadow, metadata)
        if not isinstance(target, BaseTool):
            if not callable(target):
                raise GovernError(f"A {type(target).__name__} is no tool; decorate a function.")
            target = tool(target)
        return govern_tool(target, binding, shadow=shadow, metadata=metadata)

    return decorate


def govern_tool(
    target: BaseTool,
    binding: Binding,
    *,
    shadow: Callable[..., Any] | None = None,
    metadata: ToolMetadata | None = None,
) -> BaseTool:
    """Give a governed copy of a tool; one under the same guard is given back as it is."""
    held = _gate_of(target)
    if held is not None and held.binding is not None:
        if not binding.adds_to(held.binding, f"tool {target.name!r}"):
            return target
        again = target.model_copy()
        _put_gate(again, Gate(again, binding, shadow=held.shadow, metadata=held.metadata))
        return again
    base = _plain_class(type(target))
    _check_overrides(base, target)
    copy = target.model_copy()
    _put_gate(copy, Gate(copy, binding, shadow=shadow, metadata=metadata))
    object.__setattr__(copy, "__class__", _governed_class(base))
    return copy


def govern_in_place(target: BaseTool, structured: CrewStructuredTool) -> Gate:
    """Put the tool itself under whatever guard governs the run that calls it; give its gate.

    `structured` stands for the tool in an executor that has been made already.
    """
    if _gate_of(target) is None:
        _check_overrides(type(target), target)
        _put_gate(target, Gate(target, None))
        object.__setattr__(target, "__class__", _governed_class(type(target)))
    if not isinstance(structured, _StructuredTool):
        # It holds on to the body as that was before.
        structured.func = target.to_structured_tool().func
        _as_structured(structured, target)
    return _gate_in(target)


def original_of(structured: CrewStructuredTool) -> BaseTool | None:
    """Find the tool that an executor's structured tool stands for."""
    # Nothing public leads from the one to the other; hooks are given the structured one alone.
    found = getattr(structured, "_original_tool", None)
    return found if isinstance(found, BaseTool) else None


def _gate_of(target: BaseTool) -> Gate | None:
    """Find the gate of a tool, None where a body of its own would stand before it."""
    gate = vars(target).get(_GATE)
    return gate if isinstance(gate, Gate) and hasattr(type(target), _BASE) else None


def _put_gate(target: BaseTool, gate: Gate) -> None:
    object.__setattr__(target, _GATE, gate)
    # In the object, where whoever reads it past the class finds no way round the gate either.
    fields = vars(target)
    fields["cache_function"] = _cached_by_us(fields["cache_function"], gate)
    if isinstance(target, Tool):
        fields["func"] = _gated(fields["func"], gate)


def _gated(body: Callable[..., Any], gate: Gate) -> Callable[..., Any]:
    """Put a gate before a function; it remains the kind of function that it is."""
    if _gate_before(body) is gate:
        return body
    body = _behind(body, gate)
    if is_async(body):

        @functools.wraps(body)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await gate.acall(body, args, kwargs)

        return _marked(awaited, body, gate)

    @functools.wraps(body)
    def called(*args: Any, **kwargs: Any) -> Any:
        return gate.call(body, args, kwargs)

    return _marked(called, body, gate)


def _marked(gated: Callable[..., Any], body: Callable[..., Any], gate: Gate) -> Callable[..., Any]:
    setattr(gated, _BODY, body)
    setattr(gated, _GATE, gate)
    setattr(gated, _SELF, gated)  # which what wraps it copies, too, and is not
    return gated


def _gate_before(function: object) -> Gate | None:
    return getattr(function, _GATE) if getattr(function, _SELF, None) is function else None


def _behind(function: Callable[..., Any], gate: Gate) -> Callable[..., Any]:
    """Give what a gate is put before: the body, where another stands there that it stands for."""
    other = _gate_before(function)
    stands_for = other is not None and (
        other.binding is None
        or (gate.binding is not None and gate.binding.guard is other.binding.guard)
    )
    return cast(Callable[..., Any], getattr(function, _BODY)) if stands_for else function


class _Door:
    """A method of governed tools that nothing on the tool itself can take the place of."""

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        self._name, self._method = name, method

    def __get__(self, tool: BaseTool | None, owner: type) -> Callable[..., Any]:
        bound: Callable[..., Any] = self._method
        return bound if tool is None else bound.__get__(tool, owner)

    def __set__(self, tool: BaseTool, _: object) -> None:
        raise GovernError(
            f"The governed tool {tool.name!r} keeps its {self._name}, where its guard stands; "
            "replace it on the tool before you govern that, in a subclass."
        )


class _FunctionDoor:
    """A function in a field of a governed tool: behind the gate, whatever was put there since."""

    def __init__(self, name: str, gated: Callable[..., Any]) -> None:
        self._name, self._gated = name, gated

    def __get__(self, tool: BaseTool | None, owner: type) -> Any:
        if tool is None:
            raise AttributeError(self._name)  # as for any field: pydantic looks for defaults here
        return self._gated(vars(tool)[self._name], _gate_in(tool))

    def __set__(self, tool: BaseTool, function: Callable[..., Any]) -> None:
        vars(tool)[self._name] = function


def _gate_in(tool: BaseTool) -> Gate:
    """Find the gate of a tool; a copy, which may have another name, has one of its own."""
    gate = vars(tool).get(_GATE)
    if not isinstance(gate, Gate):
        raise GovernError(
            f"The tool {tool.name!r} was made of the class of a governed one and has no guard; "
            "make it of the class as you wrote it, and govern it."
        )
    if gate.tool is not tool:
        gate = Gate(tool, gate.binding, shadow=gate.shadow, metadata=gate.metadata)
        vars(tool)[_GATE] = gate
    return gate


@functools.lru_cache(maxsize=256)  # classes may be made for each request
def _governed_class(base: type[BaseTool]) -> type[BaseTool]:
    """Make the class of governed tools of a class, which is it to whoever looks."""

    class Governed(base):  # type: ignore[misc, valid-type]
        # CrewAI registers tool classes by this name, and finds the tools of a checkpoint by it.
        __qualname__ = f"{base.__qualname__}.governed"
        __module__ = base.__module__

        @functools.wraps(base.run)
        def run(self, *args: Any, **kwargs: Any) -> Any:
            with _Entering(self, None if args else kwargs):
                return super().run(*args, **kwargs)

        @functools.wraps(base.arun)
        async def arun(self, *args: Any, **kwargs: Any) -> Any:
            with _Entering(self, None if args else kwargs):
                return await super().arun(*args, **kwargs)

        def to_structured_tool(self) -> CrewStructuredTool:
            """Give the tool as executors of the text path call it."""
            made = super().to_structured_tool()
            _as_structured(made, cast(BaseTool, self))
            return cast(CrewStructuredTool, made)

        @classmethod
        def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
            super().__pydantic_init_subclass__(**kwargs)
            for name in _METHODS:
                if getattr(cls, name) is not getattr(Governed, name):
                    raise GovernError(
                        f"{cls.__name__} has a {name} of its own, and is made of a class that is "
                        "governed; make it of the class as you wrote it, and govern it."
                    )

    for name in _METHODS:
        method = getattr(Governed, name)
        own = method is not getattr(BaseTool, name) and not issubclass(base, Tool)
        if own and name in ("_run", "_arun"):
            method = _gated_method(Governed, name)
        setattr(Governed, name, _Door(name, method))
    setattr(Governed, "cache_function", _FunctionDoor("cache_function", _cached_by_us))  # noqa: B010
    if issubclass(base, Tool):
        setattr(Governed, "func", _FunctionDoor("func", _gated))  # noqa: B010 (no model's field)
    setattr(Governed, _BASE, base)
    Governed.__name__, Governed.__qualname__ = base.__name__, base.__qualname__
    return Governed


def _gated_method(made: type[BaseTool], name: str) -> Callable[..., Any]:
    """Put a gate before a body: whatever the class below has under that name, by then."""
    body = getattr(made, name)
    if is_async(body):

        @functools.wraps(body)
        async def awaited(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
            return await _gate_in(self).acall(getattr(super(made, self), name), args, kwargs)

        return awaited

    @functools.wraps(body)
    def called(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        return _gate_in(self).call(getattr(super(made, self), name), args, kwargs)

    return called


class _StructuredTool(CrewStructuredTool):
    """A governed tool on the text path."""

    def invoke(
        self, input: str | dict[str, Any], config: dict[str, Any] | None = None, **kwargs: Any
    ) -> Any:
        """Run the tool, and know of its arguments what the model sent."""
        with _Entering(vars(self)[_TOOL], _read(input)):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(
        self, input: str | dict[str, Any], config: dict[str, Any] | None = None, **kwargs: Any
    ) -> Any:
        """Run the tool, and know of its arguments what the model sent."""
        with _Entering(vars(self)[_TOOL], _read(input)):
            return await super().ainvoke(input, config, **kwargs)


def _as_structured(made: CrewStructuredTool, target: BaseTool) -> None:
    object.__setattr__(made, _TOOL, target)
    object.__setattr__(made, "__class__", _StructuredTool)


_StructuredTool.__name__ = _StructuredTool.__qualname__ = CrewStructuredTool.__name__
_StructuredTool.__module__ = CrewStructuredTool.__module__


class _Entering:
    """A tool between its being called and its body, where the framework validates."""

    def __init__(self, target: BaseTool, sent: Mapping[str, Any] | None) -> None:
        self._sent = None if sent is None else Sent(_gate_in(target).tool, dict(sent))
        self._target = target

    def __enter__(self) -> None:
        self._token = SENT.set(self._sent)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        SENT.reset(self._token)
        sent = self._sent
        if sent is None or sent.reached or not isinstance(error, ValueError):
            return
        binding = _gate_in(self._target).guard_now
        if binding is not None:
            record_invalid(binding, self._target, sent.args, error)


def _read(input: str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        read = json.loads(input) if isinstance(input, str) else input
    except ValueError:
        return None
    return read if isinstance(read, Mapping) else None


def _cached_by_us(chosen: Callable[..., Any], gate: Gate) -> Callable[..., Any]:
    """Keep results out of a cache that would give them to a call that nobody has judged."""
    if _gate_before(chosen) is gate:
        return chosen
    chosen = _behind(chosen, gate)

    @functools.wraps(chosen)
    def may_cache(*args: Any, **kwargs: Any) -> Any:
        judged = CALL.get() is not None or gate.guard_now is None
        return judged and chosen(*args, **kwargs)

    return _marked(may_cache, chosen, gate)


def _decorated_class(
    base: type[BaseTool],
    binding: Binding,
    shadow: Callable[..., Any] | None,
    metadata: ToolMetadata | None,
) -> type[BaseTool]:
    _check_overrides(base, None)
    made = _governed_class(base)

    class Decorated(made):  # type: ignore[misc, valid-type]
        __qualname__ = base.__qualname__
        __module__ = base.__module__

        def model_post_init(self, context: Any, /) -> None:
            """Put each new tool under the guard."""
            super().model_post_init(context)
            gate = Gate(cast(BaseTool, self), binding, shadow=shadow, metadata=metadata)
            _put_gate(cast(BaseTool, self), gate)

    Decorated.__name__ = base.__name__
    Decorated.__doc__ = base.__doc__
    return Decorated


def _plain_class(cls: type[BaseTool]) -> type[BaseTool]:
    """Give the class that a tool had before it was governed where it stands."""
    return cast(type[BaseTool], vars(cls).get(_BASE, cls))


def _check_overrides(base: type[BaseTool], target: BaseTool | None) -> None:
    """Raise `GovernError` for a tool that leads past the body where the gate is."""
    name = base.__name__ if target is None else target.name
    hidden = [] if target is None else [each for each in _METHODS if each in vars(target)]
    if hidden:
        raise GovernError(
            f"The tool {name!r} has {hidden[0]} replaced on the object itself, which would hide "
            "the governed one; override it in a subclass."
        )
    held: list[tuple[str, tuple[Any, ...]]] = [
        ("run", (BaseTool.run, Tool.run)),
        ("arun", (BaseTool.arun, Tool.arun)),
        ("to_structured_tool", (BaseTool.to_structured_tool,)),
    ]
    if issubclass(base, Tool):
        # The body of one is its function, and these lead there; another's might lead elsewhere.
        held += [("_run", (Tool._run,)), ("_arun", (Tool._arun,))]
    for method, known in held:
        if getattr(base, method) not in known:
            raise GovernError(
                f"The tool {name!r} has a {method} of its own, by which CrewAI would run it past "
                "its guard; write the body as _run of a BaseTool, or as a function."
            )
