"""`adjudge policy lint` and `policy bundle-id`: whether a policy compiles, and which it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from adjudge._enforcement.approvals import escaped
from adjudge._types import Verdict
from adjudge.cli._output import complain, say, say_json
from adjudge.errors import PolicyCompileError
from adjudge.policy import PolicyBundle, compile_policy, load_policy_file

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommands."""
    policy = commands.add_parser("policy", help="check and identify policies")
    below = policy.add_subparsers(title="commands", metavar="COMMAND", required=True)
    lint = below.add_parser("lint", help="compile policies and sum up their rules")
    lint.add_argument("files", nargs="+", metavar="FILE", help="a policy; - is standard input")
    lint.add_argument("--json", action="store_true", help="print the result as JSON")
    lint.set_defaults(run=_lint)
    identify = below.add_parser("bundle-id", help="print a policy's content address")
    identify.add_argument("file", metavar="FILE", help="a policy; - is standard input")
    identify.set_defaults(run=_bundle_id)


def _load(file: str) -> PolicyBundle:
    """Compile a file, or standard input in any of the formats."""
    if file == "-":
        return compile_policy(sys.stdin.buffer.read())
    return load_policy_file(file)


def _lint(options: argparse.Namespace) -> int:
    reports = [_report(file) for file in options.files]
    if options.json:
        say_json(reports)
    for report in reports:
        _complain_of(report["file"], report["problems"])
        if not options.json and not report["problems"]:
            say(_summary(report))
    return 2 if any(report["problems"] for report in reports) else 0


def _report(file: str) -> dict[str, Any]:
    try:
        bundle = _load(file)
    except PolicyCompileError as error:
        return {"file": file, "problems": list(error.problems)}
    if not bundle.source.rules:
        # A file of comments alone compiles to nothing; that it "passed" would mislead.
        return {"file": file, "problems": ["It has no rules, so there was nothing to check."]}
    return {
        "file": file,
        "problems": [],
        "bundle_id": bundle.id,
        "on_no_match": bundle.defaults.on_no_match,
        "on_missing_shadow": bundle.defaults.on_missing_shadow,
        "rules": [
            {
                "id": rule.id,
                "priority": rule.priority,
                "verdict": rule.verdict,
                "description": rule.description,
            }
            for rule in sorted(bundle.source.rules, key=lambda rule: (-rule.priority, rule.order))
        ],
    }


def _summary(report: dict[str, Any]) -> str:
    count = len(report["rules"])
    rules = "1 rule" if count == 1 else f"{count} rules"
    lines = [f"{report['file']}: {rules}, bundle {report['bundle_id']}"]
    for rule in report["rules"]:
        about = f"  {rule['description']}" if rule["description"] else ""
        lines.append(
            escaped(f"  {rule['priority']:>5}  {rule['verdict']:<16}  {rule['id']}{about}")
        )
    lines.append(f"  no rule matches: {report['on_no_match']}")
    lines.append(f"  irreversible without a preview: {report['on_missing_shadow']}")
    if report["on_no_match"] is Verdict.ALLOW:
        lines.append("  note: calls that no rule speaks of are allowed")
    return "\n".join(lines)


def _complain_of(file: str, problems: Iterable[str]) -> None:
    for problem in problems:
        placed = problem if problem.startswith(f"{file}:") else f"{file}: {problem}"
        complain(escaped(placed))


def _bundle_id(options: argparse.Namespace) -> int:
    try:
        bundle = _load(options.file)
    except PolicyCompileError as error:
        _complain_of(options.file, error.problems)
        return 2
    say(bundle.id)
    return 0
