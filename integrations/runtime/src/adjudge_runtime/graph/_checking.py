"""What the lines of a graph say together: who is reached, what is never taken, how work ends.

Nothing is changed; each problem is noted at the line that has to change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.integration import Problems, did_you_mean
from adjudge_runtime.graph._spec import Edge
from adjudge_runtime.graph._values import DONE

__all__ = ["Line", "check_graph"]


@dataclass(frozen=True, slots=True)
class Line:
    """An edge, and where it and its target stand in the text."""

    edge: Edge
    place: Any
    to_place: Any


def check_graph(
    lines: Sequence[Line],
    problems: Problems,
    *,
    start: str,
    start_place: Any,
    named: Mapping[str, Any] | None,
    given: Sequence[str] | None,
) -> tuple[str, ...]:
    """Note what is wrong with the lines as a whole, and give the names of the nodes.

    `named` are the names that the text lists, `given` those that the caller knows of.
    """
    for known in (named, given):
        if known is not None:
            _refuse_unknown(lines, problems, start, start_place, tuple(known))
    for name, place in (named or {}).items():
        if given is not None and name not in given:
            problems.add(place, f'There is no node "{name}". {did_you_mean(name, given)}')
    _refuse_never_taken(lines, problems)
    working, branches = _reached(lines, start)
    _refuse_unreached(lines, problems, working, branches)
    for name, place in (named or {}).items():
        if name not in working | branches:
            problems.add(
                place, f'No edge leads to "{name}" from the start; take it out, or add one.'
            )
    _refuse_endless(lines, problems, working, start)
    names = [start]
    for line in lines:
        edge = line.edge
        joined = () if edge.join is None else (edge.join,)
        names += [edge.source, *(name for name in edge.to if name != DONE), *joined]
    return tuple(dict.fromkeys([*names, *(named or ())]))


def _refuse_unknown(
    lines: Sequence[Line],
    problems: Problems,
    start: str,
    start_place: Any,
    known: tuple[str, ...],
) -> None:
    def check(name: str, place: Any, *, may_end: bool = False) -> None:
        if name not in known and not (may_end and name == DONE):
            others = (*known, DONE) if may_end else known
            problems.add(place, f'There is no node "{name}". {did_you_mean(name, others)}')

    check(start, start_place)
    for line in lines:
        check(line.edge.source, line.place)
        for name in line.edge.to:
            check(name, line.to_place, may_end=True)
        if line.edge.join is not None:
            check(line.edge.join, line.place)


def _refuse_never_taken(lines: Sequence[Line], problems: Problems) -> None:
    seen: dict[str, list[Edge]] = {}
    for line in lines:
        edge = line.edge
        earlier = seen.setdefault(edge.source, [])
        if any(other.when is None for other in earlier):
            problems.add(
                line.place,
                f'This edge from "{edge.source}" is never taken, because one before it has no '
                "when and always holds; move it up, or take it out.",
            )
        elif any(other.when == edge.when for other in earlier):
            problems.add(
                line.place,
                f'This edge from "{edge.source}" is never taken, because one before it has the '
                "same when; change one of them, or take this one out.",
            )
        earlier.append(edge)


def _reached(lines: Sequence[Line], start: str) -> tuple[set[str], set[str]]:
    """Give the nodes after which edges are followed, and those that run as branches."""
    working, branches, to_do = {start}, set[str](), [start]
    while to_do:
        node = to_do.pop()
        for edge in (line.edge for line in lines if line.edge.source == node):
            after = edge.to if edge.join is None else (edge.join,)
            if edge.join is not None:
                branches.update(edge.to)
            for name in after:
                if name != DONE and name not in working:
                    working.add(name)
                    to_do.append(name)
    return working, branches


def _refuse_unreached(
    lines: Sequence[Line], problems: Problems, working: set[str], branches: set[str]
) -> None:
    told = set[str]()
    for line in lines:
        source = line.edge.source
        if source in working or source in told:
            continue
        told.add(source)
        if source in branches:
            problems.add(
                line.place,
                f'This edge is never taken: "{source}" runs as a branch alone, and after branches '
                "comes their join; take it out.",
            )
        else:
            problems.add(
                line.place,
                f'No edge leads to "{source}" from the start; add one, or take its edges out.',
            )


def _refuse_endless(
    lines: Sequence[Line], problems: Problems, working: set[str], start: str
) -> None:
    """Refuse work that can only be broken off: a node from which no end can be reached."""
    edges = [line.edge for line in lines]
    always = {edge.source for edge in edges if edge.when is None}
    ending = working - always
    while True:
        more = {
            edge.source
            for edge in edges
            if edge.source not in ending
            and ((edge.to if edge.join is None else (edge.join,))[0] in ending | {DONE})
        }
        if not more:
            break
        ending |= more
    stuck = [line for line in lines if line.edge.source in working - ending]
    if stuck:
        names = ", ".join(dict.fromkeys(f'"{line.edge.source}"' for line in stuck))
        problems.add(
            stuck[0].place,
            f"From {names} there is no way to {DONE}: the work could only run into "
            f"max_transitions; write an edge to: {DONE}.",
        )
