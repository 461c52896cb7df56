"""The arguments of a tool's function: which it takes, and what it has where none are given.

A default is judged as if the model had sent it. What the body gets of it is the same value: given
afresh where a body could change it, the function's own where its JSON form says less than it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from adjudge._types import ActionRequest
from adjudge._values import FrozenDict, OpaqueValue, freeze
from adjudge.errors import ArgumentsRefused, ToolDefinitionError

__all__ = ["Signature", "call_of", "is_async"]


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether calling gives a coroutine; partials, methods and `__call__` are seen through."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function):
        return True
    return not inspect.isroutine(function) and inspect.iscoroutinefunction(call_of(function))


def call_of(function: Any) -> Any:
    """Give the `__call__` of an object's type; `callable` would not tell which it is."""
    return getattr(type(function), "__call__", None)  # noqa: B004


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments that a function takes by name.

    `defaults` are frozen; a default that is no JSON value stands as an opaque marker that no rule
    can read, and the body gets the function's own. So it does where the default is judged by its
    JSON form and is more than that (`own`: an Enum, a date, a path, a tuple).
    """

    names: frozenset[str]
    required: tuple[str, ...]
    defaults: FrozenDict
    own: frozenset[str]
    takes_any: bool
    is_async: bool

    @classmethod
    def of(cls, function: Callable[..., Any], *, where: str) -> Signature:
        """Read a signature; what cannot be called by name raises `ToolDefinitionError`."""
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise ToolDefinitionError(
                f"{where} has no readable signature ({error}); "
                "wrap it in a function with named parameters."
            ) from None
        named = []
        takes_any = False
        for parameter in parameters:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise ToolDefinitionError(
                    f"{where} takes {parameter.name!r} by position only; a model names its "
                    "arguments, so write it without the `/`."
                )
            if parameter.kind is parameter.VAR_KEYWORD:
                takes_any = True
            elif parameter.kind is not parameter.VAR_POSITIONAL:
                named.append(parameter)
        return cls(
            names=frozenset(parameter.name for parameter in named),
            required=tuple(item.name for item in named if item.default is item.empty),
            defaults=FrozenDict(
                {
                    item.name: _frozen_default(item.default)
                    for item in named
                    if item.default is not item.empty
                }
            ),
            own=frozenset(item.name for item in named if _is_own(item.default)),
            takes_any=takes_any,
            is_async=is_async(function),
        )

    def problem(self, args: Mapping[str, Any]) -> str | None:
        """Say which argument is missing or unknown, None where the names fit."""
        for name in self.required:
            if name not in args:
                return f"The argument {name!r} is missing."
        if not self.takes_any and not self.names.issuperset(args):
            unknown = ", ".join(repr(name) for name in args if name not in self.names)
            known = ", ".join(repr(name) for name in sorted(self.names)) or "none"
            return f"There is no argument {unknown}; the tool takes {known}."
        return None

    def filled(self, args: FrozenDict) -> FrozenDict:
        """Give the arguments with the defaults of those that are not there."""
        if not self.defaults or self.defaults.keys() <= args.keys():
            return args
        return FrozenDict({**self.defaults, **args})

    def unfilled(self, request: ActionRequest) -> ActionRequest:
        """Leave out the defaults that the body has itself, where they are what was judged."""
        left_out = {
            name
            for name in self.own
            if request.given is not None
            and name not in request.given
            and request.args.get(name) is self.defaults[name]
        }
        if not left_out:
            return request
        args = {name: value for name, value in request.args.items() if name not in left_out}
        return replace(request, args=FrozenDict(args))


def _is_own(value: object) -> bool:
    """Tell whether a default is more than its JSON form, and can never become another."""
    if isinstance(value, tuple):
        return all(_is_scalar(item) or _is_own(item) for item in value)
    if isinstance(value, Enum):
        return _is_scalar(value.value)
    return isinstance(value, date | time | UUID | PurePath)


def _is_scalar(value: object) -> bool:
    return value is None or type(value) in (bool, int, float, str, Decimal)


def _frozen_default(value: object) -> Any:
    try:
        return freeze(value)
    except ArgumentsRefused:
        return OpaqueValue()
