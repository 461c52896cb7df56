"""A graph as Mermaid text, for where pictures are drawn from text (READMEs, issues, wikis).

Whatever a name or a pattern holds stays a label: everything but plain words is escaped.
"""

from __future__ import annotations

import re

from adjudge_runtime.graph._arrows import arrows_of
from adjudge_runtime.graph._spec import GraphSpec
from adjudge_runtime.graph._values import DONE

__all__ = ["to_mermaid"]

_SPECIAL = re.compile(r"[^\w .,:/=+-]")


def to_mermaid(spec: GraphSpec) -> str:
    """Give the flowchart of a compiled graph as Mermaid text, which ends in a line break."""
    arrows = arrows_of(spec)
    names = list(dict.fromkeys([spec.start, *spec.nodes]))
    ids = {name: f"n{index}" for index, name in enumerate(names)}
    ids[DONE] = "done"
    lines = ["flowchart TD", f"    start(( )) --> {ids[spec.start]}"]
    lines += [f'    {ids[name]}["{_escaped(name)}"]' for name in names]
    lines.append('    done(["done"])')
    for arrow in arrows:
        line = "-.->" if arrow.is_implied else "==>" if arrow.is_fork else "-->"
        label = f'|"{_escaped(arrow.label)}"|' if arrow.label else ""
        lines.append(f"    {ids[arrow.source]} {line}{label} {ids[arrow.target]}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"#{ord(found.group())};", text)
