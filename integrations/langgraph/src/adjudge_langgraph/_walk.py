"""What a compiled graph is made of: its tool nodes, wherever the graph's nodes hold them.

Walked are subgraphs, sequences, branches, fallbacks and what the functions of nodes and edges refer
to: the values in their closures and defaults, the globals that they name, attributes of these, and
the objects that they belong to. What only a tool's body holds is outside, and so is what a function
makes or looks up when it runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, NamedTuple

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.pregel.remote import RemoteGraph

from adjudge_langgraph._made import is_told, made_of, parts_of, values_of

__all__ = ["FoundNode", "LooseTool", "Parts", "Path", "tools_of", "walk"]

Path = tuple[str, ...]
"""The names of the nodes that lead to a place."""
_BUILT_IN = frozenset({dict, list, tuple, set, frozenset})
_PLAIN = frozenset({str, bytes, int, float, bool, complex, type(None)})


class FoundNode(NamedTuple):
    """A tool node, where it is, and whether the graphs around keep where they are."""

    path: Path
    node: ToolNode
    lasting: bool


class LooseTool(NamedTuple):
    """A tool that a node holds for itself; `by_name` where it is looked up in a mapping."""

    path: Path
    tool: BaseTool
    by_name: bool
    holder: Any
    """The graph's node."""


@dataclass(slots=True)
class Parts:
    """What was found in a graph."""

    tool_nodes: list[FoundNode] = field(default_factory=list)
    models: list[Runnable[Any, Any]] = field(default_factory=list)
    """The nodes of `create_agent` that ask a model."""
    bindings: list[Any] = field(default_factory=list)
    """What tools were bound to."""
    tools: list[LooseTool] = field(default_factory=list)
    remote: list[Path] = field(default_factory=list)


def walk(graph: Pregel[Any, Any, Any, Any]) -> Parts:
    """Find the parts of a graph."""
    walking = _Walk()
    walking.enter(graph, (), lasting=True)
    while walking.ahead:
        walking.step(walking.ahead.popleft())
    return walking.parts


def tools_of(graph: Pregel[Any, Any, Any, Any]) -> Iterator[BaseTool]:
    """Give the tools of a graph as they are found, those of its own nodes first."""
    walking = _Walk()
    walking.enter(graph, (), lasting=True)
    while walking.ahead:
        walking.step(walking.ahead.popleft())
        while walking.parts.tool_nodes:
            yield from walking.parts.tool_nodes.pop().node.tools_by_name.values()
        while walking.parts.tools:
            yield walking.parts.tools.pop().tool


class _Place(NamedTuple):
    """Something that a node is made of, still to be looked at."""

    found: Any
    path: Path
    holder: Any
    lasting: bool
    by_name: bool = False


class _Walk:
    def __init__(self) -> None:
        self.parts = Parts()
        self.ahead: deque[_Place] = deque()
        self._seen: dict[Any, Any] = {}  # held, so that no id comes twice

    def enter(self, graph: Pregel[Any, Any, Any, Any], path: Path, *, lasting: bool) -> None:
        """Look at the nodes of a graph, and then at its edges."""
        lasting = lasting and graph.checkpointer is not False
        for name, node in graph.nodes.items():
            self.ahead.append(_Place(node.bound, (*path, str(name)), node, lasting))
        for name, node in graph.nodes.items():
            self.ahead.append(_Place(node.writers, (*path, str(name)), node, lasting))

    def step(self, place: _Place) -> None:
        """Look at one thing."""
        found = place.found
        if type(found) in _BUILT_IN:
            if self._is_new(found):
                by_name = type(found) is dict
                self._later(found.values() if by_name else found, place, by_name=by_name)
        elif is_told(found):
            self._object(found, place)

    def _object(self, found: Any, place: _Place) -> None:
        if isinstance(found, BaseTool):
            self.parts.tools.append(LooseTool(place.path, found, place.by_name, place.holder))
            return
        if not self._is_new(found):
            return
        if isinstance(found, ToolNode):
            self.parts.tool_nodes.append(FoundNode(place.path, found, place.lasting))
        elif isinstance(found, RemoteGraph):
            self.parts.remote.append(place.path)
        elif isinstance(found, Pregel):
            self.enter(found, place.path, lasting=place.lasting)
        elif isinstance(found, Runnable):
            self._runnable(found, place)
        elif isinstance(found, Mapping):
            self._later(values_of(found), place, by_name=True)
        elif isinstance(found, list | tuple | set | frozenset):
            self._later(found, place)
        else:
            self._later(made_of(found), place)

    def _is_new(self, found: Any) -> bool:
        key: Any = id(found)
        if isinstance(found, MethodType):
            key = (id(found.__self__), id(found.__func__))  # made anew whenever it is looked up
        if key in self._seen:
            return False
        self._seen[key] = found
        return True

    def _later(self, values: Iterable[Any], place: _Place, *, by_name: bool = False) -> None:
        ahead = [each for each in values if type(each) not in _PLAIN]
        _, path, holder, lasting, _ = place
        self.ahead.extend(_Place(each, path, holder, lasting, by_name) for each in ahead)

    def _runnable(self, found: Runnable[Any, Any], place: _Place) -> None:
        if _asks_a_model(found):
            self.parts.models.append(found)
            return
        if "tools" in (vars(found).get("kwargs") or {}):
            self.parts.bindings.append(found)
        self._later(parts_of(found), place)


def _asks_a_model(found: Any) -> bool:
    function = vars(found).get("func")
    # A test fails when an agent asks its model elsewhere.
    return (
        getattr(function, "__module__", None) == "langchain.agents.factory"
        and getattr(function, "__name__", None) == "model_node"
    )
