"""A least-privilege policy out of a recorded log: what ran may run, and nothing else is decided.

A rule lets through the calls that were seen, with the values that were seen, and says which they
were. What is wider is asked for, and taken back where it would decide a recorded call otherwise.
What was redacted is never a condition. The log is replayed against the result, which says what it
does not reproduce.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge._types import Verdict
from adjudge.analysis._recorded.boxes import Level, argument_path
from adjudge.analysis._recorded.evidence import Evidence, Group
from adjudge.analysis._recorded.recorded import RecordedCall, RecordedLog
from adjudge.analysis._recorded.replay import difference
from adjudge.analysis._recorded.rule_writing import Levels, rules_of
from adjudge.analysis._recorded.telling import Teller, Untold
from adjudge.errors import AdjudgeError
from adjudge.policy import PolicyBundle, compile_policy

__all__ = ["NothingToSuggest", "Suggestion", "suggest"]

_CONTRADICTED = "decided in several ways, of which the strictest holds"


class NothingToSuggest(AdjudgeError, ValueError):
    """A log in which no call is evidence for a rule."""

    code = "nothing_to_suggest"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested policy, and what there is to say of it.

    `policy` is plain data, which `bundle` is compiled from. `used` counts the calls that its rules
    were made of, `left_out` those that were not, by why. `notes` say what is left open.
    `narrowed` names the tools whose calls were not generalised after all. `reproduced` calls of the
    log come out as recorded; `otherwise` has those that do not, though they should.
    """

    policy: Mapping[str, Any]
    bundle: PolicyBundle
    used: int
    left_out: Mapping[str, int]
    notes: tuple[str, ...]
    narrowed: tuple[str, ...]
    reproduced: int
    otherwise: tuple[tuple[RecordedCall, str], ...]


def suggest(
    records: Iterable[RecordedCall],
    *,
    generalise: Level = "exact",
    levels: Mapping[str, Level] | None = None,
    workspace: str | None = None,
    include_failed: bool = False,
) -> Suggestion:
    """Make a least-privilege policy of the calls that `read_log` gives.

    `generalise` is how far: `exact` lets through the values that were seen, `values` ranges,
    hosts, directories and prefixes around them, `shape` any value of the arguments that were
    there. `levels` sets it for a tool (`pay`) or an argument (`pay:amount`). Paths become
    directories only with a `workspace`, in which they are worked out by their text. With
    `include_failed`, calls that were allowed and failed are let through as well. Raises
    `NothingToSuggest` where no call is evidence for a rule.
    """
    calls = records if isinstance(records, RecordedLog) else list(records)
    evidence = Evidence(include_failed=include_failed)
    left_out: Counter[str] = Counter()
    for call in calls:
        why = evidence.take(call)
        if why is not None:
            left_out[why] += 1
    doubtful = _without_contradictions(evidence)
    if doubtful:
        left_out[_CONTRADICTED] += doubtful
    groups = [group for group in evidence.groups.values() if group.calls]
    if not groups:
        raise NothingToSuggest("The log has no call that was allowed, asked about or previewed.")
    chosen = Levels(generalise, levels or {})
    narrowed: list[str] = []
    while True:
        policy = _policy(groups, evidence, chosen, workspace)
        bundle = compile_policy(policy)
        check = _check(calls, bundle, evidence, workspace)
        tools = dict.fromkeys(call.request.tool for call, _ in check.otherwise)
        exact = [tool for tool in tools if chosen.make_exact(tool)]
        if not exact:
            break
        narrowed += exact
    return Suggestion(
        policy=policy,
        bundle=bundle,
        used=sum(group.count for group in groups),
        left_out=dict(left_out),
        notes=tuple(_notes(groups, evidence, left_out)),
        narrowed=tuple(narrowed),
        reproduced=check.reproduced,
        otherwise=tuple(check.otherwise),
    )


def _without_contradictions(evidence: Evidence) -> int:
    """Leave out calls on which the log has a stricter verdict as well; say how many there were."""
    dropped = 0
    for group in evidence.groups.values():
        for key in list(group.calls):
            if evidence.strictest[key] is not group.verdict:
                del group.calls[key]
                dropped += 1
    return dropped


def _policy(
    groups: Sequence[Group], evidence: Evidence, levels: Levels, workspace: str | None
) -> dict[str, Any]:
    by_tool: dict[str, list[Group]] = {}
    for group in groups:
        by_tool.setdefault(group.tool, []).append(group)
    taken: set[str] = set()
    return {
        "version": 1,
        "defaults": {"on_no_match": "deny", "on_missing_shadow": "deny"},
        "rules": [
            rule
            for tool in sorted(by_tool)
            for rule in rules_of(
                by_tool[tool],
                list(evidence.arguments[tool]),
                levels,
                workspace=workspace,
                taken=taken,
            )
        ],
    }


@dataclass(slots=True)
class _Check:
    reproduced: int = 0
    otherwise: list[tuple[RecordedCall, str]] = field(default_factory=list)


def _check(
    calls: Iterable[RecordedCall], bundle: PolicyBundle, evidence: Evidence, workspace: str | None
) -> _Check:
    """Replay the log: which calls come out otherwise, though nothing else was to be expected."""
    teller, check = Teller(bundle, workspace=workspace), _Check()
    for call in calls:
        if call.verdict is None:
            continue
        answer = teller.tell(call)
        if isinstance(answer, Untold):
            check.otherwise.append((call, str(answer)))
        elif difference(call, answer) is None:
            check.reproduced += 1
        elif answer.verdict is not evidence.expected(call):
            check.otherwise.append((call, f"{call.verdict} becomes {answer.verdict}"))
    return check


def _notes(
    groups: Sequence[Group], evidence: Evidence, left_out: Mapping[str, int]
) -> Iterator[str]:
    """Say what the rules leave open, and why."""
    tools = {group.tool for group in groups}
    for tool in sorted(tools & set(evidence.unknown)):
        names = ", ".join(argument_path(name) for name in sorted(evidence.unknown[tool]))
        yield f"{tool}: {names} held secrets or redacted values, so any value is let through there."
    if any(group.verdict is Verdict.TRANSFORM for group in groups):
        yield (
            "How arguments were rewritten is not in the record, only what became of them; the "
            "transforms write those values for those calls."
        )
    if any(group.verdict is Verdict.APPROVE_REQUIRED for group in groups):
        yield "How long people had to answer is not kept: the guard's own time-out holds."
    if evidence.without_environment:
        yield "Calls came without an environment, so their rules hold in every environment."
    if evidence.without_principal:
        yield "Calls came without a principal, so their rules hold for everybody."
    yield (
        "A rule cannot say that a call has no other arguments than those it names; the tool's "
        "schema does. Injected values, extra context and session values are not looked at."
    )
    if left_out.get("allowed and not completed"):
        yield "Calls that were allowed and did not complete are denied; --include-failed lets them."
