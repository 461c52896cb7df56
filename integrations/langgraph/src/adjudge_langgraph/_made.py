"""What functions, methods and objects that run something are made of.

Looked at is what they hold, without running anything of theirs: no property, no `__getattr__`.
Objects that cannot be looked at so are passed over.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from inspect import getattr_static
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

__all__ = ["is_told", "made_of", "parts_of", "values_of"]

# Their functions run no tool by themselves, but what their nodes are made of is in them.
_FRAMEWORK = ("langchain", "langchain_core", "langgraph", "adjudge_langchain", "adjudge_langgraph")
_OWN = frozenset({*_FRAMEWORK, *sys.stdlib_module_names} - {"__main__", "test", "tests"})
# Where runnables keep the runnables and functions that they are made of.
_PARTS = (
    "first",
    "middle",
    "last",
    "steps",
    "steps__",
    "bound",
    "func",
    "afunc",
    "mapper",
    "runnable",
    "runnables",
    "fallbacks",
    "branches",
    "default",
    "alternatives",
    "_transform",
    "_atransform",
)
# By which an object is a node, or is run by one.
_ENTRANCES = ("__call__", "invoke", "ainvoke", "stream", "astream", "batch", "abatch")
_NONE = object()


def is_told(found: Any) -> bool:
    """Whether something says what it is; what stands for another thing may not be able to."""
    try:
        return found.__class__ is not None
    except Exception:
        return False


def values_of(found: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Give the values of a mapping; none of one that has to load them first and cannot."""
    if isinstance(found, dict):
        return tuple(dict.values(found))
    try:
        return tuple(found.values())
    except Exception:
        return ()


def parts_of(found: Runnable[Any, Any]) -> Iterator[Any]:
    """Give what a runnable is made of."""
    held = vars(found)
    yield from (held[name] for name in _PARTS if name in held)
    package = _package(type(found))
    if package not in _OWN and not isinstance(found, BaseLanguageModel):
        yield from _object(found)


def made_of(found: Any) -> Iterator[Any]:
    """Give what a function, or something like one, is made of; nothing for all else."""
    if isinstance(found, partial):
        yield from (found.func, *found.args, *found.keywords.values())
    elif isinstance(found, MethodType):
        yield from _method(found)
    elif isinstance(found, FunctionType):
        yield from found.__dict__.values()  # with what it wraps, or chooses from
        if _package(found) not in _OWN:
            yield from _referred(found)
    elif _package(type(found)) in _OWN:
        yield getattr_static(found, "__wrapped__", None)  # of `functools.cache`
        yield _static(found, "func")  # a task of the functional API
    elif not isinstance(found, (type, ModuleType)):
        yield from _object(found)


def _method(found: MethodType) -> Iterator[Any]:
    owner, function = found.__self__, found.__func__
    yield function
    if isinstance(owner, (type, Runnable)):
        yield owner
        return
    yield from _held(owner)
    if isinstance(owner, tuple):
        yield from owner  # where the branches of a graph have their function
    if isinstance(function, FunctionType) and _package(function) not in _OWN:
        yield from _within(owner, _names(function), set())


def _object(found: Any) -> Iterator[Any]:
    """Give what an object that can be run holds, and how it is run."""
    entrances = [getattr_static(type(found), name, None) for name in _ENTRANCES]
    functions = [
        each
        for each in entrances
        if isinstance(each, FunctionType) and _package(each) not in _FRAMEWORK
    ]
    if functions:
        yield from _held(found)
        yield from (MethodType(each, found) for each in functions)


def _held(found: Any) -> Iterator[Any]:
    """Give the values of all attributes of an object of somebody's own."""
    held = getattr_static(found, "__dict__", None)
    if isinstance(held, GetSetDescriptorType):
        held = held.__get__(found)
    if isinstance(held, dict):
        yield from dict.values(held)
    for kind in type(found).__mro__:
        slots = [each for each in vars(kind).values() if isinstance(each, MemberDescriptorType)]
        yield from (_got(each, found) for each in slots if _package(kind) not in _OWN)


def _referred(function: FunctionType) -> Iterator[Any]:
    """Give the values that a function reaches by name, and by the names of their attributes."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names, seen = _names(function), set[int]()
    for value in _named(function, names):
        yield value
        yield from _within(value, names, seen)


def _within(value: Any, names: Iterable[str], seen: set[int]) -> Iterator[Any]:
    """Give the attributes of a value that a function names, those of theirs, and so on."""
    if id(value) in seen or not is_told(value) or isinstance(value, FunctionType | Runnable):
        return
    seen.add(id(value))
    if isinstance(value, (type, ModuleType)) and _package(value) in _OWN:
        return
    for name in names:
        held = _static(value, name)
        if held is _NONE:
            continue
        if not is_told(held):
            continue
        if isinstance(held, property) and held.fget is not None:
            held = held.fget
        if isinstance(held, FunctionType) and not isinstance(value, (type, ModuleType)):
            held = MethodType(held, value)
        elif isinstance(held, staticmethod | classmethod):
            held = held.__func__
        yield held
        yield from _within(held, names, seen)


def _static(value: Any, name: str) -> Any:
    """Look an attribute up without running anything."""
    try:
        held = getattr_static(value, name, _NONE)
    except Exception:
        return _NONE
    return _got(held, value) if type(held) is MemberDescriptorType else held


def _got(slot: MemberDescriptorType, found: Any) -> Any:
    try:
        return slot.__get__(found)
    except (AttributeError, TypeError):
        return _NONE


def _named(function: FunctionType, names: frozenset[str]) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not bound yet
    for name in sorted(names & function.__globals__.keys()):
        yield function.__globals__[name]


def _names(function: FunctionType) -> frozenset[str]:
    return frozenset(name for code in _codes(function.__code__) for name in code.co_names)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _package(found: Any) -> str:
    if isinstance(found, FunctionType):
        name: Any = found.__module__
    elif isinstance(found, ModuleType):
        name = found.__name__
    else:
        name = getattr_static(found, "__module__", None)
    return name.partition(".")[0] if isinstance(name, str) else ""
