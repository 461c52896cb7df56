"""`adjudge policy lint`: whether policies compile, and what their rules are."""

from __future__ import annotations

import argparse
from typing import Any

from adjudge._enforcement.approvals import escaped
from adjudge._types import Verdict
from adjudge.cli._loading import complain_of, load
from adjudge.cli._output import say, say_json
from adjudge.errors import PolicyCompileError

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommand."""
    lint = commands.add_parser("lint", help="compile policies and sum up their rules")
    lint.add_argument("files", nargs="+", metavar="FILE", help="a policy; - is standard input")
    lint.add_argument("--json", action="store_true", help="print the result as JSON")
    lint.set_defaults(run=_lint)


def _lint(options: argparse.Namespace) -> int:
    reports = [_report(file) for file in options.files]
    if options.json:
        say_json(reports)
    for report in reports:
        complain_of(report["file"], report["problems"])
        if not options.json and not report["problems"]:
            say(_summary(report))
    return 2 if any(report["problems"] for report in reports) else 0


def _report(file: str) -> dict[str, Any]:
    try:
        bundle = load(file)
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
