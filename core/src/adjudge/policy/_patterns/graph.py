"""The position graph of a pattern: which character can follow which, and in how many ways.

Glushkov's construction with multiplicities: nodes are the pattern's characters, an edge's weight
counts the different ways in which the engine can get from one to the next without consuming
anything between. Repeats are unrolled while that is small, and are loops otherwise, which only
adds ways.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from adjudge.policy._patterns.tree import (
    Alternatives,
    Characters,
    Look,
    Repeat,
    Sequence,
    Tree,
)

__all__ = ["MAX_POSITIONS", "START", "Graph", "TooLarge", "build_graph"]

MAX_POSITIONS = 3_000
_UNROLLED = 128
START = 0


class TooLarge(Exception):
    """The pattern has too many positions to be analysed."""


@dataclass(slots=True)
class Graph:
    """Node 0, the start, stands for no character; `follow[p][q]` counts the ways from p to q."""

    masks: list[int] = field(default_factory=lambda: [0])
    follow: list[Counter[int]] = field(default_factory=lambda: [Counter()])
    looks_behind: list[Tree] = field(default_factory=list)
    looks_ahead: int = 0


@dataclass(slots=True)
class _Part:
    """What joins a part to its neighbours: ways in, ways out, ways through without a character."""

    first: Counter[int]
    last: Counter[int]
    empty: int


def build_graph(tree: Tree) -> Graph:
    """Build the graph of a tree. Raises `TooLarge`."""
    graph = Graph()
    part = _Builder(graph).part(tree)
    graph.follow[START] = part.first
    return graph


class _Builder:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def part(self, tree: Tree) -> _Part:
        if isinstance(tree, Characters):
            return self._character(tree)
        if isinstance(tree, Sequence):
            return self._in_order([self.part(item) for item in tree.items])
        if isinstance(tree, Alternatives):
            return self._either([self.part(branch) for branch in tree.branches])
        if isinstance(tree, Repeat):
            return self._repeat(tree)
        if isinstance(tree, Look):
            if tree.behind:
                self._graph.looks_behind.append(tree.body)
                return _Part(Counter(), Counter(), 1)
            self._graph.looks_ahead += 1
            return _Part(self.part(tree.body).first, Counter(), 1)
        return _Part(Counter(), Counter(), 1)

    def _character(self, tree: Characters) -> _Part:
        node = len(self._graph.masks)
        if node > MAX_POSITIONS:
            raise TooLarge
        self._graph.masks.append(tree.mask)
        self._graph.follow.append(Counter())
        return _Part(Counter({node: 1}), Counter({node: 1}), 0)

    def _in_order(self, parts: list[_Part]) -> _Part:
        whole = _Part(Counter(), Counter(), 1)
        for part in parts:
            self._join(whole.last, part.first)
            whole = _Part(
                whole.first + _times(part.first, whole.empty),
                part.last + _times(whole.last, part.empty),
                whole.empty * part.empty,
            )
        return whole

    def _either(self, parts: list[_Part]) -> _Part:
        whole = _Part(Counter(), Counter(), 0)
        for part in parts:
            whole.first += part.first
            whole.last += part.last
            whole.empty += part.empty
        return whole

    def _repeat(self, tree: Repeat) -> _Part:
        most = tree.most
        if most is not None and most * _size(tree.body) <= _UNROLLED:
            return self._unrolled(tree.body, tree.least, most)
        part = self.part(tree.body)
        self._join(part.last, part.first)
        # An iteration that consumes nothing is one more way out.
        ways_out = 1 + part.empty
        empty = part.empty if tree.least else ways_out
        return _Part(part.first, _times(part.last, ways_out), empty)

    def _unrolled(self, body: Tree, least: int, most: int) -> _Part:
        whole = _Part(Counter(), Counter(), 1)
        for index in reversed(range(most)):
            part = self.part(body)
            whole = self._in_order([part, whole])
            if index >= least:
                whole.empty += 1
        return whole

    def _join(self, last: Counter[int], first: Counter[int]) -> None:
        for node, ways_out in last.items():
            follow = self._graph.follow[node]
            for target, ways_in in first.items():
                follow[target] += ways_out * ways_in


def _times(counts: Counter[int], factor: int) -> Counter[int]:
    return (
        Counter({node: count * factor for node, count in counts.items()}) if factor else Counter()
    )


def _size(tree: Tree) -> int:
    """Count the positions that one copy of a tree takes."""
    if isinstance(tree, Characters):
        return 1
    if isinstance(tree, Sequence):
        return sum(_size(item) for item in tree.items)
    if isinstance(tree, Alternatives):
        return sum(_size(branch) for branch in tree.branches)
    if isinstance(tree, Repeat):
        times = (
            tree.most if tree.most is not None and tree.most * _size(tree.body) <= _UNROLLED else 1
        )
        return times * _size(tree.body)
    if isinstance(tree, Look):
        return 0 if tree.behind else _size(tree.body)
    return 0
