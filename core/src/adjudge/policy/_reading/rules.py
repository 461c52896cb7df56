"""Read one rule: its match, its verdict and what belongs to that verdict."""

from __future__ import annotations

import math
from typing import Literal

from adjudge._types import Obligation, Verdict
from adjudge._values import EMPTY
from adjudge.policy._model import Always, Edit, Match, Place, Rule
from adjudge.policy._reading.edits import read_edits
from adjudge.policy._reading.matches import MatchReader
from adjudge.policy._reading.nodes import Entry, Fields, Items, Node, Problems, Scalar, kind_of_node
from adjudge.policy._reading.suggest import did_you_mean, listed
from adjudge.policy._reading.values import (
    is_number,
    read_fields_of,
    read_object,
    read_text,
    read_texts,
    read_whole,
    read_word,
)

__all__ = ["read_rule", "read_verdict"]

_KEYS = (
    "id",
    "priority",
    "description",
    "match",
    "decision",
    "verdict",
    "reason",
    "approvers",
    "timeout_seconds",
    "transform",
    "obligations",
)
_OF_OBLIGATION = ("id", "phase", "params", "on")


def read_verdict(node: Node, problems: Problems, *, meant: str) -> Verdict | None:
    """Read one of the five verdicts, in any case; None after a problem."""
    words = tuple(verdict.value for verdict in Verdict)
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.surprise is None:
        if node.value.lower() in words:
            return Verdict(node.value.lower())
        problems.add(
            node.place,
            f'{meant} is one of {listed(words)}, not "{node.value}". '
            + did_you_mean(node.value, words),
        )
    else:
        problems.add(node.place, f"{meant} is one of {listed(words)}, not {kind_of_node(node)}.")
    return None


def read_rule(node: Fields, order: int, matches: MatchReader, problems: Problems) -> Rule:
    """Read the rule that stands at this position of the file."""
    problems.name_rule(node.place.path, f"rule_{order}")
    rule_id = _read_id(node, order, problems)
    problems.name_rule(node.place.path, rule_id)
    fields = read_fields_of(node, _KEYS, problems, meant="A rule")
    verdict = _read_rule_verdict(fields, problems)
    _refuse_misplaced(fields, verdict, node.place, problems)
    return Rule(
        id=rule_id,
        priority=_optional_priority(fields.get("priority"), problems),
        order=order,
        description=_optional_text(fields.get("description"), problems, "description"),
        match=_read_match(fields.get("match"), node.place, matches, problems),
        verdict=verdict or Verdict.DENY,
        reason=_optional_text(fields.get("reason"), problems, "reason"),
        approvers=_optional_texts(fields.get("approvers"), problems),
        timeout_seconds=_optional_timeout(fields.get("timeout_seconds"), problems),
        edits=_optional_edits(fields.get("transform"), problems),
        obligations=_read_obligations(fields.get("obligations"), problems),
        place=node.place,
    )


def _read_id(node: Fields, order: int, problems: Problems) -> str:
    entry = node.get("id")
    fallback = f"rule_{order}"
    if entry is None:
        return fallback
    rule_id = read_text(entry.value, problems, meant="id")
    if rule_id is None:
        return fallback
    if rule_id.startswith("<") or not rule_id.isprintable():
        problems.add(
            entry.value.place,
            'An id does not begin with "<", which marks what Adjudge itself says, and holds no '
            "control characters.",
        )
        return fallback
    return rule_id


def _read_rule_verdict(fields: dict[str, Entry], problems: Problems) -> Verdict | None:
    """Read `decision` or `verdict`; a rule that states none denies."""
    decision, verdict = fields.get("decision"), fields.get("verdict")
    if decision is not None and verdict is not None:
        problems.add(
            verdict.place, "decision and verdict are the same thing; write one of the two."
        )
    entry = decision or verdict
    if entry is None:
        return Verdict.DENY
    return read_verdict(entry.value, problems, meant=entry.key)


def _refuse_misplaced(
    fields: dict[str, Entry], verdict: Verdict | None, place: Place, problems: Problems
) -> None:
    """Refuse what a rule of this verdict would never use, since another verdict was meant."""
    if verdict is None:
        return
    if verdict is not Verdict.APPROVE_REQUIRED:
        for name in ("approvers", "timeout_seconds"):
            if name in fields:
                problems.add(
                    fields[name].place,
                    f"{name} belongs to approve_required, and this rule's verdict is {verdict}; "
                    "remove it or ask for approval.",
                )
    if verdict is not Verdict.TRANSFORM and "transform" in fields:
        problems.add(
            fields["transform"].place,
            f"A transform belongs to the verdict transform, and this rule's is {verdict}; remove "
            "it or write verdict: transform.",
        )
    if verdict is Verdict.TRANSFORM and "transform" not in fields:
        problems.add(
            place,
            "The verdict is transform, but no transform says what to rewrite; add for example "
            "transform: {path: args.limit, set: 10}.",
        )


def _read_match(
    entry: Entry | None, place: Place, matches: MatchReader, problems: Problems
) -> Match:
    if entry is not None:
        return matches.read(entry.value)
    problems.add(place, "The rule has no match. A rule for everything is written match: always.")
    return Always()


def _optional_priority(entry: Entry | None, problems: Problems) -> int:
    return 0 if entry is None else read_whole(entry.value, problems, meant="priority") or 0


def _optional_text(entry: Entry | None, problems: Problems, meant: str) -> str:
    return "" if entry is None else read_text(entry.value, problems, meant=meant, empty=True) or ""


def _optional_texts(entry: Entry | None, problems: Problems) -> tuple[str, ...]:
    return () if entry is None else read_texts(entry.value, problems, meant="approvers")


def _optional_edits(entry: Entry | None, problems: Problems) -> tuple[Edit, ...]:
    return () if entry is None else read_edits(entry.value, problems)


def _optional_timeout(entry: Entry | None, problems: Problems) -> float | None:
    if entry is None:
        return None
    node = entry.value
    if isinstance(node, Scalar) and node.surprise is not None:
        problems.add(node.place, node.surprise)
        return None
    value = node.value if isinstance(node, Scalar) else None
    seconds = _as_float(value) if is_number(value) else math.nan
    if not 0 < seconds < math.inf:
        problems.add(
            node.place,
            f"timeout_seconds is a positive number of seconds, not {kind_of_node(node)}.",
        )
        return None
    return seconds


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # is_number has seen it
    except OverflowError:
        return math.inf


def _read_obligations(entry: Entry | None, problems: Problems) -> tuple[Obligation, ...]:
    if entry is None or (isinstance(entry.value, Scalar) and entry.value.value is None):
        return ()
    if not isinstance(entry.value, Items):
        problems.add(
            entry.value.place,
            f"obligations is a list of ids or of mappings, not {kind_of_node(entry.value)}.",
        )
        return ()
    return tuple(_read_obligation(node, problems) for node in entry.value.items)


def _read_obligation(node: Node, problems: Problems) -> Obligation:
    if not isinstance(node, Fields):
        return Obligation(read_text(node, problems, meant="An obligation") or "")
    fields = read_fields_of(node, _OF_OBLIGATION, problems, meant="An obligation")
    phase: Literal["pre", "post"] = "post"
    on: Literal["execute", "always"] = "execute"
    if (
        "phase" in fields
        and read_word(fields["phase"].value, ("pre", "post"), problems, meant="phase") == "pre"
    ):
        phase = "pre"
    if (
        "on" in fields
        and read_word(fields["on"].value, ("execute", "always"), problems, meant="on") == "always"
    ):
        on = "always"
    return Obligation(
        id=_read_obligation_id(fields.get("id"), node, problems),
        phase=phase,
        params=read_object(fields.get("params"), problems, meant="params") or EMPTY,
        on=on,
    )


def _read_obligation_id(entry: Entry | None, node: Node, problems: Problems) -> str:
    if entry is not None:
        return read_text(entry.value, problems, meant="id") or ""
    problems.add(node.place, "An obligation has an id, the name of its handler.")
    return ""
