"""Putting decisions together: the strictest, and what it carries of the others (clauses 15-20)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from adjudge._types import Decision, Obligation, Verdict
from adjudge._values import canonical_json

__all__ = [
    "STRICTNESS",
    "approval_of",
    "combine",
    "distinct",
    "error_marker",
    "in_order",
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


def approval_of(
    verdict: Verdict, decisions: Iterable[Decision]
) -> tuple[tuple[tuple[str, ...], ...], float | None]:
    """Give the approver sets of all asks, each once, and the shortest time-out, if it is an ask."""
    asks = [each for each in decisions if each.verdict is verdict is Verdict.APPROVE_REQUIRED]
    sets = dict.fromkeys(names for ask in asks for names in ask.approver_sets)
    timeouts = [ask.timeout_seconds for ask in asks if ask.timeout_seconds is not None]
    return tuple(sets), min(timeouts, default=None)


def combine(
    base: Decision, met: Sequence[Decision] = (), floors: Sequence[Decision] = ()
) -> Decision:
    """Give the strictest of a decision, of what its rewrite newly met, and of floors.

    The arguments are the base's. A denial carries the obligations of those who deny; a stricter
    verdict over one that lets the body run carries those of all; a matched dry_run, which lets
    nothing run, only those of the previews.
    """
    if not met and not floors:
        return base
    voices = (base, *met, *floors)
    verdict = strictest(each.verdict for each in voices)
    givers = [each for each in voices if each.verdict is verdict]
    narrow = verdict is Verdict.DENY or base.verdict is Verdict.DRY_RUN
    approver_sets, timeout = approval_of(verdict, voices)
    spoken = [each.reason for each in (base, *met) if each.verdict is verdict]
    causes = [floor.reason for floor in floors if floor.reason not in base.reason]
    return Decision(
        verdict=verdict,
        reason=distinct([*spoken, *causes]),
        matched_rules=in_order(name for each in voices for name in each.matched_rules),
        approver_sets=approver_sets,
        effective_args=None if verdict is Verdict.DENY else base.effective_args,
        timeout_seconds=timeout,
        obligations=united(givers if narrow else voices),
    )
