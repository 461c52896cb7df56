"""What the plot of the overhead shows is what was measured; no time is asserted."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from ._plot import plot
from ._tree import ROOT, frameworks

REFERENCE = ROOT / "docs" / "reference"
OVERHEAD = json.loads((REFERENCE / "speed.json").read_text(encoding="utf-8"))["overhead"]


def test_the_plot_is_the_reports() -> None:
    """The picture is the one that the report gives, to the byte."""
    assert plot(OVERHEAD) == (REFERENCE / "overhead.svg").read_text(encoding="utf-8")


def test_every_framework_is_measured() -> None:
    """Each has its figures, and each the same guards."""
    guards = {tuple(way["added_us"]) for of in OVERHEAD.values() for way in of["ways"].values()}

    assert [each.folder.name for each in frameworks()] == list(OVERHEAD)
    assert 1 == len(guards)


def test_the_plot_has_a_bar_for_each_figure() -> None:
    """A bar and its number for each framework, each way and each guard, and three in the legend."""
    drawn = ElementTree.fromstring(plot(OVERHEAD))
    svg = "{http://www.w3.org/2000/svg}"
    figures = sum(len(way["added_us"]) for of in OVERHEAD.values() for way in of["ways"].values())

    assert figures + 3 == len(drawn.findall(f"{svg}rect"))
    assert figures == len(drawn.findall(f"{svg}text[@class='number']"))


def test_less_than_nothing_has_no_bar() -> None:
    """Where the noise is larger than what is added, the number says so, and the bar is empty."""
    way = {"us": 100.0, "added_us": {"a": -1.0, "b": 2.0, "c": 3.0}}
    drawn = plot({"acme": {"ways": {"call": way, "run": way}}})

    assert 2 == drawn.count('width="0.0"')
    assert ">-1 %<" in drawn
