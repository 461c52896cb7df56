"""`adjudge replay`: a recorded log under another policy, and every verdict that would change."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from adjudge._enforcement.approvals import escaped
from adjudge.cli._loading import load_or_refuse
from adjudge.cli._output import complain, say, say_json
from adjudge.cli._progress import progress_of
from adjudge.cli._reading_logs import add_log_options, describe_files, files_to_json, open_logs

if TYPE_CHECKING:
    from adjudge.analysis import Change, RecordedLog, ReplayResult, UntoldCalls
    from adjudge.analysis._wording import RuleNames

__all__ = ["add"]

_USUAL = ("declared", "principal", "step_seq")
_MARKS: Mapping[str, str] = {"loosened": "-", "tightened": "+", "changed": "~"}


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "replay", help="judge the calls of a recorded log by another policy"
    )
    add_log_options(parser)
    parser.add_argument("--policy", required=True, metavar="POLICY", help="the other policy")
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="work out paths that were not resolved by their text, from this folder",
    )
    parser.add_argument(
        "--assume-plain",
        action="store_true",
        help="take what the record does not say of a call to be empty: a plain tool, no injected "
        "values, no extra, no session",
    )
    parser.add_argument(
        "--examples", type=_count, default=2, metavar="N", help="examples per change (default: 2)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_replay)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of calls; write one from 0 up")
    return int(text)


def _replay(options: argparse.Namespace) -> int:
    from adjudge.analysis import replay
    from adjudge.analysis._wording import RuleNames

    policy = load_or_refuse(options.policy)
    with progress_of(options.logs[-1], doing="replaying") as progress:
        log = open_logs(options, progress)
        result = replay(
            log,
            policy,
            workspace=options.workspace,
            assume_plain=options.assume_plain,
            examples=options.examples,
        )
    names = RuleNames(policy)
    if options.json:
        say_json(_to_json(log, result, policy.id, names))
    else:
        say(escaped("\n".join(_report(log, result, options, names)), lines=True))
    if result.judged == 0:
        complain(
            "adjudge: the log has no call that a policy judged, so there was nothing to replay."
        )
        return 2
    torn = any(file.torn for file in log.files)
    return 1 if result.changes or result.untold or torn else 0


def _report(
    log: RecordedLog, result: ReplayResult, options: argparse.Namespace, names: RuleNames
) -> list[str]:
    lines = describe_files(log)
    lines.append(
        f"{_calls(result.judged)} judged again by {options.policy}: {result.same} as recorded, "
        f"{result.changed} changed, {result.cannot_be_told} cannot be told"
    )
    if result.unjudged:
        codes = ", ".join(f"{code} {count}" for code, count in sorted(result.unjudged.items()))
        lines.append(f"no policy had judged {_calls(sum(result.unjudged.values()))}: {codes}")
    for change in result.changes:
        lines += ["", *_change_in_words(change, names)]
    for group in result.untold:
        lines += ["", *_untold_in_words(group)]
    return lines


def _change_in_words(change: Change, names: RuleNames) -> list[str]:
    from adjudge.analysis._recorded.recorded import RecordedCall
    from adjudge.analysis._wording import as_json, call_in_words, cut

    def example(call: RecordedCall) -> str:
        return f"    {call.place}  {call_in_words(call.request, usual=_USUAL)}"

    what = "" if change.what == "verdict" else f"  other {change.what}"
    verdicts = f"{change.old_verdict} -> {change.new_verdict}{what}"
    lines = [
        f"{_MARKS[change.direction]} {change.direction}  {verdicts}  {change.tool}  "
        + _calls(change.count),
        f"    was: {', '.join(change.old_rules) or 'nothing'}",
        f"    now: {names.in_words(change.new_rules)}",
    ]
    for call, decision in change.examples:
        lines.append(example(call))
        if change.what == "arguments":
            from adjudge._record.format import to_json

            for word, args in (("was", call.final_args), ("now", decision.effective_args)):
                lines.append(f"      {word} {cut(as_json(to_json(args)))}")
        if change.what == "approvers":
            lines.append(f"      was {_sets(call.asked)}, now {_sets(decision.approver_sets)}")
    return lines


def _untold_in_words(group: UntoldCalls) -> list[str]:
    return [
        f"? cannot be told  {group.tool}  {_calls(group.count)}: {group.why}",
        *(f"    {call.place}" for call in group.examples),
    ]


def _sets(sets: tuple[tuple[str, ...], ...]) -> str:
    return " and ".join(" or ".join(names) or "anybody" for names in sets) or "anybody"


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def _to_json(
    log: RecordedLog, result: ReplayResult, policy_id: str, names: RuleNames
) -> dict[str, Any]:
    from adjudge._record.format import to_json
    from adjudge.analysis._wording import call_to_json

    return {
        "files": files_to_json(log),
        "bundle_id": policy_id,
        "recorded_bundles": dict(result.bundles),
        "judged": result.judged,
        "same": result.same,
        "changed": result.changed,
        "cannot_be_told": result.cannot_be_told,
        "unjudged": dict(result.unjudged),
        "changes": [
            {
                "tool": change.tool,
                "what": change.what,
                "direction": change.direction,
                "old": {"verdict": change.old_verdict, "rules": change.old_rules},
                "new": {"verdict": change.new_verdict, "rules": names.to_json(change.new_rules)},
                "count": change.count,
                "examples": [
                    {
                        "place": str(call.place),
                        "call": call_to_json(call.request),
                        "edited": call.edited,
                        "old_args": to_json(call.final_args),
                        "new_args": to_json(decision.effective_args),
                        "old_approvers": call.asked,
                        "new_approvers": decision.approver_sets,
                    }
                    for call, decision in change.examples
                ],
            }
            for change in result.changes
        ],
        "untold": [
            {
                "tool": group.tool,
                "rule": group.why.rule,
                "path": group.why.path,
                "count": group.count,
                "examples": [str(call.place) for call in group.examples],
            }
            for group in result.untold
        ],
    }
