"""The suite's own tools: real typed functions, plain and coroutine, whose every start is seen.

They are what a user would write for a desk of notes and money. A driver makes its framework's tool
objects out of `function`, with nothing but the function's own name, signature and docstring. Each
is written out twice, because a wrapped or generated function is not what frameworks meet.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge_conformance._results import (
    RESULTS,
    found_notes,
    preview_boom,
    preview_delete_note,
)
from adjudge_conformance.spies import Spies

__all__ = ["SIBLING", "TOOL_NAMES", "SuiteTool", "suite_tools"]

SIBLING = "glance"
TOOL_NAMES = tuple(RESULTS)

_METADATA: Mapping[str, Mapping[str, Any]] = {
    "delete_note": {"reversible": False, "scope": ("notes:write",)},
    "pay": {"reversible": False, "cost": "high", "scope": ("money",)},
    "write_note": {"scope": ("notes:write",)},
}


@dataclass(frozen=True, slots=True)
class SuiteTool:
    """One tool: its function for the framework, and what only a guard needs to know of it."""

    function: Callable[..., Any]
    shadow: Callable[..., Any] | None
    metadata: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name under which the model proposes it."""
        return str(self.function.__name__)


def suite_tools(spies: Spies, *, coroutines: bool) -> dict[str, SuiteTool]:
    """Make every tool anew, as `def` or as `async def` functions, watched by `spies`."""
    functions = _coroutine_tools(spies) if coroutines else _plain_tools(spies)
    shadows = _coroutine_shadows(spies) if coroutines else _plain_shadows(spies)
    made = {function.__name__: function for function in functions}
    return {
        name: SuiteTool(made[name], shadows.get(name), _METADATA.get(name, {}))
        for name in TOOL_NAMES
    }


def _plain_tools(spies: Spies) -> tuple[Callable[..., Any], ...]:
    def ran(tool: str, **args: Any) -> str:
        spies.saw("body", tool, args)
        result: str = RESULTS[tool](**args)
        return result

    def read_note(name: str) -> str:
        """Read a note."""
        return ran("read_note", name=name)

    def write_note(name: str, text: str) -> str:
        """Write a note."""
        return ran("write_note", name=name, text=text)

    def delete_note(name: str) -> str:
        """Delete a note for good."""
        return ran("delete_note", name=name)

    def pay(to: str, amount: float = 25.5, currency: str = "EUR") -> str:
        """Pay somebody."""
        return ran("pay", to=to, amount=amount, currency=currency)

    def label_notes(names: list[str], labels: dict[str, str]) -> str:
        """Put labels on notes."""
        return ran("label_notes", names=names, labels=labels)

    def find_notes(word: str) -> list[dict[str, Any]]:
        """Find the notes that hold a word."""
        spies.saw("body", "find_notes", {"word": word})
        return found_notes(word)

    def boom(note: str) -> str:
        """Fail, always."""
        return ran("boom", note=note)

    def leave() -> str:
        """Leave the run, which plain code cannot."""
        raise RuntimeError("there is no event loop in which a run could be cancelled")

    def glance(key: str) -> str:
        """Look something up."""
        return ran("glance", key=key)

    return (read_note, write_note, delete_note, pay, label_notes, find_notes, boom, leave, glance)


def _coroutine_tools(spies: Spies) -> tuple[Callable[..., Any], ...]:
    async def ran(tool: str, **args: Any) -> str:
        spies.saw("body", tool, args)
        await asyncio.sleep(0)
        result: str = RESULTS[tool](**args)
        return result

    async def read_note(name: str) -> str:
        """Read a note."""
        return await ran("read_note", name=name)

    async def write_note(name: str, text: str) -> str:
        """Write a note."""
        return await ran("write_note", name=name, text=text)

    async def delete_note(name: str) -> str:
        """Delete a note for good."""
        return await ran("delete_note", name=name)

    async def pay(to: str, amount: float = 25.5, currency: str = "EUR") -> str:
        """Pay somebody."""
        return await ran("pay", to=to, amount=amount, currency=currency)

    async def label_notes(names: list[str], labels: dict[str, str]) -> str:
        """Put labels on notes."""
        return await ran("label_notes", names=names, labels=labels)

    async def find_notes(word: str) -> list[dict[str, Any]]:
        """Find the notes that hold a word."""
        spies.saw("body", "find_notes", {"word": word})
        await asyncio.sleep(0)
        return found_notes(word)

    async def boom(note: str) -> str:
        """Fail, always."""
        return await ran("boom", note=note)

    async def leave() -> str:
        """Leave the run: whatever the event loop is at is cancelled, this body included."""
        spies.saw("body", "leave", {})
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(0)
        return RESULTS["leave"]()  # type: ignore[no-any-return]

    async def glance(key: str) -> str:
        """Look something up."""
        return await ran("glance", key=key)

    return (read_note, write_note, delete_note, pay, label_notes, find_notes, boom, leave, glance)


def _plain_shadows(spies: Spies) -> dict[str, Callable[..., Any]]:
    def would_delete_note(name: str) -> dict[str, Any]:
        """Say what deleting a note would do."""
        spies.saw("shadow", "delete_note", {"name": name})
        return preview_delete_note(name)

    def would_boom(note: str) -> dict[str, Any]:
        """Fail to say what would happen."""
        spies.saw("shadow", "boom", {"note": note})
        return preview_boom(note)

    return {"delete_note": would_delete_note, "boom": would_boom}


def _coroutine_shadows(spies: Spies) -> dict[str, Callable[..., Any]]:
    async def would_delete_note(name: str) -> dict[str, Any]:
        """Say what deleting a note would do."""
        spies.saw("shadow", "delete_note", {"name": name})
        return preview_delete_note(name)

    async def would_boom(note: str) -> dict[str, Any]:
        """Fail to say what would happen."""
        spies.saw("shadow", "boom", {"note": note})
        return preview_boom(note)

    return {"delete_note": would_delete_note, "boom": would_boom}
