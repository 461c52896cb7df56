"""The support matrix of a run: what holds in which framework, with the number of cells tried.

Set ADJUDGE_CONFORMANCE_REPORT to a path ending in `.json`. Each run of a suite class puts the part
of its framework and release into that file, and a Markdown table of all parts beside it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge_conformance.cells import Cell
from adjudge_conformance.driver import Gap

__all__ = ["REPORT_VARIABLE", "Tally", "markdown"]

REPORT_VARIABLE = "ADJUDGE_CONFORMANCE_REPORT"


@dataclass
class Tally:
    """What came of each cell of one driver."""

    framework: str
    version: str = ""
    cases: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, cell: Cell, *, holds: bool, gap: Gap | None) -> None:
        """Count a cell that was tried."""
        entry = self.cases.setdefault(cell.case.id, {"says": cell.case.says, "cells": 0, "held": 0})
        entry["cells"] += 1
        entry["held"] += holds
        if gap is not None:
            entry["gap"] = {"reason": gap.reason, "url": gap.url}

    @property
    def title(self) -> str:
        """What the part is called in the report: the framework and its release."""
        return f"{self.framework} {self.version}".strip()

    @property
    def part(self) -> dict[str, Any]:
        """The framework's part of the report."""
        cells = sum(entry["cells"] for entry in self.cases.values())
        held = sum(entry["held"] for entry in self.cases.values())
        return {"version": self.version, "cells": cells, "held": held, "cases": self.cases}

    def write_if_asked(self) -> None:
        """Put this part into the file that the environment names, if it names one."""
        named = os.environ.get(REPORT_VARIABLE)
        if named:
            path = Path(named)
            report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            report[self.title] = self.part
            path.write_text(json.dumps(report, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            path.with_suffix(".md").write_text(markdown(report), encoding="utf-8")


def markdown(report: Mapping[str, Any]) -> str:
    """Give the report as a table: a row for each topic, a column for each framework."""
    frameworks = sorted(report)
    topics = sorted({_topic(case) for part in report.values() for case in part["cases"]})
    lines = [
        "| cases | " + " | ".join(frameworks) + " |",
        "|---|" + "---|" * len(frameworks),
    ]
    for topic in topics:
        cells = [_summary(report[name]["cases"], topic) for name in frameworks]
        lines.append(f"| {topic} | " + " | ".join(cells) + " |")
    totals = [f"{report[name]['held']} of {report[name]['cells']}" for name in frameworks]
    lines.append("| cells that hold | " + " | ".join(totals) + " |")
    return "\n".join([*lines, "", *_gaps(report)])


def _topic(case: str) -> str:
    return case.partition(".")[0]


def _summary(cases: Mapping[str, Any], topic: str) -> str:
    entries = [entry for case, entry in cases.items() if _topic(case) == topic]
    if not entries:
        return "not tried"
    held = sum(entry["held"] == entry["cells"] for entry in entries)
    gaps = sum("gap" in entry for entry in entries)
    note = f", {gaps} declared gaps" if gaps else ""
    return f"{held} of {len(entries)}{note}"


def _gaps(report: Mapping[str, Any]) -> list[str]:
    lines = []
    for framework in sorted(report):
        for case, entry in sorted(report[framework]["cases"].items()):
            if "gap" in entry:
                gap = entry["gap"]
                lines.append(f"- {framework}, `{case}`: {gap['reason']} ({gap['url']})")
    return [*lines, ""] if lines else []
