"""What a function is, as data that a digest can cover: its code, and what the code reaches.

Covered are the code with its nested functions, the defaults, what it closes over, and the globals
that it names: constants by value, functions of the same module by their code. Modules, classes and
functions of other modules are covered by name alone. The form is the same in every process of one
Python version; line numbers and file names are not in it.
"""

from __future__ import annotations

import builtins
import dis
import functools
import re
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from adjudge._values import canonical_json
from adjudge.errors import ArgumentsRefused

__all__ = ["Undigestable", "code_form", "qualified_name"]


class Undigestable(Exception):
    """Something that a function reaches has no form; the text says what."""


def qualified_name(thing: Any) -> str:
    """Give module and name of a function or class, or of an object's class."""
    if isinstance(thing, functools.partial):
        return qualified_name(thing.func)
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def code_form(function: Any) -> list[Any]:
    """Give the form of a function. Raises `Undigestable` for whatever has none."""
    if not isinstance(function, FunctionType):
        raise Undigestable(f"a {type(function).__name__} has no code to digest")
    return _Form(function.__module__).of_function(function)


class _Form:
    """Builds one form; a function that is met again is a number, so that recursion ends."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._met: dict[int, int] = {}

    def of_function(self, function: FunctionType) -> list[Any]:
        if id(function) in self._met:
            return ["again", self._met[id(function)]]
        self._met[id(function)] = len(self._met)
        return [
            self._of_code(function.__code__),
            [self._of_value("a default", value) for value in function.__defaults__ or ()],
            [
                [name, self._of_value(f"the default of {name}", value)]
                for name, value in sorted((function.__kwdefaults__ or {}).items())
            ],
            [
                [name, self._of_cell(name, cell)]
                for name, cell in zip(
                    function.__code__.co_freevars, function.__closure__ or (), strict=True
                )
            ],
            [
                [name, self._of_value(f"the global {name}", function.__globals__[name])]
                for name in sorted(set(_globals_of(function.__code__)))
                if name in function.__globals__ and not hasattr(builtins, name)
            ],
        ]

    def _of_cell(self, name: str, cell: Any) -> Any:
        try:
            value = cell.cell_contents
        except ValueError:
            return ["empty"]
        return self._of_value(f"{name}, which it closes over,", value)

    def _of_code(self, code: CodeType) -> list[Any]:
        return [
            code.co_code.hex(),
            code.co_exceptiontable.hex(),
            [self._of_constant(constant) for constant in code.co_consts],
            [list(code.co_names), list(code.co_varnames)],
            [list(code.co_freevars), list(code.co_cellvars)],
            [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags],
        ]

    def _of_constant(self, constant: Any) -> Any:
        if isinstance(constant, CodeType):
            return self._of_code(constant)
        if isinstance(constant, tuple):
            return ["tuple", *map(self._of_constant, constant)]
        if isinstance(constant, frozenset):
            return ["frozenset", *sorted(repr(self._of_constant(each)) for each in constant)]
        return [type(constant).__name__, repr(constant)]

    def _of_value(self, what: str, value: Any) -> Any:
        if isinstance(value, FunctionType) and value.__module__ == self._module:
            return self.of_function(value)
        if isinstance(value, ModuleType):
            return ["module", value.__name__]
        if isinstance(value, FunctionType | BuiltinFunctionType | type):
            return ["named", qualified_name(value)]
        if isinstance(value, re.Pattern):
            return ["pattern", repr(value.pattern), value.flags]
        if isinstance(value, bytes):
            return ["bytes", value.hex()]
        if isinstance(value, set | frozenset):
            return ["set", *sorted(repr(self._of_value(what, each)) for each in value)]
        if isinstance(value, tuple):
            return ["tuple", *(self._of_value(what, each) for each in value)]
        try:
            return [type(value).__name__, canonical_json(value)]
        except ArgumentsRefused:
            raise Undigestable(f"{what} is a {type(value).__name__}") from None


def _globals_of(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)
