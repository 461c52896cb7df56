"""Read the plain values of a policy: text, bools, numbers, lists, JSON, known keys.

Each function notes what is wrong and gives a harmless stand-in, so that reading goes on and every
problem is found; the stand-ins are never used, because a policy with a problem is refused as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from adjudge._values import FrozenDict, FrozenList
from adjudge.policy._reading.nodes import Entry, Fields, Items, Node, Problems, Scalar, kind_of_node
from adjudge.policy._reading.suggest import did_you_mean, listed

__all__ = [
    "check_key",
    "is_number",
    "read_bool",
    "read_fields_of",
    "read_json_value",
    "read_object",
    "read_scalar",
    "read_text",
    "read_texts",
    "read_whole",
    "read_word",
]


def is_number(value: object) -> bool:
    """Tell whether a value is a number; a bool is none."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def read_scalar(node: Node, problems: Problems) -> tuple[bool, Any]:
    """Give whether the node is a single value that is no surprise, and the value."""
    if not isinstance(node, Scalar):
        return False, None
    if node.surprise is not None:
        problems.add(node.place, node.surprise)
        return False, None
    return True, node.value


def read_text(node: Node, problems: Problems, *, meant: str, empty: bool = False) -> str | None:
    """Read text; None after a problem. `meant` names it in a sentence, `empty` lets it be empty."""
    if isinstance(node, Scalar) and node.surprise is not None:
        problems.add(node.place, node.surprise)
        return None
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        problems.add(
            node.place, f"{meant} is a string, not {kind_of_node(node)}.{_quote_hint(node)}"
        )
        return None
    if not node.value and not empty:
        problems.add(node.place, f"{meant} must not be empty.")
        return None
    return node.value


def _quote_hint(node: Node) -> str:
    if isinstance(node, Scalar) and (is_number(node.value) or isinstance(node.value, bool)):
        shown = str(node.value).lower() if isinstance(node.value, bool) else node.value
        return f' Write "{shown}" if that text is meant.'
    return ""


def read_word(node: Node, words: Iterable[str], problems: Problems, *, meant: str) -> str | None:
    """Read one of several words; None after a problem."""
    known = tuple(words)
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value in known:
        return node.value
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.surprise is None:
        problems.add(
            node.place,
            f'{meant} is one of {listed(known)}, not "{node.value}". '
            + did_you_mean(node.value, known),
        )
    else:
        problems.add(node.place, f"{meant} is one of {listed(known)}, not {kind_of_node(node)}.")
    return None


def read_bool(node: Node, problems: Problems, *, meant: str) -> bool:
    """Read true or false.

    YAML 1.1's words for them (`yes`, `off`) are no surprise where only a bool can stand.
    """
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return node.value
    problems.add(node.place, f"{meant} is true or false, not {kind_of_node(node)}.")
    return False


def read_whole(node: Node, problems: Problems, *, meant: str) -> int | None:
    """Read a whole number; None after a problem. A bool is none, and neither is 1.0."""
    if isinstance(node, Scalar) and node.surprise is not None:
        problems.add(node.place, node.surprise)
        return None
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    problems.add(node.place, f"{meant} is a whole number, not {kind_of_node(node)}.")
    return None


def read_texts(node: Node, problems: Problems, *, meant: str) -> tuple[str, ...]:
    """Read a list of non-empty strings."""
    if not isinstance(node, Items):
        hint = ""
        if isinstance(node, Scalar) and isinstance(node.value, str):
            hint = f' Write ["{node.value}"].'
        problems.add(node.place, f"{meant} is a list of strings, not {kind_of_node(node)}.{hint}")
        return ()
    texts = (read_text(item, problems, meant=f"Each of {meant}") for item in node.items)
    return tuple(text for text in texts if text is not None)


def read_fields_of(
    node: Node, known: Iterable[str], problems: Problems, *, meant: str
) -> dict[str, Entry]:
    """Read a mapping with known keys; an unknown one is a problem that names the nearest."""
    words = tuple(known)
    if not isinstance(node, Fields):
        problems.add(
            node.place, f"{meant} is a mapping with {listed(words)}, not {kind_of_node(node)}."
        )
        return {}
    found: dict[str, Entry] = {}
    for entry in node.entries:
        if entry.key in words:
            found[entry.key] = entry
        else:
            problems.add(
                entry.place,
                f'{meant} has no key "{entry.key}". {did_you_mean(entry.key, words)}',
            )
    return found


def read_json_value(node: Node, problems: Problems) -> Any:
    """Read any JSON value and freeze it."""
    if isinstance(node, Scalar):
        _, value = read_scalar(node, problems)
        return value
    if isinstance(node, Items):
        return FrozenList(read_json_value(item, problems) for item in node.items)
    values: dict[str, Any] = {}
    for entry in node.entries:
        check_key(entry, problems)
        values[entry.key] = read_json_value(entry.value, problems)
    return FrozenDict(values)


def read_object(entry: Entry | None, problems: Problems, *, meant: str) -> FrozenDict | None:
    """Read a JSON object; None where there is none, and after a problem."""
    if entry is None:
        return None
    if not isinstance(entry.value, Fields):
        problems.add(entry.value.place, f"{meant} is a mapping, not {kind_of_node(entry.value)}.")
        return None
    value: FrozenDict = read_json_value(entry.value, problems)
    return value


def check_key(entry: Entry, problems: Problems) -> None:
    """Note a key that may be meant as something else than its text."""
    if entry.surprise is not None:
        problems.add(entry.place, entry.surprise)
