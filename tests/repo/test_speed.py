"""What the page about speed claims is what was measured; no time is asserted."""

from __future__ import annotations

import json

from ._speed import SECTIONS, page
from ._tree import ROOT

FIGURES = ROOT / "docs" / "reference" / "speed.json"


def test_the_page_is_the_reports() -> None:
    """The page is the one that the report gives, to the byte."""
    report = json.loads(FIGURES.read_text(encoding="utf-8"))

    assert page(report) == FIGURES.with_suffix(".md").read_text(encoding="utf-8")


def test_every_part_of_the_report_has_its_section() -> None:
    """No figure is kept that the page does not show."""
    assert set(json.loads(FIGURES.read_text(encoding="utf-8"))) <= set(SECTIONS)
