"""How badly can a pattern backtrack? An upper bound, found before it is ever run (clause 11).

The engine tries every path through the position graph that the text allows, from every start. Two
ways round one loop on the same text make that exponential; k chained pairs of loops on the same
text make it a power of the text's length (Weber and Seidl, On the degree of ambiguity of finite
automata, 1991). Search itself is the first loop, unless the pattern is tied to the start.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.policy._patterns.graph import START, Graph, TooLarge, build_graph
from adjudge.policy._patterns.loops import Loops
from adjudge.policy._patterns.tree import Alternatives, Characters, Position, Repeat, Sequence, Tree

__all__ = ["Cost", "Exponential", "cost_of"]

_MAX_STEPS = 400_000


class Exponential(Exception):
    """The pattern can match one text in exponentially many ways."""


@dataclass(frozen=True, slots=True)
class Cost:
    """At most about `ways * length ** degree` steps."""

    degree: int
    ways: int


def cost_of(tree: Tree) -> Cost:
    """Bound the cost of a search. Raises `Exponential`, or `TooLarge` where no bound was found."""
    tree = _without_free_tail(tree)
    # Alternatives at the top are tried one after the other, each from the start or not.
    branches = tree.branches if isinstance(tree, Alternatives) else (tree,)
    costs = [
        _cost_of_branch(branch, searched=not _starts_at_text_start(branch)) for branch in branches
    ]
    degree = max(cost.degree for cost in costs)
    ways = [cost.ways for cost in costs if cost.degree == degree]
    # Trying one word after the other is what a list of words means; loops add up.
    return Cost(degree, max(ways) if degree == 1 else sum(ways))


def _cost_of_branch(tree: Tree, *, searched: bool) -> Cost:
    graph = build_graph(tree)
    walker = _Walker(graph, Loops(graph))
    walker.refuse_exponential()
    degree = 1 + walker.longest_chain(searched=searched)
    ways = walker.ways() * (1 + graph.looks_ahead)
    for body in graph.looks_behind:
        ways *= 1 + _cost_of_branch(body, searched=False).ways
    return Cost(degree, ways if degree == 1 else ways * walker.loops_together())


def _without_free_tail(tree: Tree) -> Tree:
    """Leave out an end that cannot fail: reaching it is a match, and nothing is tried again."""
    if isinstance(tree, Alternatives):
        return Alternatives(tuple(_without_free_tail(branch) for branch in tree.branches))
    if isinstance(tree, Repeat) and isinstance(tree.body, Characters):
        return Repeat(tree.body, tree.least, tree.least) if tree.least else Sequence(())
    if isinstance(tree, Sequence) and tree.items:
        last = _without_free_tail(tree.items[-1])
        if last == Sequence(()):
            return _without_free_tail(Sequence(tree.items[:-1]))
        return Sequence((*tree.items[:-1], last))
    return tree


def _starts_at_text_start(tree: Tree) -> bool:
    if isinstance(tree, Sequence):
        return bool(tree.items) and _starts_at_text_start(tree.items[0])
    if isinstance(tree, Alternatives):
        return all(_starts_at_text_start(branch) for branch in tree.branches)
    return isinstance(tree, Position) and tree.text_start


class _Walker:
    """Walks several copies of the graph along one text."""

    def __init__(self, graph: Graph, loops: Loops) -> None:
        self._masks = graph.masks
        self._follow = graph.follow
        self._loops = loops
        self._steps = 0
        self._together = self._met_pairs()

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise TooLarge

    def refuse_exponential(self) -> None:
        """Raise `Exponential` if some loop can be gone round in two ways on the same text."""
        for index in self._loops.cycles():
            inside = set(self._loops.components[index])
            edges = (edge for node in inside for edge in self._follow[node].items())
            if any(ways > 1 and target in inside for target, ways in edges):
                raise Exponential
            if self._parts_and_meets(inside):
                raise Exponential

    def _parts_and_meets(self, inside: set[int]) -> bool:
        """Tell whether two walkers can part and meet again on the same text."""
        todo = [(node, node) for node in inside]
        seen: set[tuple[int, int]] = set()
        while todo:
            pair = todo.pop()
            for following in self._next_pairs(pair, inside):
                if following[0] != following[1]:
                    if following not in seen:
                        seen.add(following)
                        todo.append(following)
                elif pair[0] != pair[1]:
                    return True
        return False

    def _next_pairs(self, pair: tuple[int, int], inside: set[int]) -> set[tuple[int, int]]:
        pairs = set()
        for left in self._follow[pair[0]]:
            if left not in inside:
                continue
            for right in self._follow[pair[1]]:
                self._count()
                if right in inside and self._masks[left] & self._masks[right]:
                    pairs.add((left, right) if left <= right else (right, left))
        return pairs

    def ways(self) -> int:
        """Bound the ways in which one start leads to one place over one text, loops aside."""
        most = [1] * len(self._loops.components)
        known: dict[frozenset[tuple[int, int]], int] = {}
        for index, sources in enumerate(self._loops.sources):
            weighted = frozenset(
                (node, self._ways_in(targets) * most[self._loops.component_of[node]])
                for node, targets in sources.items()
            )
            if weighted and weighted not in known:
                known[weighted] = self._largest_group(weighted)
            most[index] = known.get(weighted, 1)
        return max(most)

    def loops_together(self) -> int:
        """Bound the number of loops that one text can keep the engine in at the same time."""
        nodes = (node for index in self._loops.cycles() for node in self._loops.components[index])
        return max(1, self._largest_group(frozenset((node, 1) for node in nodes)))

    def _ways_in(self, targets: dict[int, int]) -> int:
        """Add up the edges from one node into one component, if they share a character."""
        together = 0
        for target in targets:
            self._count()
            if together & self._masks[target]:
                return sum(targets.values())
            together |= self._masks[target]
        return max(targets.values())

    def _met_pairs(self) -> set[tuple[int, int]]:
        """Give the pairs of nodes at which two paths from the start can be after the same text."""
        everywhere = set(range(len(self._masks)))
        todo = [(START, START)]
        seen = {(START, START)}
        while todo:
            for pair in self._next_pairs(todo.pop(), everywhere):
                if pair not in seen:
                    seen.add(pair)
                    todo.append(pair)
        return seen

    def _largest_group(self, weighted: frozenset[tuple[int, int]]) -> int:
        """Add up the ways of nodes that can be reached together, and give the largest sum."""
        best = 0
        left = dict.fromkeys(weighted)
        while left:
            group = [left.popitem()[0]]
            for node, _ in group:
                for other in list(left):
                    self._count()
                    a, b = sorted((node, other[0]))
                    if a == b or (a, b) in self._together:
                        del left[other]
                        group.append(other)
            best = max(best, sum(ways for _, ways in group))
        return best

    def longest_chain(self, *, searched: bool) -> int:
        """Count the chained pairs of loops that can share a text.

        With `searched` the search itself is a loop before all others.
        """
        longest: dict[int, int] = {}
        for later in self._loops.cycles():
            nodes = self._loops.components[later]
            best = int(searched and self._shared_with_search(nodes))
            for earlier, length in longest.items():
                if self._loops.reaches(earlier, later):
                    shared = self._shared(self._loops.components[earlier], nodes)
                    best = max(best, length + shared)
            longest[later] = best
        return max(longest.values(), default=0)

    def _shared_with_search(self, loop: tuple[int, ...]) -> bool:
        """Tell whether one text leads into the loop and also once round it."""
        return any(self._can_walk((START, node), (node, node), (None, set(loop))) for node in loop)

    def _shared(self, earlier: tuple[int, ...], later: tuple[int, ...]) -> bool:
        """Tell whether one text goes round either loop, and from the earlier to the later."""
        masks = (self._union(earlier), self._union(later))
        if not masks[0] & masks[1]:
            return False
        within = (set(earlier), None, set(later))
        return any(self._can_walk((p, p, q), (p, q, q), within) for p in earlier for q in later)

    def _union(self, loop: tuple[int, ...]) -> int:
        mask = 0
        for node in loop:
            mask |= self._masks[node]
        return mask

    def _can_walk(
        self,
        start: tuple[int, ...],
        goal: tuple[int, ...],
        within: tuple[set[int] | None, ...],
    ) -> bool:
        """Tell whether one text leads each walker from its start to its goal, within its nodes."""
        todo = [start]
        seen: set[tuple[int, ...]] = set()
        while todo:
            for following in self._next_all(todo.pop(), within):
                if following == goal:
                    return True
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return False

    def _next_all(
        self, nodes: tuple[int, ...], within: tuple[set[int] | None, ...]
    ) -> list[tuple[int, ...]]:
        partial: list[tuple[tuple[int, ...], int]] = [((), -1)]
        for node, allowed in zip(nodes, within, strict=True):
            extended = []
            for path, mask in partial:
                for target in self._follow[node]:
                    self._count()
                    shared = mask & self._masks[target]
                    if shared and (allowed is None or target in allowed):
                        extended.append(((*path, target), shared))
            partial = extended
        return [path for path, _ in partial]
