"""The SDK's list of what waits, beside the ledger's: which item is which entry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from adjudge import (
    ActionRequest,
    AdjudgeError,
    ArgumentsRefused,
    Decision,
    ExecutionContext,
    PendingApproval,
    Principal,
    Verdict,
)
from adjudge.integration import EMPTY, LedgerEntry, canonical_json, parse_arguments

__all__ = ["HELD_BACK", "Item", "held_back", "is_held_back", "paired"]

Item: TypeAlias = Any
"""A `ToolApprovalItem`, or the event of a realtime session: a call id, a name and arguments."""

HELD_BACK = "unread:"
"""How the id of a call begins that waits for nobody, because its arguments cannot be read."""

_NOBODY = Principal("user", "unknown")


def paired(
    items: Iterable[Item], entries: Iterable[LedgerEntry]
) -> list[tuple[Item, LedgerEntry | None]]:
    """Give each item with its entry, each entry once; ids alone may repeat (fault X037).

    Exact arguments tell equal ids apart. Validation may have changed them, so what is left is
    paired where there is only one way to do it.
    """
    items, left = list(items), list(entries)
    found: dict[int, LedgerEntry] = {}
    for place, item in enumerate(items):
        exact = [e for e in left if _same_call(item, e) and _same_arguments(item, e)]
        if exact:
            found[place] = exact[0]
            left.remove(exact[0])
    for place, item in enumerate(items):
        alike = [entry for entry in left if _same_call(item, entry)]
        rivals = [at for at in range(len(items)) if at not in found and _alike(items[at], item)]
        if rivals == [place] and len(alike) == 1:
            found[place] = alike[0]
            left.remove(alike[0])
    return [(item, found.get(place)) for place, item in enumerate(items)]


def is_held_back(item: Item) -> bool:
    """Whether the SDK lets a call wait whose arguments are no JSON object, whatever the policy."""
    if not _is_function_call(item):
        return False
    text = _arguments_of(item)
    try:
        parse_arguments(text or "")
    except ArgumentsRefused:
        return False
    except AdjudgeError:
        return bool(text)
    return False


def held_back(item: Item) -> PendingApproval:
    """Give what a person is shown of such a call."""
    reason = "its arguments cannot be read; when the run goes on, the model is told so"
    decision = Decision(Verdict.DENY, reason, ("<invalid_arguments>",))
    request = ActionRequest(_name_of(item) or "", EMPTY, None, ExecutionContext(_NOBODY))
    return PendingApproval(
        f"{HELD_BACK}{item.call_id}", request, decision, "", call_id=item.call_id
    )


def _same_call(item: Item, entry: LedgerEntry) -> bool:
    return (item.call_id, _name_of(item)) == (entry.call_id, entry.tool)


def _alike(one: Item, other: Item) -> bool:
    return (one.call_id, _name_of(one)) == (other.call_id, _name_of(other))


def _same_arguments(item: Item, entry: LedgerEntry) -> bool:
    try:
        return canonical_json(parse_arguments(_arguments_of(item) or "{}")) == canonical_json(
            entry.args
        )
    except AdjudgeError:
        return False


def _is_function_call(item: Item) -> bool:
    raw = getattr(item, "raw_item", None)
    if raw is None:
        return True  # a realtime session has no other
    kind = raw.get("type") if isinstance(raw, dict) else getattr(raw, "type", None)
    return kind == "function_call"


def _name_of(item: Item) -> str | None:
    tool = getattr(item, "tool", None)
    name: str | None = item.name if tool is None else tool.name
    return name


def _arguments_of(item: Item) -> str | None:
    text: str | None = item.arguments
    return text
