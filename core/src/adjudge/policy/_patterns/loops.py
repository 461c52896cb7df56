"""The loops of a position graph: its strongly connected components and what reaches what."""

from __future__ import annotations

from adjudge.policy._patterns.graph import START, Graph

__all__ = ["Loops"]


class Loops:
    """The components that the start reaches; one that reaches another has the lower index."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.components = _components(graph)
        self.component_of = {
            node: index for index, nodes in enumerate(self.components) for node in nodes
        }
        # One bit for each component that is reached.
        self._reached = [0] * len(self.components)
        self.sources: list[dict[int, dict[int, int]]] = [{} for _ in self.components]
        for index in reversed(range(len(self.components))):
            self._note_edges(index)

    def _note_edges(self, index: int) -> None:
        for node in self.components[index]:
            for target, ways in self._graph.follow[node].items():
                other = self.component_of[target]
                if other != index:
                    self._reached[index] |= 1 << other | self._reached[other]
                    self.sources[other].setdefault(node, {})[target] = ways

    def cycles(self) -> list[int]:
        """Give the components that can be gone round."""
        return [index for index in range(len(self.components)) if self._is_cycle(index)]

    def _is_cycle(self, index: int) -> bool:
        nodes = self.components[index]
        return len(nodes) > 1 or nodes[0] in self._graph.follow[nodes[0]]

    def reaches(self, earlier: int, later: int) -> bool:
        """Tell whether there is a way from one component to another."""
        return bool(self._reached[earlier] >> later & 1)


def _components(graph: Graph) -> list[tuple[int, ...]]:
    """Tarjan's algorithm without recursion; it gives the last components first."""
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    found: list[tuple[int, ...]] = []
    work = [(START, iter(graph.follow[START]))]
    numbers[START] = lowest[START] = 0
    open_nodes.append(START)
    is_open.add(START)
    while work:
        node, targets = work[-1]
        for target in targets:
            if target not in numbers:
                numbers[target] = lowest[target] = len(numbers)
                open_nodes.append(target)
                is_open.add(target)
                work.append((target, iter(graph.follow[target])))
                break
            if target in is_open:
                lowest[node] = min(lowest[node], numbers[target])
        else:
            work.pop()
            if work:
                parent = work[-1][0]
                lowest[parent] = min(lowest[parent], lowest[node])
            if lowest[node] == numbers[node]:
                found.append(_popped_until(node, open_nodes))
                is_open.difference_update(found[-1])
    found.reverse()
    return found


def _popped_until(node: int, open_nodes: list[int]) -> tuple[int, ...]:
    popped = [open_nodes.pop()]
    while popped[-1] != node:
        popped.append(open_nodes.pop())
    return tuple(popped)
