"""`govern`, `found` and the parts: what they find, what they refuse, and what they leave alone."""

import logging
from functools import partial
from typing import Any

import pytest
from graph_desk import builder_of, model_of, run, told
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableBinding, RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel.remote import RemoteGraph

import adjudge_langchain
from adjudge import (
    EphemeralLedgerWarning,
    GovernError,
    MemoryLedger,
    pause_approval,
)
from adjudge_langgraph import (
    GovernedNode,
    found,
    govern,
    governed_tool_node,
)

DENIED = "[denied] not permitted by policy"
NOTE = ("note", {"text": "x"})
SEARCH = {"type": "web_search"}

stopped_or_not = pytest.mark.parametrize("rest", ["allow", "deny"])


def outcome_of(rest: str) -> tuple[list[str], list[Any]]:
    """What a model is told and what runs, by what the policy says."""
    return ([DENIED], []) if rest == "deny" else (["noted x"], [("note", "x")])


def agent_of(tools: list[Any], **options: Any) -> Any:
    """Make an agent whose model is never asked."""
    return create_agent(ChatOpenAI(model="m", api_key="none"), tools, **options)


# Where tool nodes are


def plain(node: Any) -> Any:
    """Put the node into a graph of its own."""
    return builder_of(node, NOTE).compile()


def fanned(node: Any) -> Any:
    """Give each call a task of its own."""
    return builder_of(node, NOTE, fan_out=True).compile()


def nested(node: Any) -> Any:
    """Put the graph into another one, and that into a third."""
    inner = StateGraph(MessagesState).add_node("inner", plain(node)).add_edge(START, "inner")
    outer = StateGraph(MessagesState).add_node("outer", inner.compile()).add_edge(START, "outer")
    return outer.compile()


def in_a_sequence(node: Any) -> Any:
    """Put a step behind the node."""
    return builder_of(node | RunnableLambda(lambda given: given), NOTE).compile()


def with_a_binding(node: Any) -> Any:
    """Bind a configuration to the node."""
    return builder_of(node.with_config(tags=["x"]).with_retry(), NOTE).compile()


def with_fallbacks(node: Any) -> Any:
    """Have something else in reserve."""
    return builder_of(node.with_fallbacks([RunnableLambda(lambda given: {})]), NOTE).compile()


def in_a_closure(node: Any) -> Any:
    """Call the node in a function."""
    return builder_of(lambda state: node.invoke(state), NOTE).compile()


def in_a_partial(node: Any) -> Any:
    """Hand the node to a function."""

    def tools(inner: Any, state: MessagesState) -> Any:
        return inner.invoke(state)

    return builder_of(partial(tools, node), NOTE).compile()


def in_a_method(node: Any) -> Any:
    """Hold the node in an object, whose method is the node."""

    class Desk:
        def __init__(self) -> None:
            self.inner = node

        def tools(self, state: MessagesState) -> Any:
            return self.inner.invoke(state)

    return builder_of(Desk().tools, NOTE).compile()


def in_an_attribute(node: Any) -> Any:
    """Hold the node in an object that a function refers to."""

    class Desk:
        inner: Any

    desk = Desk()
    desk.inner = node
    return builder_of(lambda state: desk.inner.invoke(state), NOTE).compile()


def in_a_graph_in_a_closure(node: Any) -> Any:
    """Run the whole graph in a function of another one."""
    graph = plain(node)
    builder = StateGraph(MessagesState)
    return (
        builder.add_node("all", lambda state: graph.invoke(state)).add_edge(START, "all").compile()
    )


def in_an_entrypoint(node: Any) -> Any:
    """Call the node in a task of the functional API."""

    @task
    def tools(state: Any) -> Any:
        return node.invoke(state)

    @entrypoint()
    def graph(state: Any) -> Any:
        message = model_of(NOTE)(state)["messages"][0]
        return {"messages": [message, *tools({"messages": [message]}).result()["messages"]]}

    return graph


PLACES = [
    plain,
    fanned,
    nested,
    in_a_sequence,
    with_a_binding,
    with_fallbacks,
    in_a_closure,
    in_a_partial,
    in_a_method,
    in_an_attribute,
    in_a_graph_in_a_closure,
    in_an_entrypoint,
]


class TestFinding:
    @stopped_or_not
    @pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
    def test_wherever_a_tool_node_is(self, guard_of, note, ran, place, rest):
        """`govern` in one line governs it, running and stopped."""
        graph = place(ToolNode([note]))

        assert graph is govern(graph, guard_of(rest=rest))

        assert outcome_of(rest) == (told(graph.invoke({"messages": []})), ran)
        assert [("note",)] == [each.tools for each in found(graph)]

    @stopped_or_not
    def test_the_agent_of_create_agent(self, guard_of, note, ran, rest):
        """An agent is a graph; its tools are found in it."""
        graph = govern(agent_of([note]), guard_of(rest=rest))
        (node,) = found(graph)
        inner = graph.nodes["tools"].bound.tools_by_name["note"]

        assert GovernedNode(("tools",), ("note",)) == node
        assert outcome_of(rest) == ([inner.invoke({"text": "x"})], ran)

    def test_says_what_it_found(self, guard_of, note, pay, caplog):
        """The log and `found` name the way to each node, and its tools."""
        with caplog.at_level(logging.INFO, "adjudge_langgraph"):
            graph = govern(nested(ToolNode([note, pay])), guard_of())

        assert (GovernedNode(("outer", "inner", "tools"), ("note", "pay")),) == found(graph)
        assert ["Governed tools of outer > inner > tools: note, pay"] == caplog.messages
        assert () == found(plain(ToolNode([note])))

    def test_tools_that_a_wrapper_brings(self, guard_of, note, ran):
        """A tool that exists for one call alone is governed inside of the wrapper."""

        def bring(request: Any, execute: Any) -> Any:
            return execute(request.override(tool=note))

        graph = govern(plain(ToolNode([], wrap_tool_call=bring)), guard_of(rest="deny"))

        assert outcome_of("deny") == (told(run(graph)), ran)

    def test_the_same_guard_again(self, guard_of, note, record):
        """Each call is judged once, however often a graph is governed and by whom."""
        guard = guard_of()
        node = ToolNode(adjudge_langchain.govern([note], guard))
        graph = govern(govern(plain(node), guard), guard)

        run(graph)

        assert ["action.completed"] == record.ends

    def test_an_agent_under_both(self, guard_of, note, pausing):
        """What `adjudge_langchain` governs already stays so."""
        guard = guard_of()
        agent = govern(adjudge_langchain.govern(agent_of([note]), guard), guard)

        assert [("note",)] == [each.tools for each in found(agent)]


class TestRefusals:
    def test_another_guard(self, guard_of, note, pay):
        """A graph has one guard, and a refused `govern` has changed nothing."""
        inner = plain(ToolNode([note]))
        outer = StateGraph(MessagesState).add_node("tools", ToolNode([pay]))
        outer.add_node("inner", inner).add_edge(START, "inner")
        govern(inner, guard_of())
        graph = outer.compile()

        with pytest.raises(GovernError, match="another guard"):
            govern(graph, guard_of())

        assert [("note",)] == [each.tools for each in found(graph)]

    def test_a_graph_without_tool_nodes(self, guard_of):
        """What offers no place to stand is refused, with what to do."""
        builder = StateGraph(MessagesState).add_node("a", lambda state: {}).add_edge(START, "a")

        with pytest.raises(GovernError, match="governed_tool_node"):
            govern(builder.compile(), guard_of())

    def test_a_node_that_runs_tools_by_hand(self, guard_of, note, pay, ran):
        """Tools that a node looks up by itself run past any guard, so they are refused.

        https://github.com/langchain-ai/langgraph/issues/7655
        """
        by_name = {"note": note}

        def tools(state: MessagesState) -> Any:
            call = state["messages"][-1].tool_calls[0]
            return {"messages": [by_name[call["name"]].invoke(call)]}

        builder = builder_of(tools, NOTE).add_node("others", ToolNode([pay]))

        with pytest.raises(GovernError, match="'note' for itself"):
            govern(builder.compile(), guard_of())
        govern(builder.compile(), guard_of(), ungoverned=["note"])
        by_name["note"] = adjudge_langchain.govern(note, guard := guard_of(rest="deny"))
        graph = govern(builder_of(tools, NOTE).compile(), guard)

        assert ([DENIED], []) == (told(run(graph)), ran)

    def test_a_node_that_looks_up_the_tools_of_another(self, guard_of, note):
        """That a tool node has a tool is no reason to let another node call it by hand."""
        by_name = {"note": note}
        builder = builder_of(ToolNode([note]), NOTE)
        builder.add_node("by hand", lambda state: by_name["note"].invoke({"text": "x"}))

        with pytest.raises(GovernError, match="'by hand' holds the tool 'note'"):
            govern(builder.compile(), guard_of())

    def test_a_function_of_another_package(self, guard_of, note, ran):
        """Functions that a node calls are looked at, wherever they come from."""
        library = {"__name__": "elsewhere", "node": ToolNode([note])}
        exec("def tools(state): return node.invoke(state)", library)
        called = library["tools"]

        graph = govern(
            builder_of(lambda state: called(state), NOTE).compile(), guard_of(rest="deny")
        )

        assert outcome_of("deny") == (told(run(graph)), ran)

    def test_a_list_of_the_nodes_own_tools_is_told_to_models(self, guard_of, note):
        """A model's node that knows the tools of the tool node is no reason to refuse."""
        tools, asks = [note], model_of(NOTE)

        def model(state: MessagesState) -> Any:
            assert tools
            return asks(state)

        builder = StateGraph(MessagesState).add_node("model", model)
        builder.add_node("tools", ToolNode(tools)).add_edge(START, "model")
        graph = govern(builder.compile(), guard_of())

        assert [("note",)] == [each.tools for each in found(govern(graph, graph_guard(graph)))]

    def test_a_graph_that_runs_elsewhere(self, guard_of, note):
        """A remote graph is refused, unless it is named."""
        remote = RemoteGraph("assistant", url="http://127.0.0.1:1")
        builder = builder_of(ToolNode([note]), NOTE).add_node("remote", remote)

        with pytest.raises(GovernError, match="runs elsewhere"):
            govern(builder.compile(), guard_of())
        assert found(govern(builder.compile(), guard_of(), ungoverned=["remote"]))

    @pytest.mark.parametrize("target", [print, object(), [], StateGraph(MessagesState), END])
    def test_what_is_no_graph(self, guard_of, target):
        """A builder that is not compiled yet, and all else, is refused."""
        with pytest.raises(GovernError, match="compile"):
            govern(target, guard_of())

    def test_settings(self, guard_of, note):
        """Settings are checked as everywhere."""
        with pytest.raises(GovernError, match="hosted"):
            govern(plain(ToolNode([note])), guard_of(), hosted="no")
        with pytest.raises(GovernError, match="ToolGuard"):
            governed_tool_node([note], object())

    def test_a_ledger_in_memory_warns(self, guard_of, note):
        """A pause that does not outlive the process is worth a word."""
        guard = guard_of(on_approval=pause_approval(MemoryLedger()))

        with pytest.warns(EphemeralLedgerWarning):
            govern(plain(ToolNode([note])), guard)


def graph_guard(graph: Any) -> Any:
    """Give the guard that a graph is under."""
    from adjudge_langchain.integration import binding_over

    return binding_over(graph).guard


class TestHosted:
    def builder(self, note: Any, *tools: Any) -> tuple[Any, RunnableBinding]:
        """Build a graph whose model has tools at its provider."""
        bound: Any = RunnableLambda(lambda given: AIMessage("done")).bind(tools=list(tools))
        builder = StateGraph(MessagesState)
        builder.add_node("model", lambda state: {"messages": [bound.invoke("x")]})
        builder.add_node("tools", ToolNode([note])).add_edge(START, "model")
        return builder, bound

    def test_is_refused(self, guard_of, note):
        """What runs at the provider is seen where the model's tools are bound."""
        builder, _ = self.builder(note, {"type": "function", "function": {}}, SEARCH)

        with pytest.raises(GovernError, match="'web_search' runs at the provider"):
            govern(builder.compile(), guard_of())

    @pytest.mark.parametrize(
        ("settings", "left"),
        [
            ({"hosted": "strip"}, ["function"]),
            ({"hosted": "allow"}, ["function", "web_search", "code_interpreter"]),
            (
                {"ungoverned": ["web_search", "code_interpreter"]},
                ["function", "web_search", "code_interpreter"],
            ),
            ({"hosted": "strip", "ungoverned": ["web_search"]}, ["function", "web_search"]),
        ],
    )
    def test_unless_told_otherwise(self, guard_of, note, settings, left):
        """They are left out, or let through, as for agents."""
        offered = [{"type": "function"}, SEARCH, {"type": "code_interpreter"}]
        builder, bound = self.builder(note, *offered)

        govern(builder.compile(), guard_of(), **settings)

        assert left == [each["type"] for each in bound.kwargs["tools"]]

    def test_of_an_agent_inside(self, guard_of, note):
        """The model of an agent that a graph contains is looked at as well."""
        agent = agent_of([note, SEARCH])
        builder = StateGraph(MessagesState).add_node("agent", agent).add_edge(START, "agent")

        with pytest.raises(GovernError, match="web_search"):
            govern(builder.compile(), guard_of())
