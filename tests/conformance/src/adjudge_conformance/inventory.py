"""The inventory of a framework's public callables: which reach a tool's body, and which do not.

An integration lists every public callable of its framework's tool, agent, graph and crew classes,
by class, as driven by a case or a test, or as reaching no body. A new release that adds one makes
the inventory fail until somebody has looked at it (law 3).

    REACHES = {"Tool": {"invoke": "allow.runs-once", "batch": "bypass.batch"}}
    HARMLESS = {"Tool": {"name": "a description", "get_schema": "reads the schema"}}
    problems = unlisted([Tool], reaches=REACHES, harmless=HARMLESS, driven=driven_ids)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

__all__ = ["CHECKLIST", "public_callables", "uncovered", "unlisted"]

CHECKLIST: Mapping[str, str] = {
    "sync": "the blocking entry point",
    "async": "the coroutine entry point",
    "stream": "the streaming entry point",
    "batch": "several inputs at once",
    "parallel": "several calls in one turn",
    "retry": "the framework tries a failed call again",
    "cache": "the framework answers from a cache",
    "direct-call": "the governed tool object is called without an agent",
    "copied-tool": "a copy of the governed tool object is called",
    "added-later": "a tool is given to the agent after it was governed",
    "nested-agent": "an agent that the object graph names calls its own tools",
    "provider-side": "a tool runs at the provider, out of reach",
}


def public_callables(cls: type) -> set[str]:
    """Name everything public on a class that can be called, `__call__` included.

    What every object has is left out, and so are plain values and properties.
    """
    names = {name for name in dir(cls) if not name.startswith("_") or name == "__call__"}
    return {name for name in names if callable(_attribute(cls, name))}


def unlisted(
    classes: Iterable[type],
    *,
    reaches: Mapping[str, Mapping[str, str]],
    harmless: Mapping[str, Mapping[str, str]],
    driven: Collection[str],
) -> list[str]:
    """Name what an inventory leaves open; an empty list means that it is whole.

    `reaches` gives, by class and callable, the id of the case or test that drives it; each must be
    in `driven`. `harmless` gives the reason why a callable reaches no body.
    """
    problems = []
    for cls in classes:
        driving, safe = reaches.get(cls.__name__, {}), harmless.get(cls.__name__, {})
        listed, there = driving.keys() | safe.keys(), public_callables(cls)
        where = cls.__name__
        problems += [f"{where}.{name} is not listed" for name in sorted(there - listed)]
        problems += [f"{where}.{name} is listed twice" for name in sorted(driving.keys() & safe)]
        problems += [
            f"{where}.{name} is said to be driven by {test}, which is no test"
            for name, test in driving.items()
            if test not in driven
        ]
    return problems


def uncovered(
    bypasses: Collection[str], *, not_there: Mapping[str, str] | None = None
) -> list[str]:
    """Name the entries of the checklist that a `bypasses.py` neither drives nor declares absent.

    `not_there` gives, for what a framework does not have at all, a sentence that says so.
    """
    absent = not_there or {}
    covered = set(bypasses) | absent.keys()
    problems = [
        f"{name} is not covered: {text}" for name, text in CHECKLIST.items() if name not in covered
    ]
    problems += [f"{name} is not on the checklist" for name in absent if name not in CHECKLIST]
    return problems + [f"{name} is both driven and absent" for name in absent if name in bypasses]


def _attribute(cls: type, name: str) -> Any:
    try:
        return getattr(cls, name)
    except AttributeError:
        return None
