"""Where functions, objects and edges of a graph hold tool nodes and tools (law 3)."""

import functools
import time
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from graph_desk import builder_of, told
from langchain_core.runnables import Runnable, RunnableGenerator
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from adjudge import GovernError
from adjudge_langgraph import govern

DENIED = "[denied] not permitted by policy"
NOTE = ("note", {"text": "x"})


@dataclass
class Held:
    """Something that holds something else."""

    inner: Any


class Calling:
    """An object that is a node."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __call__(self, state: MessagesState) -> Any:
        """Run what is inside."""
        return self.inner.invoke(state)


class Slotted:
    """An object that holds a node in a slot."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def run(self, state: MessagesState) -> Any:
        """Run what is inside."""
        return self.inner.invoke(state)


class Deep:
    """An object that holds a node two objects deep."""

    def __init__(self, inner: Any) -> None:
        self.held = Held(Held(inner))

    def run(self, state: MessagesState) -> Any:
        """Run what is inside."""
        return self.held.inner.inner.invoke(state)


class Own(Runnable[Any, Any]):
    """A runnable of somebody's own."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def invoke(self, input: Any, config: Any = None, **named: Any) -> Any:
        """Run what is inside."""
        return self.inner.invoke(input, config)


def in_a_module(node: Any) -> Any:
    """Find the node in a module."""
    module: Any = types.ModuleType("desk")
    module.node = node
    return lambda state: module.node.invoke(state)


def in_a_class(node: Any) -> Any:
    """Find the node in a class."""

    class Desk:
        inner: Any = node

    return lambda state: Desk.inner.invoke(state)


def in_a_default(node: Any) -> Any:
    """Have the node as a default."""

    def tools(state: MessagesState, inner: Any = node) -> Any:
        return inner.invoke(state)

    return tools


def in_a_named_default(node: Any) -> Any:
    """Have the node as a default of a named argument."""

    def tools(state: MessagesState, *, inner: Any = node) -> Any:
        return inner.invoke(state)

    return tools


def deep_in_an_object(node: Any) -> Any:
    """Find the node in an object in an object."""
    desk = Held(Held(node))
    return lambda state: desk.inner.inner.invoke(state)


def behind_a_cache(node: Any) -> Any:
    """Get the node from a cached function."""

    @functools.cache
    def found() -> Any:
        return node

    return lambda state: found().invoke(state)


def behind_a_dispatch(node: Any) -> Any:
    """Run the node in a function chosen by type."""

    @functools.singledispatch
    def tools(state: Any) -> Any:
        raise TypeError

    @tools.register
    def _(state: dict) -> Any:  # type: ignore[type-arg]
        return node.invoke(state)

    return lambda state: tools(state)


def in_a_generator(node: Any) -> Any:
    """Run the node in a generator."""

    def tools(states: Any) -> Any:
        for state in states:
            yield node.invoke(state)

    return RunnableGenerator(tools)


def in_a_slot(node: Any) -> Any:
    """Hold the node in a slot."""
    return Slotted(node).run


def deep_in_itself(node: Any) -> Any:
    """Hold the node deep in the object whose method is the node."""
    return Deep(node).run


PLACES: list[Any] = [
    Calling,
    in_a_slot,
    deep_in_itself,
    Own,
    in_a_module,
    in_a_class,
    in_a_default,
    in_a_named_default,
    deep_in_an_object,
    behind_a_cache,
    behind_a_dispatch,
    in_a_generator,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_tool_node_is_found(guard_of, note, pay, ran, place):
    """Beside another tool node, too, with which `govern` would have been content."""
    builder = builder_of(place(ToolNode([note])), NOTE).add_node("others", ToolNode([pay]))

    state = govern(builder.compile(), guard_of(rest="deny")).invoke({"messages": []})

    assert ([DENIED], []) == (told(state), ran)


def test_on_an_edge(guard_of, note, pay, ran):
    """The function of a conditional edge is looked at as well."""
    node = ToolNode([note])

    def route(state: MessagesState) -> str:
        node.invoke(state)
        return END

    builder = StateGraph(MessagesState).add_node("others", ToolNode([pay]))
    builder.add_node("model", builder_of(node, NOTE).nodes["model"].runnable)
    builder.add_edge(START, "model").add_conditional_edges("model", route, [END, "others"])

    govern(builder.compile(), guard_of(rest="deny")).invoke({"messages": []})

    assert [] == ran


@pytest.mark.parametrize("deep", [False, True])
def test_an_object_that_runs_tools_by_hand(guard_of, note, pay, deep):
    """The node of LangGraph's tutorial, an object with tools in it, is refused."""

    class Basic:
        def __init__(self) -> None:
            self.by_name = {"note": note}

        def __call__(self, state: MessagesState) -> Any:
            calls = state["messages"][-1].tool_calls  # type: ignore[union-attr]
            return {"messages": [self.by_name[call["name"]].invoke(call) for call in calls]}

    held = Held(Basic())
    run: Any = (lambda state: held.inner(state)) if deep else Basic()
    builder = builder_of(run, NOTE).add_node("others", ToolNode([note, pay]))

    with pytest.raises(GovernError, match="'note' for itself"):
        govern(builder.compile(), guard_of())


class Lazy(Mapping[str, Any]):
    """A mapping that cannot be read now."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError

    def __iter__(self) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        return 1


class Proxy:
    """Something that stands for what is not there yet."""

    @property
    def __class__(self) -> Any:
        """Say what it stands for."""
        raise RuntimeError


class Loading(dict):  # type: ignore[type-arg]
    """A dict that loads its values when asked."""

    def values(self) -> Any:
        """Load."""
        raise RuntimeError


def holding() -> Held:
    """Hold such a thing."""
    return Held(Proxy())


@pytest.mark.parametrize("make", [Lazy, Proxy, Loading, holding])
def test_what_cannot_be_looked_at(guard_of, note, make):
    """What raises when it is looked at is passed over, and nothing of it is run."""
    odd = make()

    def other(state: MessagesState) -> Any:
        return {"messages": []} if odd.inner is None else {}

    builder = builder_of(ToolNode([note]), NOTE).add_node("other", other)

    assert ["noted x"] == told(govern(builder.compile(), guard_of()).invoke({"messages": []}))


def test_a_large_list(guard_of, note):
    """Values that can hold no tool cost next to nothing."""
    numbers = list(range(1_000_000))

    def other(state: MessagesState) -> Any:
        return {"messages": [str(len(numbers))]}

    builder = builder_of(ToolNode([note]), NOTE).add_node("other", other)
    began = time.process_time()
    govern(builder.compile(), guard_of())

    assert time.process_time() - began < 1
