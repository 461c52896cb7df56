"""The suite's own tools: real typed functions, plain and coroutine, whose every start is seen.

They are what a user would write for a desk of notes and money. A driver makes its framework's tool objects out of
`function`, with nothing but the function's own name, signature and docstring.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge_conformance.spies import Spies

__all__ = ["SIBLING", "TOOL_NAMES", "SuiteTool", "result_of", "suite_tools"]

SIBLING = "glance"


@dataclass(frozen=True, slots=True)
class SuiteTool:
    """One tool: its function for the framework, and what only a guard needs to know of it."""

    function: Callable[..., Any]
    shadow: Callable[..., Any] | None
    metadata: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.function.__name__)


def read_note(name: str) -> str:
    """Read a note."""
    return f"the note {name} says hello"


def write_note(name: str, text: str) -> str:
    """Write a note."""
    return f"wrote {len(text)} characters to {name}"


def delete_note(name: str) -> str:
    """Delete a note for good."""
    return f"deleted {name}"


def pay(to: str, amount: float = 25.5, currency: str = "EUR") -> str:
    """Pay somebody."""
    return f"paid {amount} {currency} to {to}"


def label_notes(names: list[str], labels: dict[str, str]) -> str:
    """Put labels on notes."""
    return f"labelled {', '.join(names)} with {', '.join(f'{k}={v}' for k, v in labels.items())}"


def find_notes(word: str) -> list[dict[str, Any]]:
    """Find the notes that hold a word."""
    return [{"name": "plan", "hits": 2, "score": 0.5}, {"name": word, "hits": 0, "score": None}]


def boom(note: str) -> str:
    """Fail, always."""
    raise ValueError(f"no such note: {note}")


def glance(key: str) -> str:
    """Look something up; it stands beside other calls in the same turn."""
    return f"glanced at {key}"


def _preview_delete(name: str) -> dict[str, Any]:
    return {"would_delete": name, "size": 12}


def _preview_boom(note: str) -> str:
    raise RuntimeError(f"cannot preview {note}")


_BODIES = (read_note, write_note, delete_note, pay, label_notes, find_notes, boom, glance)
_SHADOWS: Mapping[str, Callable[..., Any]] = {"delete_note": _preview_delete, "boom": _preview_boom}
_METADATA: Mapping[str, Mapping[str, Any]] = {
    "delete_note": {"reversible": False, "scope": ("notes:write",)},
    "pay": {"reversible": False, "cost": "high", "scope": ("money",)},
    "write_note": {"scope": ("notes:write",)},
}
TOOL_NAMES = tuple(body.__name__ for body in _BODIES)


def suite_tools(spies: Spies, *, coroutines: bool) -> dict[str, SuiteTool]:
    """Make every tool anew, as `def` or as `async def` functions, watched by `spies`."""
    return {
        body.__name__: SuiteTool(
            function=_watched(body, body.__name__, "body", spies, coroutines=coroutines),
            shadow=_watched_shadow(body.__name__, spies, coroutines=coroutines),
            metadata=_METADATA.get(body.__name__, {}),
        )
        for body in _BODIES
    }


def result_of(tool: str, args: Mapping[str, Any]) -> Any:
    """What a tool returns for some arguments, without being seen."""
    body = next(body for body in _BODIES if body.__name__ == tool)
    return body(**args)


def _watched_shadow(name: str, spies: Spies, *, coroutines: bool) -> Callable[..., Any] | None:
    shadow = _SHADOWS.get(name)
    return shadow and _watched(shadow, name, "shadow", spies, coroutines=coroutines)


def _watched(
    body: Callable[..., Any], name: str, kind: Any, spies: Spies, *, coroutines: bool
) -> Callable[..., Any]:
    """The same signature and docstring, seen at each start."""
    import inspect

    signature = inspect.signature(body)

    def note(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        spies.saw(kind, name, bound.arguments)

    @functools.wraps(body)
    def watched(*args: Any, **kwargs: Any) -> Any:
        note(args, kwargs)
        return body(*args, **kwargs)

    @functools.wraps(body)
    async def watched_coroutine(*args: Any, **kwargs: Any) -> Any:
        note(args, kwargs)
        await asyncio.sleep(0)
        return body(*args, **kwargs)

    return watched_coroutine if coroutines else watched
