"""Replay: what another policy would have said of the calls of a recorded log.

Every call that was judged is judged again by `evaluate`; what differs is grouped and counted, with
examples. Where the record lacks what the other policy reads, the call is counted as one that cannot
be told. Nothing runs and nobody is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge._types import Decision, Outcome, Verdict
from adjudge._values import OpaqueValue, canonical_json
from adjudge.analysis._recorded.recorded import RecordedCall
from adjudge.analysis._recorded.telling import Policy, Teller, Untold
from adjudge.policy._verdicts import STRICTNESS

__all__ = ["Change", "ReplayResult", "UntoldCalls", "replay"]

_ASKED_BY_NOW = (Outcome.COMPLETED, Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class Change:
    """Calls of one tool that another policy would decide otherwise, in one and the same way.

    `what` is verdict, arguments or approvers. `direction` is loosened, tightened or changed.
    `examples` are the first calls, each with its new decision.
    """

    tool: str
    what: str
    direction: str
    old_verdict: Verdict
    new_verdict: Verdict
    old_rules: tuple[str, ...]
    new_rules: tuple[str, ...]
    count: int
    examples: tuple[tuple[RecordedCall, Decision], ...]


@dataclass(frozen=True, slots=True)
class UntoldCalls:
    """Calls of one tool of which it cannot be told, for one reason."""

    tool: str
    why: Untold
    count: int
    examples: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What replaying a log came to.

    `judged` calls were judged again; `same` of them come out as recorded. `unjudged` counts those
    that no policy had seen, by the code of their refusal. `bundles` counts the calls of each policy
    that was in force.
    """

    judged: int
    same: int
    changes: tuple[Change, ...]
    untold: tuple[UntoldCalls, ...]
    unjudged: Mapping[str, int]
    bundles: Mapping[str, int]

    @property
    def changed(self) -> int:
        """How many calls would be decided otherwise."""
        return sum(change.count for change in self.changes)

    @property
    def cannot_be_told(self) -> int:
        """How many calls depend on what the record does not have."""
        return sum(group.count for group in self.untold)


@dataclass(slots=True)
class _Group:
    count: int = 0
    examples: list[Any] = field(default_factory=list)

    def add(self, example: Any, most: int) -> None:
        self.count += 1
        if len(self.examples) < most:
            self.examples.append(example)


def replay(
    records: Iterable[RecordedCall],
    policy: Policy,
    *,
    workspace: str | None = None,
    assume_plain: bool = False,
    examples: int = 3,
) -> ReplayResult:
    """Judge the calls of a log, as `read_log` gives it, by another policy.

    With `workspace`, paths that were not resolved then are worked out in it by their text. With
    `assume_plain`, what the record does not say of a call is taken to be empty. `examples` is how
    many calls each group keeps.
    """
    teller = Teller(policy, workspace=workspace, assume_plain=assume_plain)
    judged = same = 0
    changes: dict[tuple[Any, ...], _Group] = {}
    untold: dict[tuple[str, Untold], _Group] = {}
    unjudged: Counter[str] = Counter()
    bundles: Counter[str] = Counter()
    for call in records:
        if call.verdict is None:
            unjudged[call.code or "unfinished"] += 1
            continue
        judged += 1
        bundles[call.bundle_id] += 1
        answer = teller.tell(call)
        if isinstance(answer, Untold):
            untold.setdefault((call.request.tool, answer), _Group()).add(call, examples)
            continue
        what = difference(call, answer)
        if what is None:
            same += 1
            continue
        verdicts = (call.verdict, answer.verdict)
        key = (call.request.tool, what, *verdicts, call.rules, answer.matched_rules)
        changes.setdefault(key, _Group()).add((call, answer), examples)
    return ReplayResult(
        judged,
        same,
        tuple(sorted((_change(key, group) for key, group in changes.items()), key=_rank)),
        tuple(
            UntoldCalls(tool, why, group.count, tuple(group.examples))
            for (tool, why), group in sorted(untold.items(), key=lambda item: -item[1].count)
        ),
        dict(unjudged),
        dict(bundles),
    )


def difference(call: RecordedCall, decision: Decision) -> str | None:
    """Say what a decision changes of a recorded one: verdict, arguments, approvers, or nothing."""
    if decision.verdict is not call.verdict:
        return "verdict"
    if decision.verdict is Verdict.DENY:
        return None
    if not _same_arguments(call.final_args, decision.effective_args):
        return "arguments"
    if decision.verdict is Verdict.APPROVE_REQUIRED and _other_approvers(call, decision):
        return "approvers"
    return None


def _other_approvers(call: RecordedCall, decision: Decision) -> bool:
    """Whether other people would be asked, as far as the record shows who was."""
    if call.edited or not call.asked:
        return False
    sets = decision.approver_sets or ((),)
    if call.outcome in _ASKED_BY_NOW and len(sets) != len(call.asked):
        return True
    return sets[: len(call.asked)] != call.asked


def _same_arguments(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return _plain(one) == _plain(other)


def _plain(value: Any) -> str:
    return canonical_json(_without_opaque(value))


def _without_opaque(value: Any) -> Any:
    """Give a value in which redacted ones are alike: what is not known shows no difference."""
    if isinstance(value, OpaqueValue):
        return None
    if isinstance(value, Mapping):
        return {key: _without_opaque(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_opaque(item) for item in value]
    return value


def _change(key: tuple[Any, ...], group: _Group) -> Change:
    tool, what, old, new, old_rules, new_rules = key
    return Change(
        tool,
        what,
        direction_of(old, new),
        old,
        new,
        old_rules,
        new_rules,
        group.count,
        tuple(group.examples),
    )


def direction_of(old: Verdict, new: Verdict) -> str:
    """Say which way a verdict goes (clause 16)."""
    if STRICTNESS[new] == STRICTNESS[old]:
        return "changed"
    return "loosened" if STRICTNESS[new] < STRICTNESS[old] else "tightened"


def _rank(change: Change) -> tuple[Any, ...]:
    order = ("loosened", "tightened", "changed")
    return (order.index(change.direction), -change.count, change.tool)
