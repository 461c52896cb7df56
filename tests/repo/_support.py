"""Writes what is supported, out of the conformance suite's report: the page, and README's table.

`python tests/repo/_support.py`, after a run that wrote `docs/reference/support-matrix.json`;
CONTRIBUTING has the whole command. Nothing here is measured: a number that is not in the report is
not on the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["BEGIN", "END", "page", "readme_table"]

BEGIN = "<!-- support-table: begin -->"
END = "<!-- support-table: end -->"

_HEAD = """# The support matrix

What the [conformance suite](../../tests/conformance/README.md) found, case by case.
A cell is one case in one style and over one model API, alone or beside another call.
`reference` is the guard in a plain loop, without a framework.
This page is made from `support-matrix.json`; [CONTRIBUTING](../../CONTRIBUTING.md) says how.
"""


def readme_table(report: Mapping[str, Any]) -> str:
    """Give a row for each framework and release."""
    rows = [
        f"| {name} | {part['cells']} | {part['held']} | {len(_gaps(part))} |"
        for name, part in sorted(report.items())
    ]
    head = ["| framework and release | cells tried | cells that hold | cases with a declared gap |"]
    return "\n".join([*head, "|---|---|---|---|", *rows])


def page(report: Mapping[str, Any]) -> str:
    """Give the whole page: the totals, each case, and the reason of each gap."""
    columns = sorted(report)
    cases: dict[str, str] = {}
    for part in report.values():
        cases |= {case: entry["says"] for case, entry in part["cases"].items()}
    lines = [
        f"| case | {' | '.join(columns)} | what must hold |",
        f"|---|{'---|' * len(columns)}---|",
    ]
    for case, says in sorted(cases.items()):
        cells = [_cell(report[name]["cases"].get(case)) for name in columns]
        lines.append(f"| `{case}` | {' | '.join(cells)} | {says.replace('|', chr(92) + '|')} |")
    gaps = ["", "## Declared gaps", "", *_gap_lines(report)]
    parts = [_HEAD, readme_table(report), "", "## Cases", "", *lines, *gaps]
    return "\n".join(parts) + "\n"


def _cell(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return "not tried"
    return f"{entry['held']} of {entry['cells']}" + (", gap" if "gap" in entry else "")


def _gaps(part: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    return {case: entry["gap"] for case, entry in part["cases"].items() if "gap" in entry}


def _gap_lines(report: Mapping[str, Any]) -> Iterator[str]:
    found = False
    for name, part in sorted(report.items()):
        for case, gap in sorted(_gaps(part).items()):
            found = True
            yield f"- {name}, `{case}`: {gap['reason']} ([upstream]({gap['url']}))"
    if not found:
        yield "None."


def _write(root: Path) -> None:
    matrix = root / "docs" / "reference" / "support-matrix.json"
    report = json.loads(matrix.read_text(encoding="utf-8"))
    matrix.with_suffix(".md").write_text(page(report), encoding="utf-8")
    readme = root / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    table = f"{BEGIN}\n{readme_table(report)}\n{END}"
    readme.write_text(before + table + after, encoding="utf-8")


if __name__ == "__main__":
    _write(Path(__file__).resolve().parents[2])
