"""What the contract of ledgers does to a ledger: one entry, the values in it, and the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from adjudge import ApprovalDecision, LedgerError, Principal
from adjudge.integration import EntryState, FrozenDict, LedgerEntry

__all__ = [
    "ENDS",
    "ENTRY",
    "GRANT",
    "LIMIT",
    "NOW",
    "REFUSAL",
    "RESULT",
    "VALUES",
    "claim",
    "settle",
    "take",
    "winner_of",
]

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
"""The guard's clock in these tests; `ENTRY` expires a minute later."""
LIMIT = NOW + timedelta(seconds=60)
ENTRY = LedgerEntry(
    id="e1",
    tool="pay",
    namespace=None,
    args=FrozenDict({"to": "x"}),
    digest="0" * 64,
    principal=Principal("user", "eve"),
    occurrence="run/1",
    policy_id="p",
    matched_rules=("r0",),
    approver_sets=(),
    correlation_id="c",
    seq=0,
    call_id="c1",
    attempt=1,
    environment=None,
    workspace=".",
    extra=FrozenDict(),
    session=None,
    injected=FrozenDict(),
    expires_at=LIMIT,
    state=EntryState.PAUSED,
    run="run",
    reason="big",
    final_args=FrozenDict({"to": "y"}),
)
"""A call that waits for a person; tests change what they are about."""
GRANT = ApprovalDecision(True, "ana", "fine")
REFUSAL = ApprovalDecision(False, "bo", "no")
RESULT = FrozenDict({"value": "paid"})

VALUES = FrozenDict(
    {
        "exact": Decimal("1.10"),
        "whole": 1,
        "float": 1.0,
        "flag": True,
        "none": None,
        "$decimal": "no tag",
        "text": "é \U0001f980 \0 '\"\\ %s",
        "nested": FrozenDict({"deep": FrozenDict({"n": 2**70})}),
    }
)
ENDS: Mapping[EntryState, dict[str, Any]] = {
    EntryState.CLAIMED: {"holder": "somebody"},
    EntryState.FINISHED: {"outcome": "denied"},
}
"""What an entry in that state has besides."""


def claim(
    ledger: Any,
    id: str = "e1",
    *,
    expected: EntryState = EntryState.PAUSED,
    holder: str = "h",
    now: datetime = NOW,
) -> LedgerEntry | None:
    """Claim an entry."""
    claimed: LedgerEntry | None = ledger.claim(id, expected=expected, holder=holder, now=now)
    return claimed


def settle(
    ledger: Any,
    id: str = "e1",
    *,
    holder: str = "h",
    state: EntryState = EntryState.FINISHED,
    grants: tuple[str, ...] = (),
    outcome: str | None = "completed",
    result: Mapping[str, Any] | None = None,
) -> bool:
    """Settle an entry."""
    moved: bool = ledger.settle(
        id, holder=holder, state=state, grants=grants, outcome=outcome, result=result
    )
    return moved


def take(ledger: Any, step: str, id: str, name: str) -> bool:
    """Try one step in a competitor's name; whether it won."""
    if step == "add":
        try:
            ledger.add(replace(ENTRY, id=id, tool=name))
        except LedgerError:
            return False
        return True
    if step == "answer":
        return ledger.answer(id, ApprovalDecision(True, name), now=NOW) is not None
    if step == "claim":
        return claim(ledger, id, holder=name) is not None
    expired: bool = ledger.expire(id, now=LIMIT)
    return expired


def winner_of(entry: LedgerEntry, step: str, name: str) -> str | None:
    """Say who has won a step, as the entry tells it; an expiry names nobody."""
    if step == "add":
        return entry.tool
    if step == "answer":
        return ", ".join(answer.approver for answer in entry.answers)
    if step == "claim":
        return entry.holder
    return name if entry.outcome == "expired" else None
