"""What the suite's tools answer, apart from who calls them: pure functions of the arguments."""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["RESULTS", "found_notes", "preview_boom", "preview_delete_note"]


def found_notes(word: str) -> list[dict[str, Any]]:
    """Give a result that is no text."""
    return [{"name": "plan", "hits": 2, "score": 0.5}, {"name": word, "hits": 0, "score": None}]


def _boom(note: str) -> str:
    raise ValueError(f"no such note: {note}")


def _label_notes(names: list[str], labels: dict[str, str]) -> str:
    pairs = ", ".join(f"{key}={value}" for key, value in labels.items())
    return f"labelled {', '.join(names)} with {pairs}"


def preview_delete_note(name: str) -> dict[str, Any]:
    """Say what deleting would do."""
    return {"would_delete": name, "size": 12}


def preview_boom(note: str) -> dict[str, Any]:
    """Fail to say anything."""
    raise RuntimeError(f"cannot preview {note}")


RESULTS: Mapping[str, Callable[..., Any]] = {
    "read_note": lambda name: f"the note {name} says hello",
    "write_note": lambda name, text: f"wrote {len(text)} characters to {name}",
    "delete_note": lambda name: f"deleted {name}",
    "pay": lambda to, amount, currency: f"paid {amount} {currency} to {to}",
    "label_notes": _label_notes,
    "find_notes": found_notes,
    "boom": _boom,
    "leave": lambda: "left",
    "glance": lambda key: f"glanced at {key}",
}
