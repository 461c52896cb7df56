"""What the README and the support matrix claim is what the conformance report says."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest

from ._support import BEGIN, END, page, readme_table
from ._tree import ROOT, Distribution, conformance, frameworks, tox_ini

MATRIX = ROOT / "docs" / "reference" / "support-matrix.json"


@pytest.fixture
def report() -> dict[str, Any]:
    """The conformance report from which both were made."""
    read: dict[str, Any] = json.loads(MATRIX.read_text(encoding="utf-8"))
    return read


def test_the_readme_has_the_reports_table(report: dict[str, Any]) -> None:
    """The table between the markers is the one that the report gives."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0]

    assert readme_table(report) == table


def test_the_matrix_page_is_the_reports(report: dict[str, Any]) -> None:
    """The page is the one that the report gives, to the byte."""
    assert page(report) == MATRIX.with_suffix(".md").read_text(encoding="utf-8")


def test_the_report_counts_what_it_lists(report: dict[str, Any]) -> None:
    """The totals are the sums of the cases; where a cell does not hold, there is a declared gap."""
    for part in report.values():
        cases = part["cases"].values()
        fallen = [case for case in cases if case["held"] < case["cells"] and "gap" not in case]

        assert part["cells"] == sum(case["cells"] for case in cases)
        assert part["held"] == sum(case["held"] for case in cases)
        assert [] == fallen


def test_the_report_has_every_framework_at_its_oldest_and_newest(report: dict[str, Any]) -> None:
    """The releases in the report are those of the matrix, and no others.

    A framework with several ways in (`langchain`, `langchain-callbacks`) has each at both.
    """
    drivers = {name.rpartition(" ")[0] for name in report} - {"", "reference"}
    expected = {"reference"}
    for each in frameworks():
        ways = {name for name in drivers if f"{name}-".startswith(f"{each.folder.name}-")}
        expected |= {f"{name} {release}" for name in ways for release in _releases(each)}

    assert {each.folder.name for each in frameworks()} <= drivers
    assert expected == set(report)


def _releases(integration: Distribution) -> tuple[str, str]:
    """Give the oldest and the newest release of a framework that is supported."""
    name = integration.folder.name
    project = integration.project
    extras = project.get("optional-dependencies", {}).values()
    required = chain(project["dependencies"], *extras)
    # Our own loop is judged through its model client.
    wanted = "openai" if name == "runtime" else name
    framework = next(d for d in required if d.startswith(wanted))
    oldest = framework.partition(">=")[2].partition(",")[0]
    oldest += ".0" * (2 - oldest.count("."))
    return oldest, tox_ini().get("newest", name)


def test_the_report_is_of_the_cases_that_there_are(report: dict[str, Any]) -> None:
    """A case that was added or renamed since is missing from the claim, which is then made anew.

    A way in that cannot propose what a case is about (`crewai-react` makes one call a turn) has no
    cell of it; its framework has.
    """
    files = (conformance().source / "cases").glob("*.json")
    read = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    says = {case["id"]: case["says"] for topic in read for case in topic.get("cases", ())}

    tried: dict[str, dict[str, str]] = {}
    for name, part in report.items():
        driver, _, release = name.rpartition(" ")
        owners = [each.folder.name for each in frameworks()]
        owner = next((each for each in owners if f"{driver}-".startswith(f"{each}-")), name)
        told = {case: entry["says"] for case, entry in part["cases"].items()}
        assert told.items() <= says.items()
        tried.setdefault(f"{owner} {release}", {}).update(told)
    assert [] == [name for name, told in tried.items() if told != says]
