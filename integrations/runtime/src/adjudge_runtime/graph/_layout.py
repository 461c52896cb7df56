"""Where each part of a graph's picture stands: nodes in rows, ways down, and lanes beside them.

A way to the next row goes straight down. Every other way has a lane of its own, to the right where
it goes down and to the left where it goes back, wide enough for its words, so that no words lie
over others. Plain geometry: nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adjudge_runtime.graph._arrows import Arrow, arrows_of
from adjudge_runtime.graph._spec import GraphSpec
from adjudge_runtime.graph._values import DONE

__all__ = ["PORT", "Box", "Layout", "Way", "lay_out", "shortened", "slots_of"]

_CHAR = 7.3
_GAP_X, _GAP_Y, _MARGIN = 36.0, 58.0, 24.0
PORT = 16.0
_MAX_LABEL = 38


@dataclass(slots=True)
class Box:
    """One node, by its middle and its size."""

    name: str
    row: int
    width: float
    height: float = 40.0
    x: float = 0.0
    y: float = 0.0
    left: list[Way] = field(default_factory=list)
    right: list[Way] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Way:
    """One arrow; `lane` is the x of its lane, None where it goes straight down.

    `spot` is the middle of its words.
    """

    arrow: Arrow
    source: Box
    target: Box
    side: str
    lane: float | None = None
    spot: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole picture: its size, its boxes and its ways."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    ways: tuple[Way, ...]


def shortened(text: str) -> str:
    """Give the words as they fit in a picture."""
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…"


def slots_of(way: Way) -> int:
    """Give how many ports' room a way takes at the side of a box."""
    return 3 if way.source is way.target else 1


def lay_out(spec: GraphSpec) -> Layout:
    """Place everything of a graph."""
    arrows = arrows_of(spec)
    rows = _rows(spec.start, arrows)
    boxes = {
        name: Box(name, row, max(96.0, len(shortened(name)) * _CHAR + 36))
        for row, names in enumerate(rows)
        for name in names
    }
    ways = _ways(arrows, boxes)
    for box in boxes.values():
        slots = max(sum(map(slots_of, set(side))) for side in (box.left, box.right))
        box.height = max(box.height, (slots + 0.5) * PORT)
    width, height = _place(rows, boxes, ways)
    return Layout(width, height, tuple(boxes.values()), tuple(ways))


def _rows(start: str, arrows: Sequence[Arrow]) -> list[list[str]]:
    """Put nodes in rows in the order in which work reaches them; branches share one."""
    rows, placed, to_do = list[list[str]](), {DONE}, [start]
    while to_do:
        name = to_do.pop(0)
        if name not in placed:
            placed.add(name)
            rows.append([name])
        following = [arrow for arrow in arrows if arrow.source == name]
        branches = [
            arrow.target for arrow in following if arrow.is_fork and arrow.target not in placed
        ]
        if len(branches) > 1:
            placed.update(branches)
            rows.append(branches)
            # What the branches lead to comes right below them.
            to_do[:0] = [a.target for a in arrows if a.source in branches and a.is_fork]
        to_do += [arrow.target for arrow in following if arrow.target not in placed]
        to_do = [name for name in dict.fromkeys(to_do) if name not in placed]
    return [*rows, [DONE]]


def _ways(arrows: Sequence[Arrow], boxes: dict[str, Box]) -> list[Way]:
    ways, straight = list[Way](), set[tuple[str, str]]()
    for arrow in arrows:
        source, target = boxes[arrow.source], boxes[arrow.target]
        pair = (arrow.source, arrow.target)
        if target.row == source.row + 1 and pair not in straight:
            straight.add(pair)
            ways.append(Way(arrow, source, target, "down"))
            continue
        side = "right" if target.row > source.row else "left"
        way = Way(arrow, source, target, side)
        for box in (source, target):
            (box.right if side == "right" else box.left).append(way)
        ways.append(way)
    return ways


def _place(
    rows: Sequence[Sequence[str]], boxes: dict[str, Box], ways: Sequence[Way]
) -> tuple[float, float]:
    widths = [sum(boxes[n].width for n in row) + _GAP_X * (len(row) - 1) for row in rows]
    # Words on a way straight down need their room as well.
    down = [way for way in ways if way.side == "down"]
    half = max([*widths, *(_label_width(way) for way in down if way.arrow.label)]) / 2
    lefts = _lanes(ways, "left")
    rights = _lanes(ways, "right")
    middle = _MARGIN + sum(width for _, width in lefts) + half
    edge = middle - half
    for way, width in lefts:
        way.lane = edge - width / 2
        edge -= width
    edge = middle + half
    for way, width in rights:
        way.lane = edge + width / 2
        edge += width
    y = _MARGIN + 34
    for row, total in zip(rows, widths, strict=True):
        tallest = max(boxes[name].height for name in row)
        x = middle - total / 2
        for name in row:
            box = boxes[name]
            box.x, box.y = x + box.width / 2, y + tallest / 2
            x += box.width + _GAP_X
        y += tallest + _GAP_Y
    for way in ways:
        way.spot = _spot(way)
    return edge + _MARGIN, y - _GAP_Y + _MARGIN


def _lanes(ways: Sequence[Way], side: str) -> list[tuple[Way, float]]:
    """Give the ways of one side, from the inmost lane outwards: short ones inside."""
    found = [way for way in ways if way.side == side]
    found.sort(key=lambda way: abs(way.target.row - way.source.row))
    return [(way, max(30.0, _label_width(way))) for way in found]


def _label_width(way: Way) -> float:
    label = shortened(way.arrow.label)
    return len(label) * _CHAR * 0.86 + 18 if label else 0.0


def _spot(way: Way) -> tuple[float, float]:
    if way.lane is None:
        top = way.source.y + way.source.height / 2
        if way.arrow.is_fork:
            # Once for all branches, where they part.
            return way.source.x, top + 15
        bottom = way.target.y - way.target.height / 2
        return (way.source.x + way.target.x) / 2, (top + bottom) / 2
    return way.lane, (way.source.y + way.target.y) / 2
