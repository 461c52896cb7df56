"""`adjudge policy diff`: what two policies decide differently, with a call for each change."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from adjudge._enforcement.approvals import escaped
from adjudge.cli._loading import load_or_refuse
from adjudge.cli._output import say, say_json
from adjudge.cli._progress import progress_of
from adjudge.cli._refusing import Refused

if TYPE_CHECKING:
    from adjudge.analysis import Difference, PolicyDifference
    from adjudge.analysis._wording import RuleNames
    from adjudge.policy import PolicyBundle

__all__ = ["add"]

_MARKS: Mapping[str, str] = {"loosened": "-", "tightened": "+", "changed": "~"}
_MOST_SHOWN = 40
_USUAL = ("principal", "workspace")


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("diff", help="say what two policies decide differently")
    parser.add_argument("old", metavar="A", help="a policy")
    parser.add_argument("new", metavar="B", help="the policy that is to take its place")
    parser.add_argument(
        "--max-calls",
        type=_count,
        default=30_000,
        metavar="N",
        help="how many calls to try at most (default: 30000)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_diff)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of calls; write one from 1 up")
    return int(text)


def _diff(options: argparse.Namespace) -> int:
    from adjudge.analysis import diff
    from adjudge.analysis._wording import RuleNames

    old, new = _loaded(options.old), _loaded(options.new)
    with progress_of(options.new, doing="comparing") as progress:
        found = diff(old, new, max_calls=options.max_calls, progress=progress)
    names = (RuleNames(old), RuleNames(new))
    if options.json:
        say_json(_to_json(found, names))
    else:
        say(escaped("\n".join(_report(found, names)), lines=True))
    return 0 if found.same else 1


def _loaded(file: str) -> PolicyBundle:
    bundle = load_or_refuse(file)
    if not bundle.source.rules:
        raise Refused(
            "nothing_checked", ["It has no rules, so there is nothing to compare."], file=file
        )
    return bundle


def _report(found: PolicyDifference, names: tuple[RuleNames, RuleNames]) -> list[str]:
    if found.same:
        return [_nothing_found(found)]
    lines = [_counted(found), ""]
    shown = [each for each in found.differences if not _says_no_more(each, found)]
    for difference in shown[:_MOST_SHOWN]:
        lines += _difference_in_words(difference, names)
    left_out = len(found.differences) - len(shown[:_MOST_SHOWN])
    if left_out:
        lines.append(f"and {left_out} more, of rules in error above all; --json has all of them")
    lines += ["", _how_sure(found)]
    return lines


def _says_no_more(difference: Difference, found: PolicyDifference) -> bool:
    """Whether this is about a rule in error, and a plain call shows the same change."""

    def kind(each: Difference) -> tuple[Any, ...]:
        return (each.old.verdict, each.new.verdict, each.what)

    return difference.in_error and any(
        kind(each) == kind(difference) for each in found.differences if not each.in_error
    )


def _nothing_found(found: PolicyDifference) -> str:
    if found.proved:
        return "no difference: the rules are the same, so every call is decided alike"
    return f"no difference found; {_how_sure(found)}"


def _how_sure(found: PolicyDifference) -> str:
    tools = ", ".join("tools that no rule names" if t is None else t for t in found.tools[:5])
    more = f" and {len(found.tools) - 5} more" if len(found.tools) > 5 else ""
    text = (
        f"{found.tried} calls tried of the tools about which the rules differ ({tools}{more}). "
        "Each change shown is certain; there can be others that no call tried shows."
    )
    if found.not_tried:
        text += f" {found.not_tried} tools were not looked at: raise --max-calls."
    return text


def _counted(found: PolicyDifference) -> str:
    counts = [
        f"{sum(each.direction == direction for each in found.differences)} {direction}"
        for direction in _MARKS
        if any(each.direction == direction for each in found.differences)
    ]
    return ", ".join(counts)


def _difference_in_words(difference: Difference, names: tuple[RuleNames, RuleNames]) -> list[str]:
    from adjudge.analysis._wording import call_in_words

    old, new = difference.old, difference.new
    call = call_in_words(difference.call, usual=_USUAL)
    lines = [
        f"{_MARKS[difference.direction]} {old.verdict} -> {new.verdict}  {call}",
        f"    {names[0].in_words(old.matched_rules)} -> {names[1].in_words(new.matched_rules)}",
    ]
    if difference.what == ("verdict",):
        return lines
    return lines + [
        f"    other {name}: {_part(old, name)} -> {_part(new, name)}" for name in difference.what
    ]


def _part(decision: Any, name: str) -> str:
    from adjudge._record.format import to_json
    from adjudge.analysis._wording import as_json, cut

    if name == "arguments":
        final = decision.effective_args
        return "as proposed" if final is None else cut(as_json(to_json(final)))
    if name == "approvers":
        return " and ".join(" or ".join(each) or "anybody" for each in decision.approver_sets)
    if name == "timeout_seconds":
        seconds = decision.timeout_seconds
        return "none" if seconds is None else f"{seconds:g} s"
    return ", ".join(each.id for each in decision.obligations) or "none"


def _to_json(found: PolicyDifference, names: tuple[RuleNames, RuleNames]) -> dict[str, Any]:
    return {
        "same": found.same,
        "proved": found.proved,
        "calls_tried": found.tried,
        "tools": found.tools,
        "tools_not_tried": found.not_tried,
        "differences": [
            {
                "direction": difference.direction,
                "what": difference.what,
                "call": _call(difference),
                "old": _decision(difference.old, names[0]),
                "new": _decision(difference.new, names[1]),
                "calls": difference.count,
            }
            for difference in found.differences
        ],
    }


def _call(difference: Difference) -> dict[str, Any]:
    from adjudge.analysis._wording import call_to_json

    return call_to_json(difference.call)


def _decision(decision: Any, names: RuleNames) -> dict[str, Any]:
    from adjudge._record.format import to_json

    return {
        "verdict": decision.verdict,
        "rules": names.to_json(decision.matched_rules),
        "reason": decision.reason,
        "args": to_json(decision.effective_args),
        "approvers": decision.approver_sets,
        "timeout_seconds": decision.timeout_seconds,
        "obligations": [each.id for each in decision.obligations],
    }
