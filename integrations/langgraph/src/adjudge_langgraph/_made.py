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
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

__all__ = ["is_told", "items_of", "made_of", "parts_of", "values_of"]

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


def items_of(found: Iterable[Any]) -> tuple[Any, ...]:
    """Give the items of a list or the like; none of one that cannot give them now."""
    try:
        return tuple(found)
    except Exception:
        return ()


def parts_of(found: Runnable[Any, Any]) -> Iterator[Any]:
    """Give what a runnable runs, one by one."""
    held = vars(found)
    for name in _PARTS:
        yield from _each(held.get(name))


def _each(part: Any) -> Iterator[Any]:
    if isinstance(part, Mapping):
        part = values_of(part)
    if isinstance(part, list | tuple):
        for each in part:
            yield from _each(each)
    else:
        yield part


def made_of(found: Any) -> Iterator[Any]:
    """Give what a function, or something like one, is made of; nothing for all else."""
    if isinstance(found, partial):
        yield from (found.func, *found.args, *found.keywords.values())
    elif isinstance(found, MethodType):
        yield from _method(found)
    elif isinstance(found, BuiltinMethodType | MethodWrapperType):
        yield found.__self__
    elif isinstance(found, FunctionType):
        yield from found.__dict__.values()  # with what it wraps, or chooses from
        if _package(found) not in _OWN:
            yield from _referred(found)
    elif _package(type(found)) in _OWN:
        yield getattr_static(found, "__wrapped__", None)  # of `functools.cache`
        yield _static(found, "func")  # a task of the functional API
    elif not isinstance(found, (type, ModuleType, BaseLanguageModel)):
        yield from _object(found)


def _method(found: MethodType) -> Iterator[Any]:
    owner, function = found.__self__, found.__func__
    yield function
    if isinstance(owner, (type, Runnable)):
        yield owner
    else:
        yield from _held(owner)
    if isinstance(owner, tuple):
        yield from owner  # where the branches of a graph have their function
    if isinstance(function, FunctionType) and _package(function) not in _OWN:
        yield from _within(owner, _names(function))


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
    names = _names(function)
    for value in _named(function, names):
        yield value
        if is_told(value) and not isinstance(value, FunctionType | Runnable):
            yield from _within(value, names)


def _within(value: Any, names: Iterable[str]) -> Iterator[Any]:
    """Give the attributes of a value that a function names, those of theirs, and so on."""
    ahead, seen = [value], dict[int, Any]()  # held, so that no id comes twice
    while ahead:
        value = ahead.pop()
        if id(value) in seen or (_is_named(value) and _package(value) in _OWN):
            continue
        seen[id(value)] = value
        for held in (each for name in names for each in _statics(value, name)):
            yield held
            if not isinstance(held, FunctionType | MethodType | Runnable):
                ahead.append(held)


def _statics(value: Any, name: str) -> Iterator[Any]:
    """Look an attribute up without running anything, and what it takes the place of."""
    found = [_static(value, name)]
    for kind in value.__mro__ if isinstance(value, type) else type(value).__mro__:
        held = vars(kind).get(name)
        if isinstance(held, FunctionType | property | staticmethod | classmethod):
            found.append(held)
    for held in found:
        if held is not _NONE and is_told(held):
            yield _bound(held, value)


def _bound(held: Any, value: Any) -> Any:
    """Give what a function would get that reads the attribute, but for what has to be run."""
    if isinstance(held, property) and held.fget is not None:
        held = held.fget
    if isinstance(held, classmethod) and isinstance(held.__func__, FunctionType):
        return MethodType(held.__func__, value if isinstance(value, type) else type(value))
    if isinstance(held, staticmethod | classmethod):
        return held.__func__
    if isinstance(held, FunctionType) and not _is_named(value):
        return MethodType(held, value)
    return held


def _is_named(value: Any) -> bool:
    return isinstance(value, (type, ModuleType))


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
