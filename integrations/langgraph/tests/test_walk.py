"""Where functions, objects and edges of a graph hold tool nodes and tools (law 3)."""

import functools
import time
import types
from collections import UserList, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from graph_desk import builder_of, told
from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
)
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from adjudge import GovernError
from adjudge_langgraph import govern

PAY = {"type": "tool_call", "name": "pay", "args": {"amount": 1}, "id": "1"}
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


class OwnDeep(Runnable[Any, Any]):
    """A runnable of somebody's own, with a node two objects deep."""

    def __init__(self, inner: Any) -> None:
        self.held = Held(inner)

    def invoke(self, input: Any, config: Any = None, **named: Any) -> Any:
        """Run what is inside."""
        return self.held.inner.invoke(input, config)


class Above:
    """A class of which others are made."""

    inner: Any

    def run(self, state: MessagesState) -> Any:
        """Run what the class has."""
        return self.inner.invoke(state)

    @classmethod
    def of_class(cls, state: MessagesState) -> Any:
        """Run what the class has, without an object."""
        return cls.inner.invoke(state)


def in_what_a_method_overrides(node: Any) -> Any:
    """Run the node in the method that another takes the place of."""

    class Desk(Above):
        def run(self, state: MessagesState) -> Any:
            return super().run(state)

    Desk.inner = node
    return Desk().run


def in_a_class_method(node: Any) -> Any:
    """Find the node in the class of a class method."""
    return type("Desk", (Above,), {"inner": node}).of_class  # type: ignore[attr-defined]


def in_a_runnables_class(node: Any) -> Any:
    """Find the node in the class of a runnable."""

    class Desk(Own):
        inner: Any = node

        def __init__(self) -> None:
            """Hold nothing."""

    return Desk()


def in_a_deque(node: Any) -> Any:
    """Hold the node in a deque."""
    nodes = deque([node])
    return lambda state: nodes[0].invoke(state)


def in_a_list_of_ones_own(node: Any) -> Any:
    """Hold the node in an object that is like a list."""
    nodes = UserList([node])
    return lambda state: nodes[0].invoke(state)


def behind_a_look_up(node: Any) -> Any:
    """Look the node up by the method of a dict."""
    find = {"tools": node}.get
    return lambda state: find("tools").invoke(state)  # type: ignore[union-attr]


def in_a_node_of_ones_own(node: Any) -> Any:
    """Hold the node in a tool node of a class of one's own."""

    class Desk(ToolNode):
        def invoke(self, input: Any, config: Any = None, **named: Any) -> Any:
            return self.held.invoke(input, config)

    desk: Any = Desk([])
    desk.held = node
    return desk


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
    OwnDeep,
    in_what_a_method_overrides,
    in_a_class_method,
    in_a_runnables_class,
    in_a_deque,
    in_a_list_of_ones_own,
    behind_a_look_up,
    in_a_node_of_ones_own,
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


def arguments(state: MessagesState) -> Any:
    """Give the arguments of the call."""
    return state["messages"][-1].tool_calls[0]["args"]  # type: ignore[union-attr]


HANDS: dict[str, Any] = {
    "sequence": lambda tool: RunnableLambda(arguments) | tool | RunnableLambda(str),
    "bound": lambda tool: tool,
    "parallel": lambda tool: RunnableLambda(arguments) | RunnableParallel(messages=tool),
    "branch": lambda tool: RunnableBranch((lambda state: True, tool), RunnableLambda(str)),
    "retry": lambda tool: tool.with_retry(),
    "fallback": lambda tool: RunnableLambda(str).with_fallbacks([tool]),
    "method": lambda tool: functools.partial(lambda run, state: run(state), tool.invoke),
    "look-up": lambda tool: functools.partial(lambda find, state: find("x"), {"x": tool}.get),
}


@pytest.mark.parametrize("held", HANDS)
def test_a_tool_that_is_held_in_order_to_be_run(guard_of, note, held):
    """A chain with a tool in it runs it, so it is refused beside a tool node that has it, too."""
    builder = StateGraph(MessagesState).add_node("chain", HANDS[held](note))
    builder.add_edge(START, "chain")
    builder.add_node("others", ToolNode([note]))

    with pytest.raises(GovernError, match="'note' for itself"):
        govern(builder.compile(), guard_of())


def test_in_what_wraps_calls(guard_of, note, pay, ran):
    """A tool node that a wrapper holds is governed, and tools that it brings are not refused."""
    inside = ToolNode([note])
    asked = builder_of(inside, NOTE).compile()

    def wrap(request: Any, execute: Any) -> Any:
        asked.invoke({"messages": []})
        return execute(request.override(tool=[note, pay][1], tool_call=PAY))

    node = ToolNode([note], wrap_tool_call=wrap)
    graph = govern(builder_of(node, NOTE).compile(), guard_of(rest="deny"))
    state = graph.invoke({"messages": []})

    assert ([DENIED], []) == (told(state), ran)


def test_a_tool_node_keeps_its_wrappers_where_we_look_for_them(note):
    """They have no public place: this fails when LangGraph keeps them elsewhere."""

    def wrap(request: Any, execute: Any) -> Any:
        return execute(request)

    async def awrap(request: Any, execute: Any) -> Any:
        return await execute(request)

    node = ToolNode([note], wrap_tool_call=wrap, awrap_tool_call=awrap)

    assert (wrap, awrap) == (node._wrap_tool_call, node._awrap_tool_call)


def test_in_what_wraps_calls_and_runs_tools(guard_of, note):
    """What a wrapper may hold, a node may not: tools by name that it runs by hand."""
    held = {"pay": note}

    def wrap(request: Any, execute: Any) -> Any:
        return execute(request.override(tool=held["pay"]))

    def by_hand(state: MessagesState) -> Any:
        return {"messages": [held["pay"].invoke(state)]}

    builder = builder_of(ToolNode([note], wrap_tool_call=wrap), NOTE)
    inner = StateGraph(MessagesState).add_node("by hand", by_hand).add_edge(START, "by hand")
    builder.add_node("others", inner.compile())

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


class Waiting(list):  # type: ignore[type-arg]
    """A list that loads its items when asked."""

    def __iter__(self) -> Any:
        """Load."""
        raise RuntimeError


class Loading(dict):  # type: ignore[type-arg]
    """A dict that loads its values when asked."""

    def values(self) -> Any:
        """Load."""
        raise RuntimeError


def holding() -> Held:
    """Hold such a thing."""
    return Held(Proxy())


@pytest.mark.parametrize("make", [Lazy, Proxy, Loading, Waiting, holding])
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
