"""Putting decisions together: the strictest, and what it carries of the others (clauses 15-20)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from adjudge._types import Decision, Obligation, Verdict
from adjudge._values import canonical_json, freeze_object

__all__ = [
    "STRICTNESS",
    "approval_of",
    "checked",
    "combine",
    "distinct",
    "error_marker",
    "in_order",
    "is_time_out",
    "marks_of",
    "strictest",
    "tagged",
    "united",
]

STRICTNESS: Mapping[Verdict, int] = {
    Verdict.ALLOW: 0,
    Verdict.TRANSFORM: 1,
    Verdict.APPROVE_REQUIRED: 2,
    Verdict.DRY_RUN: 3,
    Verdict.DENY: 4,
}
_ERROR = "<rule_error:"


def tagged(layer: str, name: str) -> str:
    """Give a rule's name as it is reported: with its layer, where there is one."""
    return f"{layer}:{name}" if layer else name


def error_marker(layer: str, rule: str, kind: str) -> str:
    """Give the mark that an errored rule leaves in `matched_rules`."""
    return tagged(layer, f"{_ERROR}{rule}:{kind}>")


def marks_of(decision: Decision) -> list[str]:
    """Give the marks of errors among the rules of a decision."""
    return [name for name in decision.matched_rules if _ERROR in name]


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """Give the strictest of some verdicts (clause 16)."""
    return max(verdicts, key=STRICTNESS.__getitem__)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Give each name once, the marks of errors first."""
    once = dict.fromkeys(names)
    return tuple(sorted(once, key=lambda name: _ERROR not in name))


def distinct(texts: Iterable[str]) -> str:
    """Join reasons, each once."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


def united(decisions: Iterable[Decision]) -> tuple[Obligation, ...]:
    """Unite obligations, equal ones once."""
    seen: dict[tuple[str, ...], Obligation] = {}
    for decision in decisions:
        for each in decision.obligations:
            key = (each.id, each.phase, each.on, canonical_json(each.params))
            seen.setdefault(key, each)
    return tuple(seen.values())


def is_time_out(seconds: object) -> bool:
    """Say whether this can bound an asking: a positive finite number (clause 22)."""
    return type(seconds) in (int, float) and 0 < seconds and math.isfinite(seconds)  # type: ignore[operator,arg-type]


def checked(decision: Decision) -> Decision:
    """Give a Decision that users' code made as one of ours: of known kinds, arguments frozen.

    Raises `ValueError` or `TypeError` where it is none.
    """
    verdict, final = Verdict(decision.verdict), decision.effective_args
    if final is not None:
        final = freeze_object(final, where="effective_args")
        # What is to run is not what was proposed, whatever it was called.
        verdict = Verdict.TRANSFORM if verdict is Verdict.ALLOW else verdict
    elif verdict is Verdict.TRANSFORM:
        raise ValueError("a transform has no arguments to run with")
    if decision.timeout_seconds is not None and not is_time_out(decision.timeout_seconds):
        raise ValueError(f"timeout_seconds is {decision.timeout_seconds!r}, no positive number")
    sets = tuple(tuple(names) for names in decision.approver_sets) or ((),)
    return replace(
        decision,
        verdict=verdict,
        matched_rules=tuple(decision.matched_rules),
        effective_args=final,
        approver_sets=sets if verdict is Verdict.APPROVE_REQUIRED else (),
        obligations=tuple(
            replace(each, params=freeze_object(each.params, where=f"obligation {each.id}"))
            for each in decision.obligations
        ),
    )


def approval_of(
    verdict: Verdict, decisions: Iterable[Decision]
) -> tuple[tuple[tuple[str, ...], ...], float | None]:
    """Give the approver sets of all asks, each once, and the shortest time-out, if it is an ask."""
    asks = [each for each in decisions if each.verdict is verdict is Verdict.APPROVE_REQUIRED]
    sets = dict.fromkeys(names for ask in asks for names in ask.approver_sets)
    timeouts = [ask.timeout_seconds for ask in asks if ask.timeout_seconds is not None]
    return tuple(sets), min(timeouts, default=None)


def combine(base: Decision, others: Sequence[Decision]) -> Decision:
    """Give the strictest of a decision and of what stands over it: floors, or what it newly met.

    The arguments are the base's. Over one that lets the body run a stricter one carries the
    obligations of both, and of several asks each must be met; a denial carries only its own. What
    is looser than the base counts for nothing, but errors stay marked and explained.
    """
    if not others:
        return base
    verdict = strictest(each.verdict for each in (base, *others))
    least = STRICTNESS[base.verdict]
    heard = [base, *(each for each in others if STRICTNESS[each.verdict] >= least)]
    givers = [each for each in heard if each.verdict is verdict]
    speakers = [
        each
        for each in (base, *others)
        if each.verdict is verdict or (each is not base and marks_of(each))
    ]
    approver_sets, timeout = approval_of(verdict, heard)
    return Decision(
        verdict=verdict,
        reason=distinct(each.reason for each in speakers),
        matched_rules=in_order(
            [
                *(mark for each in (base, *others) for mark in marks_of(each)),
                *(name for each in heard for name in each.matched_rules),
            ]
        ),
        approver_sets=approver_sets,
        effective_args=None if verdict is Verdict.DENY else base.effective_args,
        timeout_seconds=timeout,
        obligations=united(givers if verdict is Verdict.DENY else heard),
    )
