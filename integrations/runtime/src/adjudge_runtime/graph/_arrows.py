"""What is to be drawn of a graph: every way that work can go, with the words beside it.

Pictures in any format are drawn from this, so that they show the same. That includes what no line
says: a node whose edges may all not hold ends the work.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge_runtime.graph._spec import Edge, GraphSpec, When
from adjudge_runtime.graph._values import DONE

__all__ = ["Arrow", "arrows_of", "words_of"]


@dataclass(frozen=True, slots=True)
class Arrow:
    """One line of the picture; `is_fork` marks those to and from branches, `is_implied` an end."""

    source: str
    target: str
    label: str = ""
    is_fork: bool = False
    is_implied: bool = False


def arrows_of(spec: GraphSpec) -> tuple[Arrow, ...]:
    """Give all arrows of a graph, in the order of its edges."""
    arrows: list[Arrow] = []
    for node in dict.fromkeys([spec.start, *(edge.source for edge in spec.edges)]):
        edges = [edge for edge in spec.edges if edge.source == node]
        for index, edge in enumerate(edges):
            label = words_of(edge.when) if edge.when is not None else "else" if index else ""
            arrows += _of_edge(edge, label)
        if all(edge.when is not None for edge in edges):
            arrows.append(Arrow(node, DONE, "else" if edges else "", is_implied=True))
    sources = {arrow.source for arrow in arrows}
    ends = dict.fromkeys(arrow.target for arrow in arrows if arrow.target not in {*sources, DONE})
    # Branches and joins have an arrow out by now, or are ends as any node without an edge is.
    arrows += [Arrow(node, DONE, is_implied=True) for node in ends]
    return tuple(dict.fromkeys(arrows))


def words_of(when: When) -> str:
    """Say a condition in a few words."""
    words = []
    if when.status is not None:
        words.append(when.status)
    if when.answer_matches is not None:
        words.append(f"answer ~ {when.answer_matches}")
    if when.error_matches is not None:
        words.append(f"error ~ {when.error_matches}")
    if when.denials_gt is not None:
        words.append(f"denials > {when.denials_gt}")
    if when.steps_gt is not None:
        words.append(f"steps > {when.steps_gt}")
    return " and ".join(words)


def _of_edge(edge: Edge, label: str) -> list[Arrow]:
    if edge.join is None:
        return [Arrow(edge.source, edge.to[0], label)]
    forked = [Arrow(edge.source, branch, label, is_fork=True) for branch in edge.to]
    return forked + [Arrow(branch, edge.join, is_fork=True) for branch in edge.to]
