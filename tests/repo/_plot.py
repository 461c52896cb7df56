"""Draws what governing adds to a framework's calls, out of `docs/reference/speed.json`, as an SVG.

`python tests/repo/_plot.py`, after a run of an integration's `benchmarks/overhead.py`. It has no
background: its colours are read on light pages and on dark ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

__all__ = ["plot"]

_COLOURS = ("#56b4e9", "#0072b2", "#e69f00")
# In units of which the text is 16 high.
_WIDTH, _LEFT, _GAP = 880, 136, 28
_BAR, _GROUP, _TOP = 19, 74, 94
_PANEL = (_WIDTH - _LEFT - _GAP) // 2
_NUMBER = 66
_STYLE = """
    svg { --ink: #6e7781 }
    @media (prefers-color-scheme: light) { svg { --ink: #424a53 } }
    @media (prefers-color-scheme: dark) { svg { --ink: #c9d1d9 } }
    text { font: 16px system-ui, sans-serif; fill: #6e7781; fill: var(--ink) }
    .title { font-weight: 600 }
    .number { font-size: 14px }
    line { stroke: #6e7781; stroke: var(--ink); stroke-opacity: 0.5 }
"""


def plot(figures: Mapping[str, Any]) -> str:
    """Give the SVG: added microseconds for a call, and what share that is of a whole run."""
    height = _TOP + _GROUP * len(figures)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        "  <title>What governing adds to a call and to a run, for each framework</title>",
        f"  <style>{_STYLE}  </style>",
    ]
    calls = {name: dict(of["ways"]["call"]["added_us"]) for name, of in figures.items()}
    shares = {
        name: {guard: 100 * us / way["us"] for guard, us in way["added_us"].items()}
        for name, way in ((name, of["ways"]["run"]) for name, of in figures.items())
    }
    lines += _legend(next(iter(calls.values())))
    for row, name in enumerate(figures):
        middle = _TOP + _GROUP * row + 1.5 * _BAR + 4
        lines.append(_text(name, _LEFT - 12, middle, "end"))
    lines += _panel(calls, _LEFT, "added to a call, microseconds", "{:+,.0f}")
    lines += _panel(shares, _LEFT + _PANEL + _GAP, "added to a whole run, percent", "{:+.0f} %")
    return "\n".join([*lines, "</svg>"]) + "\n"


def _legend(guards: Mapping[str, float]) -> Iterator[str]:
    left = _LEFT
    for colour, guard in zip(_COLOURS, guards, strict=True):
        yield f'  <rect x="{left}" y="12" width="14" height="14" fill="{colour}"/>'
        yield _text(guard, left + 21, 24)
        left += 56 + 9 * len(guard)


def _panel(
    values: Mapping[str, Mapping[str, float]], left: int, title: str, number: str
) -> Iterator[str]:
    """Draw a group of bars for each framework, from nothing at the left."""
    most = max(1.0, *(value for each in values.values() for value in each.values()))
    yield _text(title, left, _TOP - 22, kind="title")
    for row, each in enumerate(values.values()):
        for bar, (colour, value) in enumerate(zip(_COLOURS, each.values(), strict=True)):
            top = _TOP + _GROUP * row + _BAR * bar
            width = max(0.0, (_PANEL - _NUMBER) * value / most)
            yield (
                f'  <rect x="{left}" y="{top}" width="{width:.1f}" height="{_BAR - 2}" '
                f'fill="{colour}"/>'
            )
            yield _text(number.format(value), left + width + 6, top + 13, kind="number")
    bottom = _TOP + _GROUP * len(values) - (_GROUP - 3 * _BAR)
    yield f'  <line x1="{left}" y1="{_TOP - 6}" x2="{left}" y2="{bottom + 4}"/>'


def _text(text: str, x: float, y: float, anchor: str = "start", *, kind: str = "label") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}"'
    return f"  <text {place}>{escape(text)}</text>"


def _write(folder: Path) -> None:
    report = json.loads((folder / "speed.json").read_text(encoding="utf-8"))
    (folder / "overhead.svg").write_text(plot(report["overhead"]), encoding="utf-8")


if __name__ == "__main__":
    _write(Path(__file__).resolve().parents[2] / "docs" / "reference")
