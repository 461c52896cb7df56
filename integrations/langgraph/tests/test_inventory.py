"""What LangGraph has that could reach a body: an inventory that notices what is new (law 3)."""

import inspect
import re
from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph import func
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

import adjudge_langgraph
from adjudge_conformance.inventory import public_callables, unlisted

NODE = "test_bypasses::test_a_run_of_the_node"
GRAPH = "test_bypasses::test_a_run_of_the_graph"
WRITTEN = "test_bypasses::test_a_state_that_is_written"
TASKS = "test_bypasses::test_a_governed_tool_in_a_task"

_RUN = [
    "abatch",
    "abatch_as_completed",
    "ainvoke",
    "astream",
    "astream_events",
    "atransform",
    "batch",
    "batch_as_completed",
    "bind",
    "invoke",
    "map",
    "pipe",
    "stream",
    "transform",
    "with_config",
    "with_fallbacks",
    "with_listeners",
    "with_retry",
    "with_types",
]
_SAME = {
    "assign": "makes a sequence, which invokes",
    "astream_log": "streams, through ainvoke",
    "pick": "makes a sequence, which invokes",
    "with_alisteners": "binds, and invokes",
}
_READS = dict.fromkeys(
    [
        "config_schema",
        "get_config_jsonschema",
        "get_graph",
        "get_input_jsonschema",
        "get_input_schema",
        "get_name",
        "get_output_jsonschema",
        "get_output_schema",
        "get_prompts",
    ],
    "describes",
)
_GRAPH_READS = dict.fromkeys(
    [
        "aclear_cache",
        "aget_graph",
        "aget_state",
        "aget_state_history",
        "aget_subgraphs",
        "attach_branch",
        "attach_edge",
        "attach_node",
        "clear_cache",
        "get_context_jsonschema",
        "get_state",
        "get_state_history",
        "get_subgraphs",
        "validate",
    ],
    "builds or reads the graph",
)
_WRITES = ["abulk_update_state", "aupdate_state", "bulk_update_state", "update_state"]
_GRAPH = dict.fromkeys([*_RUN, "as_tool", "copy", "stream_events"], GRAPH)
_GRAPH |= dict.fromkeys(_WRITES, WRITTEN)

REACHES = {
    "ToolNode": dict.fromkeys(_RUN, NODE),
    "Pregel": _GRAPH,
    "CompiledStateGraph": _GRAPH,
}
HARMLESS = {
    "ToolNode": {
        **_SAME,
        **_READS,
        "as_tool": "hands no graph's config on, without which the node raises",
        "stream_events": "streams, through invoke",
    },
    "Pregel": {**_SAME, **_READS, **_GRAPH_READS},
    "CompiledStateGraph": {**_SAME, **_READS, **_GRAPH_READS},
}
"""By class, the public callables that reach a body and the test that drives each; and the rest."""


def known_tests():
    """Name every test of this folder by its module."""
    return {
        f"{path.stem}::{name}"
        for path in Path(__file__).parent.glob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("cls", [ToolNode, Pregel, CompiledStateGraph])
def test_every_public_callable_is_listed(cls):
    """A callable that a release adds fails until somebody has looked at it."""
    there = public_callables(cls)
    reaches = {name: test for name, test in REACHES[cls.__name__].items() if name in there}
    harmless = {name: why for name, why in HARMLESS[cls.__name__].items() if name in there}

    assert [] == unlisted(
        [cls],
        reaches={cls.__name__: reaches},
        harmless={cls.__name__: harmless},
        driven=known_tests(),
    )


def test_the_functional_api_is_listed():
    """What runs functions as graphs and tasks is driven, and nothing has come to it."""
    assert {"entrypoint", "task"} == set(func.__all__)
    assert TASKS in known_tests()


def test_the_settings_of_a_tool_node_are_known():
    """A setting that a release adds could stand between the node and a body."""
    assert {
        "self",
        "tools",
        "name",
        "tags",
        "handle_tool_errors",
        "messages_key",
        "wrap_tool_call",
        "awrap_tool_call",
    } == set(inspect.signature(ToolNode.__init__).parameters)


def test_where_the_private_places_are():
    """What is reached into for want of a public place is where it was."""
    node = ToolNode([])
    agent = create_agent(ChatOpenAI(model="m", api_key="none"), [])
    source = inspect.getsource(inspect.getmodule(ToolNode))

    assert (node._func, node._afunc) == (node.func, node.afunc)
    assert ["input"] == list(inspect.signature(node._parse_input).parameters)
    assert ["outputs", "input_type"] == list(
        inspect.signature(node._combine_tool_outputs).parameters
    )
    assert "messages" == node._messages_key
    assert 'input.get("__type") == "tool_call_with_context"' in source
    model = agent.nodes["model"].bound.func
    assert ("langchain.agents.factory", "model_node") == (model.__module__, model.__name__)


def test_where_the_pieces_of_a_graph_are():
    """What is walked to find tool nodes is where it was."""
    graph = StateGraph(MessagesState).add_node("a", ToolNode([])).set_entry_point("a").compile()

    @func.task
    def task() -> None:
        """Do nothing."""

    assert {"bound", "retry_policy"} <= vars(graph.nodes["a"]).keys()
    assert "func" in vars(task)
    assert "langgraph" == type(task).__module__.partition(".")[0]
    assert set(adjudge_langgraph.__all__) <= set(dir(adjudge_langgraph))
