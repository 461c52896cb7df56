"""A graph as an SVG picture, drawn with nothing but this: no font, script or file from elsewhere.

Every name and pattern is escaped text. The picture follows the reader's light or dark setting.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from adjudge_runtime.graph._layout import PORT, Box, Layout, Way, lay_out, shortened, slots_of
from adjudge_runtime.graph._spec import GraphSpec
from adjudge_runtime.graph._values import DONE

__all__ = ["to_svg"]

_STYLE = """
    .ground { fill: #ffffff } .box { fill: #eef3fb; stroke: #3b5b92; stroke-width: 1.5 }
    .end { fill: #3b5b92; stroke: #3b5b92 } .name { fill: #14233d; font-weight: 600 }
    .end-name { fill: #ffffff } .way { fill: none; stroke: #6b7688; stroke-width: 1.5 }
    .fork { stroke: #b35c00; stroke-width: 2 } .implied { stroke-dasharray: 4 4 }
    .tip { fill: #6b7688 } .tip-fork { fill: #b35c00 } .words { fill: #3d4757; font-size: 12px }
    .plate { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      .ground, .plate { fill: #10151d } .box { fill: #1c2a42; stroke: #7ea3e0 }
      .end { fill: #7ea3e0; stroke: #7ea3e0 } .name { fill: #e8eefa } .end-name { fill: #10151d }
      .way { stroke: #98a3b5 } .fork { stroke: #f0a14a } .tip { fill: #98a3b5 }
      .tip-fork { fill: #f0a14a } .words { fill: #c6cfdd }
    }"""
_FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
# What XML 1.0 cannot hold, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_svg(spec: GraphSpec) -> str:
    """Give the picture of a compiled graph as the text of an SVG file."""
    layout = lay_out(spec)
    parts = [_head(layout, spec)]
    parts += [_line(way) for way in layout.ways]
    parts.append(_entry(next(box for box in layout.boxes if box.name == spec.start)))
    parts += [_box(box) for box in layout.boxes]
    # Words come last, so that no line runs through them.
    spots = {(way.spot, way.arrow.label): way for way in layout.ways if way.arrow.label}
    parts += [_words(way) for way in spots.values()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _head(layout: Layout, spec: GraphSpec) -> str:
    width, height = f"{layout.width:.0f}", f"{layout.height:.0f}"
    tips = "".join(
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="{name}" d="M0 0 10 5 0 10z"/></marker>'
        for name in ("tip", "tip-fork")
    )
    title = _text(f"Graph from {spec.start}: {len(spec.nodes)} nodes, {len(spec.edges)} edges")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{_FONT}" font-size="14" role="img">\n'
        f"<title>{title}</title>\n<style>{_STYLE}\n</style>\n<defs>{tips}</defs>\n"
        f'<rect class="ground" width="{width}" height="{height}"/>'
    )


def _line(way: Way) -> str:
    kind = " fork" if way.arrow.is_fork else " implied" if way.arrow.is_implied else ""
    tip = "tip-fork" if way.arrow.is_fork else "tip"
    return f'<path class="way{kind}" marker-end="url(#{tip})" d="{_path(way)}"/>'


def _path(way: Way) -> str:
    source, target = way.source, way.target
    if way.lane is None:
        x1, y1 = source.x, source.y + source.height / 2
        x2, y2 = target.x, target.y - target.height / 2
        stem = ""
        if way.arrow.is_fork and way.arrow.label:
            # One line with the words on it, before the branches part.
            y1, stem = y1 + 28, f"M{x1:.1f} {y1:.1f}v28"
        bend = (y1 + y2) / 2
        return f"{stem}M{x1:.1f} {y1:.1f}C{x1:.1f} {bend:.1f} {x2:.1f} {bend:.1f} {x2:.1f} {y2:.1f}"
    sign = 1 if way.side == "right" else -1
    x1, x2 = (box.x + sign * box.width / 2 for box in (source, target))
    y1, y2 = _port(source, way, way.side), _port(target, way, way.side)
    if source is target:
        # Words fit in between.
        y1, y2 = y1 - PORT, y1 + PORT
    turn = 8.0 if y2 > y1 else -8.0
    corner = sign * abs(turn)
    lane = way.lane
    return (
        f"M{x1:.1f} {y1:.1f}H{lane - corner:.1f}Q{lane:.1f} {y1:.1f} {lane:.1f} {y1 + turn:.1f}"
        f"V{y2 - turn:.1f}Q{lane:.1f} {y2:.1f} {lane - corner:.1f} {y2:.1f}H{x2:.1f}"
    )


def _port(box: Box, way: Way, side: str) -> float:
    """Give the height at which a way meets the side of a box; each has its own.

    They are in the order in which no two ways cross: those from above by their lanes from the
    inmost, then those to below from the outmost.
    """
    ways = list(dict.fromkeys(box.right if side == "right" else box.left))
    ways.sort(key=lambda each: _turn_of(each, box))
    total = sum(slots_of(each) for each in ways)
    before = sum(slots_of(each) for each in ways[: ways.index(way)])
    return box.y + (before + slots_of(way) / 2 - total / 2) * PORT


def _turn_of(way: Way, box: Box) -> tuple[int, float]:
    assert way.lane is not None
    other = way.target if way.source is box else way.source
    distance = abs(way.lane - box.x)
    return (other.y > box.y) - (other.y < box.y), -distance if other.y > box.y else distance


def _entry(box: Box) -> str:
    top = box.y - box.height / 2
    return (
        f'<circle class="end" cx="{box.x:.1f}" cy="{top - 28:.1f}" r="5"/>'
        f'<path class="way" marker-end="url(#tip)" d="M{box.x:.1f} {top - 23:.1f}V{top:.1f}"/>'
    )


def _box(box: Box) -> str:
    is_end = box.name == DONE
    radius = box.height / 2 if is_end else 8
    return (
        f'<g><title>{_text(box.name)}</title><rect class="{"end" if is_end else "box"}" '
        f'x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.1f}"/>'
        f'<text class="{"end-name" if is_end else "name"}" x="{box.x:.1f}" y="{box.y + 5:.1f}" '
        f'text-anchor="middle">{_text(shortened(box.name))}</text></g>'
    )


def _words(way: Way) -> str:
    x, y = way.spot
    if way.source is way.target:
        y = _port(way.source, way, way.side)
    shown = shortened(way.arrow.label)
    width = len(shown) * 6.3 + 10
    return (
        f"<g><title>{_text(way.arrow.label)}</title>"
        f'<rect class="plate" x="{x - width / 2:.1f}" y="{y - 10:.1f}" width="{width:.1f}" '
        f'height="19" rx="4"/><text class="words" x="{x:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="middle">{_text(shown)}</text></g>'
    )


def _text(text: str) -> str:
    return escape(_NO_XML.sub("�", text))
