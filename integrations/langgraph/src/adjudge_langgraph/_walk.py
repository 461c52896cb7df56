"""What a compiled graph is made of: its tool nodes, wherever the graph's nodes hold them.

Walked are subgraphs, sequences, branches, fallbacks and what the functions of nodes refer to: the
values in their closures, the globals that they name, attributes of these, and the objects that
their methods belong to. What only a tool's body holds is outside, and so is what a function makes
when it runs.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import RetryPolicy

__all__ = ["FoundNode", "LooseTool", "Parts", "Path", "walk"]

Path = tuple[str, ...]
"""The names of the nodes that lead to a place."""
# Their functions run no tool by themselves, but what their nodes are made of is in them.
_FRAMEWORK = ("langchain", "langchain_core", "langgraph", "adjudge_langchain", "adjudge_langgraph")
_OWN = frozenset({*_FRAMEWORK, *sys.stdlib_module_names} - {"__main__"})
_CONTAINERS: tuple[type, ...] = (list, tuple, set, frozenset)
# Where runnables keep the runnables and functions that they are made of.
_PARTS = (
    "first",
    "middle",
    "last",
    "steps",
    "steps__",
    "bound",
    "func",
    "afunc",
    "mapper",
    "runnable",
    "fallbacks",
    "branches",
    "default",
)


class FoundNode(NamedTuple):
    """A tool node, where it is, and how often it is tried."""

    path: Path
    node: ToolNode
    retry: Sequence[RetryPolicy]


class LooseTool(NamedTuple):
    """A tool that a node holds for itself; `by_name` where it is looked up in a mapping."""

    path: Path
    tool: BaseTool
    by_name: bool


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
    walking.enter(graph, ())
    while walking.ahead:
        walking.step(walking.ahead.popleft())
    return walking.parts


class _Place(NamedTuple):
    """Something that a node is made of, still to be looked at."""

    found: Any
    path: Path
    retry: Sequence[RetryPolicy]
    by_name: bool = False


class _Walk:
    def __init__(self) -> None:
        self.parts = Parts()
        self.ahead: deque[_Place] = deque()
        self._seen: dict[int, Any] = {}  # held, so that no id comes twice

    def enter(self, graph: Pregel[Any, Any, Any, Any], path: Path) -> None:
        """Look at the nodes of a graph."""
        for name, node in graph.nodes.items():
            here = (*path, str(name))
            self.ahead.append(_Place(node.bound, here, node.retry_policy or ()))

    def step(self, place: _Place) -> None:
        """Look at one thing."""
        found = place.found
        if isinstance(found, BaseTool):
            self.parts.tools.append(LooseTool(place.path, found, place.by_name))
            return
        if id(found) in self._seen:
            return
        self._seen[id(found)] = found
        if isinstance(found, ToolNode):
            self.parts.tool_nodes.append(FoundNode(place.path, found, place.retry))
        elif isinstance(found, RemoteGraph):
            self.parts.remote.append(place.path)
        elif isinstance(found, Pregel):
            self.enter(found, place.path)
        elif isinstance(found, Runnable):
            self._runnable(found, place)
        elif isinstance(found, Mapping):
            self._later(found.values(), place, by_name=True)
        elif isinstance(found, _CONTAINERS):
            self._later(place.found, place)
        else:
            self._later(_made_of(found), place)

    def _later(self, values: Iterable[Any], place: _Place, *, by_name: bool = False) -> None:
        self.ahead.extend(_Place(each, place.path, place.retry, by_name) for each in tuple(values))

    def _runnable(self, found: Runnable[Any, Any], place: _Place) -> None:
        if _asks_a_model(found):
            self.parts.models.append(found)
            return
        held = vars(found)
        if "tools" in (held.get("kwargs") or {}):
            self.parts.bindings.append(found)
        self._later((held[name] for name in _PARTS if name in held), place)


def _made_of(found: Any) -> Iterator[Any]:
    """Give what a function, or something like one, is made of; nothing for all else."""
    if isinstance(found, partial):
        yield from (found.func, *found.args, *found.keywords.values())
    elif isinstance(found, MethodType):
        owner = found.__self__
        held = isinstance(owner, type | Runnable)
        yield from (owner,) if held else getattr(owner, "__dict__", {}).values()
        yield found.__func__
    elif isinstance(found, FunctionType):
        if _package(found) not in _OWN:
            yield from _referred(found)
    elif _package(type(found)) == "langgraph":
        yield getattr(found, "func", None)  # a task of the functional API


def _referred(function: FunctionType) -> Iterator[Any]:
    """Give the values that a function reaches by name, and those of their attributes it names."""
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for value in _named(function, names):
        yield value
        if not isinstance(value, ModuleType | type | Runnable | FunctionType):
            held = getattr(value, "__dict__", {})
            yield from (held[name] for name in sorted(names & held.keys()))


def _named(function: FunctionType, names: set[str]) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not bound yet
    for name in sorted(names & function.__globals__.keys()):
        yield function.__globals__[name]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _package(found: Any) -> str:
    return (getattr(found, "__module__", None) or "").partition(".")[0]


def _asks_a_model(found: Any) -> bool:
    function = vars(found).get("func")
    # A test fails when an agent asks its model elsewhere.
    return (
        getattr(function, "__module__", None) == "langchain.agents.factory"
        and getattr(function, "__name__", None) == "model_node"
    )
