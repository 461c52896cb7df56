"""Rules written in Python, `(request, context) -> Decision | None`, in their place in the order.

Whatever else such a function does - another answer, a coroutine, an exception - is an error of that
rule and ends in the stricter outcome (clause 18). `BaseException` passes through. What a rule looks
at outside its arguments is its author's responsibility: `evaluate` is pure only where the rules
are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge._types import ActionRequest, Decision, ExecutionContext
from adjudge.errors import PolicyCompileError
from adjudge.policy._faults import Fault, describe, raised
from adjudge.policy._verdicts import checked, tagged

__all__ = ["PythonRule", "VersionedFunction", "asked", "named", "priorities_of", "versioned"]

PythonRule = Callable[[ActionRequest, ExecutionContext], Decision | None]


@dataclass(frozen=True, slots=True)
class VersionedFunction:
    """A rule or combiner with a version of its own, which the bundle's id covers (clause 30)."""

    function: Callable[..., Any]
    version: str

    @property
    def __name__(self) -> str:
        return name_of(self.function)

    def __call__(self, *args: Any) -> Any:
        """Call the function itself."""
        return self.function(*args)


def versioned(function: Callable[..., Any], version: str) -> VersionedFunction:
    """Give a Python rule or a combiner a version of its own.

    The id of a bundle covers a function's code, its defaults, what it closes over and the constants
    that it names. What it reaches otherwise (another module, an object's state, a file) is not
    seen: change the version with it. A callable that has no code to digest (an instance, a bound
    method, a built-in) needs a version to be compiled at all.
    """
    if not version:
        raise PolicyCompileError(f"A version is a text that is not empty, not {version!r}.")
    return VersionedFunction(function, version)


def name_of(function: Callable[..., Any]) -> str:
    """Give the name under which a rule is reported: its own, or that of its type."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return str(getattr(function, "__name__", None) or type(function).__name__)


def named(rules: Iterable[PythonRule], taken: Iterable[str]) -> dict[str, PythonRule]:
    """Check Python rules and give them by name; a taken name or an `async def` is an error."""
    by_name: dict[str, PythonRule] = {}
    used = set(taken)
    if callable(rules):
        raise PolicyCompileError(f"python_rules is {rules!r}; write ({name_of(rules)},).")
    for rule in rules:
        if not callable(rule):
            raise PolicyCompileError(
                f"A Python rule is a function of (request, context), not a {type(rule).__name__}."
            )
        name = name_of(rule)
        if _is_async(rule):
            raise PolicyCompileError(
                f"Python rule {name!r} is an async function; a decision does no I/O, so write it "
                "with a plain def."
            )
        if name in used:
            raise PolicyCompileError(
                f"Two rules are called {name!r}; give the Python rule another function name."
            )
        used.add(name)
        by_name[name] = rule
    return by_name


def priorities_of(
    stated: Iterable[tuple[str, int]] | Mapping[str, int], known: Iterable[str]
) -> dict[str, int]:
    """Check the priorities of Python rules: each a known name and an integer."""
    priorities = dict(stated)
    names = list(known)
    for name, priority in priorities.items():
        if name not in names:
            raise PolicyCompileError(
                f"There is a priority for {name!r}, but no Python rule of that name; there are: "
                f"{', '.join(names) or 'none'}."
            )
        if type(priority) is not int:
            raise PolicyCompileError(
                f"The priority of Python rule {name!r} is {priority!r}; write an integer."
            )
    return priorities


def _is_async(rule: Any) -> bool:
    function = rule.function if isinstance(rule, VersionedFunction) else rule
    while isinstance(function, functools.partial):
        function = function.func
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, type(function).__call__)
    )


def asked(
    rule: PythonRule, name: str, layer: str
) -> Callable[[ActionRequest, Any], bool | Fault | Decision]:
    """Give the test of a Python rule: False for None, else its Decision or a fault."""

    def ask(request: ActionRequest, _item: Any) -> bool | Fault | Decision:
        try:
            answer: Any = rule(request, request.context)
        except Exception as error:
            return raised(error)
        if answer is None:
            return False
        if isinstance(answer, Decision):
            return _own(answer, name, layer)
        if inspect.iscoroutine(answer):
            answer.close()
        return Fault(
            "NotADecision",
            f"it returned a {type(answer).__name__}, expected a Decision or None",
        )

    return ask


def _own(decision: Decision, name: str, layer: str) -> Decision | Fault:
    """Take over a Python rule's Decision, the rule's name in it."""
    try:
        own = checked(decision)
    except Exception as error:
        return Fault("BadDecision", f"its Decision cannot be used: {describe(error)}")
    rules = own.matched_rules if name in own.matched_rules else (*own.matched_rules, name)
    return replace(own, matched_rules=tuple(tagged(layer, rule) for rule in rules))
