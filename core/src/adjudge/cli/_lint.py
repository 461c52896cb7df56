"""`adjudge policy lint`: whether policies compile, what their rules are, and what is doubtful."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from adjudge._enforcement.approvals import escaped
from adjudge._types import Verdict
from adjudge.cli._loading import load
from adjudge.cli._output import say, say_json
from adjudge.cli._refusing import complain_of, refuse_usage
from adjudge.cli._terminal import painted
from adjudge.errors import PolicyCompileError

if TYPE_CHECKING:
    from adjudge.analysis import Finding
    from adjudge.policy import PolicyBundle

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommand."""
    lint = commands.add_parser("lint", help="compile policies, and find what is wrong or doubtful")
    lint.add_argument("files", nargs="+", metavar="FILE", help="a policy; - is standard input")
    lint.add_argument(
        "--tools",
        metavar="TOOLS",
        help="the tools that there are: a JSON list of names or schemas, or module:attribute",
    )
    lint.add_argument(
        "--ignore",
        metavar="CODE",
        action="append",
        default=[],
        help="leave out findings of this code; may be repeated",
    )
    lint.add_argument("--json", action="store_true", help="print the result as JSON")
    lint.set_defaults(run=_lint)


def _lint(options: argparse.Namespace) -> int:
    from adjudge.analysis import FINDING_CODES
    from adjudge.analysis._linting.tool_lists import load_tools

    unknown = sorted(set(options.ignore) - FINDING_CODES.keys())
    if unknown:
        refuse_usage(f"There is no finding {unknown[0]!r}; there are {', '.join(FINDING_CODES)}.")
    tools = None if options.tools is None else load_tools(options.tools)
    reports = [_report(file, tools, options.ignore) for file in options.files]
    if options.json:
        say_json([report.as_json() for report in reports])
    for report in reports:
        complain_of(report.file, report.problems)
        if not options.json and report.bundle is not None:
            say(_summary(report))
    if any(report.problems for report in reports):
        return 2
    return 1 if any(report.findings for report in reports) else 0


class _Report:
    """What became of one file: problems, or a bundle with its findings."""

    def __init__(
        self,
        file: str,
        problems: list[str],
        bundle: PolicyBundle | None = None,
        findings: tuple[Finding, ...] = (),
    ) -> None:
        self.file = file
        self.problems = problems
        self.bundle = bundle
        self.findings = findings

    def as_json(self) -> dict[str, Any]:
        """Give the report as plain JSON."""
        plain: dict[str, Any] = {"file": self.file, "problems": self.problems}
        if self.bundle is None:
            return plain
        return {
            **plain,
            "findings": [_plain(finding) for finding in self.findings],
            "bundle_id": self.bundle.id,
            "on_no_match": self.bundle.defaults.on_no_match,
            "on_missing_shadow": self.bundle.defaults.on_missing_shadow,
            "rules": [
                {
                    "id": rule.id,
                    "priority": rule.priority,
                    "verdict": rule.verdict,
                    "description": rule.description,
                }
                for rule in _in_order(self.bundle)
            ],
        }


def _report(file: str, tools: Any, ignored: list[str]) -> _Report:
    from adjudge.analysis import lint

    try:
        bundle = load(file)
    except PolicyCompileError as error:
        return _Report(file, list(error.problems))
    if not bundle.source.rules:
        # A file of comments alone compiles to nothing; that it "passed" would mislead.
        return _Report(file, ["It has no rules, so there was nothing to check."])
    return _Report(file, [], bundle, lint(bundle, tools=tools, ignore=ignored))


def _plain(finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {
        "code": finding.code,
        "rule": finding.rule,
        "message": finding.message,
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "column": None if place is None else place.column,
        "path": None if place is None else place.path,
        "related": list(finding.related),
    }


def _in_order(bundle: PolicyBundle) -> list[Any]:
    return sorted(bundle.source.rules, key=lambda rule: (-rule.priority, rule.order))


def _summary(report: _Report) -> str:
    bundle = report.bundle
    assert bundle is not None
    count = len(bundle.source.rules)
    rules = "1 rule" if count == 1 else f"{count} rules"
    lines = [f"{escaped(report.file)}: {rules}, bundle {bundle.id}"]
    for rule in _in_order(bundle):
        about = f"  {rule.description}" if rule.description else ""
        lines.append(escaped(f"  {rule.priority:>5}  {rule.verdict:<16}  {rule.id}{about}"))
    lines.append(f"  no rule matches: {bundle.defaults.on_no_match}")
    lines.append(f"  irreversible without a preview: {bundle.defaults.on_missing_shadow}")
    if bundle.defaults.on_no_match is Verdict.ALLOW:
        lines.append("  note: calls that no rule speaks of are allowed")
    if report.findings:
        lines.append("")
    lines += [_told(report.file, finding) for finding in report.findings]
    if report.findings:
        count = len(report.findings)
        lines.append("1 finding" if count == 1 else f"{count} findings")
    return "\n".join(lines)


def _told(file: str, finding: Finding) -> str:
    where = finding.where or file
    where = where if where.startswith(file) else f"{file}: {where}"
    rule = "" if finding.rule is None else f" {finding.rule}:"
    return (
        f"{painted(escaped(where), 'bold')}: {painted(finding.code, 'yellow')}:"
        f"{escaped(rule)} {escaped(finding.message)}"
    )
