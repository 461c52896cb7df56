"""Tools as `ToolGuard.check` runs them: a function, what it declares, and its shadow.

`@tool` attaches a `ToolDef` to the function and registers nothing anywhere; a `ToolSet` is an
immutable bundle of such definitions. A definition that could not be governed (its body would run
after the guard has looked away, or its arguments have no names) is refused where it is written.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Never, TypeVar

from adjudge._enforcement.signature import Signature, call_of
from adjudge._types import ToolMetadata
from adjudge.errors import ToolDefinitionError

__all__ = ["ToolDef", "ToolSet", "shadow", "tool"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_ATTRIBUTE = "__adjudge_tool__"


@dataclass(frozen=True, slots=True)
class ToolDef:
    """One tool: its name, its body, its preview, and what it declares."""

    name: str
    description: str
    fn: Callable[..., Any]
    shadow_fn: Callable[..., Any] | None = None
    metadata: ToolMetadata = field(default_factory=ToolMetadata)


def tool(
    *misplaced: Never,
    cost: Literal["low", "medium", "high"] = "low",
    reversible: bool = True,
    scope: tuple[str, ...] = (),
    blast_radius_hint: int | None = None,
    isolation: str | None = None,
    labels: tuple[str, ...] = (),
    name: str | None = None,
    description: str | None = None,
) -> Callable[[F], F]:
    """Mark a function, sync or async, as a tool.

    The function stays what it was, with a `ToolDef` as its `__adjudge_tool__` and a decorator
    `.shadow` for its preview. Raises `ToolDefinitionError` for what cannot be governed: a
    generator, positional-only parameters, a second `@tool`, metadata of the wrong kind.
    """
    _refuse_positional(misplaced)

    def decorate(function: F) -> F:
        if not callable(function):
            raise ToolDefinitionError(
                f"@tool stands on a {type(function).__name__}, which cannot be called; "
                "write `@tool()` above a function."
            )
        tool_name = name if name is not None else _name_of(function)
        if getattr(function, _ATTRIBUTE, None) is not None and not _is_inherited(function):
            raise ToolDefinitionError(
                f"{tool_name} has been marked with @tool already; remove one of the two."
            )
        definition = ToolDef(
            name=tool_name,
            description=description if description is not None else _description_of(function),
            fn=function,
            metadata=ToolMetadata(
                cost=cost,
                reversible=reversible,
                scope=_words(scope, "scope", tool_name),
                blast_radius_hint=blast_radius_hint,
                isolation=isolation,
                labels=_words(labels, "labels", tool_name),
            ),
        )
        _check(definition)
        _attach(function, definition)
        return function

    return decorate


def shadow(function: Callable[..., Any]) -> Callable[[F], F]:
    """Make a function the preview of a tool: `@shadow(refund)`, the same as `@refund.shadow`."""
    definition_of(function)

    def decorate(preview: F) -> F:
        current = definition_of(function)
        if not callable(preview):
            raise ToolDefinitionError(
                f"The shadow of {current.name} is a {type(preview).__name__}; give a function."
            )
        _refuse_generators(preview, f"The shadow of {current.name}")
        _attach(
            function,
            replace(
                current,
                shadow_fn=preview,
                metadata=replace(current.metadata, has_shadow=True),
            ),
        )
        return preview

    return decorate


def definition_of(function: object) -> ToolDef:
    """Give the `ToolDef` of what `@tool` marked; a bound method's body is the bound method.

    Raises `ToolDefinitionError` for anything else.
    """
    definition = getattr(function, _ATTRIBUTE, None)
    if not isinstance(definition, ToolDef) or not callable(function):
        raise ToolDefinitionError(
            f"{getattr(function, '__name__', function)!r} is no tool; write `@tool()` above it."
        )
    if definition.fn is function:
        return definition
    # A bound method, or a wrapper that carries the mark: what was handed over is what runs.
    return replace(definition, fn=function, shadow_fn=_bound_like(function, definition.shadow_fn))


class ToolSet:
    """An immutable bundle of tools with names of their own.

    Built from `ToolDef`s or from functions that `@tool` marked. Two tools of one name raise
    `ToolDefinitionError`: neither may silently take the other's place.
    """

    __slots__ = ("_derived", "_signatures", "_tools")

    def __init__(self, tools: Iterable[ToolDef | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, ToolDef] = {}
        self._signatures: dict[str, Signature] = {}
        self._derived: dict[Callable[[ToolSet], Any], Any] = {}
        if callable(tools):
            raise ToolDefinitionError("A tool set is made of several; write ToolSet([...]) of it.")
        for item in tools:
            definition = item if isinstance(item, ToolDef) else definition_of(item)
            if definition.name in self._tools:
                raise ToolDefinitionError(
                    f"Two tools are called {definition.name!r}; give one of them another name."
                )
            self._signatures[definition.name] = _check(definition)
            self._tools[definition.name] = definition

    @classmethod
    def from_functions(cls, *functions: Callable[..., Any]) -> ToolSet:
        """Bundle functions that `@tool` marked."""
        return cls(functions)

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in the order given."""
        return tuple(self._tools)

    def get(self, name: str) -> ToolDef:
        """Give the tool of that name; `KeyError` where there is none."""
        return self._tools[name]

    def signature(self, name: str) -> Signature:
        """Give the arguments that the tool of that name takes; `KeyError` where there is none."""
        return self._signatures[name]

    def derived(self, make: Callable[[ToolSet], T]) -> T:
        """Give what a function makes of this set, made once and kept with the set.

        For integrations that need it in each run: a function of a module's own, which depends on
        the set alone. What it raises is kept nowhere.
        """
        if make not in self._derived:
            self._derived[make] = make(self)
        made: T = self._derived[make]
        return made

    def with_tool(self, added: ToolDef | Callable[..., Any]) -> ToolSet:
        """Give a set with one tool more."""
        return ToolSet((*self._tools.values(), added))

    def without_tool(self, name: str) -> ToolSet:
        """Give a set without the tool of that name; `KeyError` where there is none."""
        self.get(name)
        return ToolSet(item for item in self._tools.values() if item.name != name)

    def union(self, other: ToolSet) -> ToolSet:
        """Give a set with the tools of both."""
        return ToolSet((*self._tools.values(), *other))

    def __or__(self, other: ToolSet) -> ToolSet:
        return self.union(other)

    def __reduce__(self) -> tuple[type[ToolSet], tuple[tuple[ToolDef, ...]]]:
        # What was derived is made again where it is needed, and need not be anything to pickle.
        return type(self), (tuple(self._tools.values()),)

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[ToolDef]:
        return iter(self._tools.values())

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(self._tools)})"


def _bound_like(function: object, preview: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Bind the shadow of a method to the method's object, where it takes that object too."""
    if preview is None or not inspect.ismethod(function) or not inspect.isfunction(preview):
        return preview
    first = next(iter(inspect.signature(preview).parameters), None)
    if first != next(iter(inspect.signature(function.__func__).parameters), None):
        return preview
    bound: Callable[..., Any] = preview.__get__(function.__self__)
    return bound


def _attach(function: Any, definition: ToolDef) -> None:
    try:
        setattr(function, _ATTRIBUTE, definition)
        if inspect.isfunction(function) or not hasattr(function, "shadow"):
            function.shadow = shadow(function)
    except AttributeError:
        raise ToolDefinitionError(
            f"{definition.name} is a {type(function).__name__}, to which nothing can be attached; "
            "give a ToolDef to the ToolSet instead."
        ) from None


def _is_inherited(function: object) -> bool:
    """Tell whether the mark was copied by `functools.wraps` from a function that this one wraps."""
    definition = getattr(function, _ATTRIBUTE)
    return isinstance(definition, ToolDef) and definition.fn is not function


def _check(definition: ToolDef) -> Signature:
    name: object = definition.name
    if not isinstance(name, str) or not name:
        raise ToolDefinitionError(f"A tool is called {name!r}; give it a name.")
    _check_metadata(definition.metadata, name)
    _refuse_generators(definition.fn, f"The tool {definition.name}")
    if isinstance(definition.fn, type):
        raise ToolDefinitionError(
            f"The tool {definition.name} is a class; mark one of its methods, "
            "or give an instance with `__call__`."
        )
    if definition.metadata.has_shadow is not (definition.shadow_fn is not None):
        raise ToolDefinitionError(
            f"The tool {definition.name} declares has_shadow={definition.metadata.has_shadow} but "
            f"{'has no' if definition.shadow_fn is None else 'has a'} shadow_fn; "
            "make the two agree."
        )
    return Signature.of(definition.fn, where=f"The tool {definition.name}")


def _refuse_positional(given: tuple[object, ...]) -> None:
    if given:
        raise ToolDefinitionError(
            "tool takes nothing by position; write `@tool()` above the function, "
            "with what it declares by name."
        )


def _check_metadata(declared: ToolMetadata, name: str) -> None:
    """Refuse what a rule could not read: the text "no" is true, and would pass for reversible."""
    reversible: object = declared.reversible
    hint: object = declared.blast_radius_hint
    isolation: object = declared.isolation
    problem = None
    if declared.cost not in ("low", "medium", "high"):
        problem = f"cost {declared.cost!r}; write low, medium or high"
    elif not isinstance(reversible, bool):
        problem = f"reversible {reversible!r}; write True or False"
    elif hint is not None and (isinstance(hint, bool) or not isinstance(hint, int)):
        problem = f"blast_radius_hint {hint!r}; write a whole number"
    elif isolation is not None and not isinstance(isolation, str):
        problem = f"isolation {isolation!r}; write the name of an executor's route"
    if problem is not None:
        raise ToolDefinitionError(f"The tool {name} declares {problem}.")


def _refuse_generators(function: Callable[..., Any], what: str) -> None:
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    if not inspect.isroutine(inner) and not isinstance(inner, type):
        inner = call_of(inner)
    if inspect.isasyncgenfunction(inner) or inspect.isgeneratorfunction(inner):
        raise ToolDefinitionError(
            f"{what} is a generator, whose body runs after the call has been recorded as done; "
            "collect its values and return them."
        )


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _description_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return (inspect.getdoc(function) or "").strip()


def _words(value: object, field: str, where: str) -> tuple[str, ...]:
    # A bare text is a sequence of letters, which nobody means.
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ToolDefinitionError(
            f'The {field} of {where} is {value!r}; write a tuple of texts, such as ("files:read",).'
        )
    words = tuple(value)
    if not all(isinstance(word, str) for word in words):
        raise ToolDefinitionError(f"The {field} of {where} is {value!r}; every member is a text.")
    return words
