"""What LangChain has that could reach a body: an inventory that notices what is new (law 3)."""

import inspect
import re
from pathlib import Path
from typing import Any

import langchain.agents.middleware as middlewares
import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableSerializable
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

from adjudge_conformance.inventory import public_callables, unlisted
from adjudge_langchain import AdjudgeCallbackHandler, AdjudgeMiddleware

CALL = "test_bypasses::test_a_call_of_the_tool_itself"
RUN = "test_bypasses::test_a_run_of_the_agent"
NODE = "test_bypasses::test_a_node_of_ones_own"
PAUSE = "test_pause::test_a_changed_state"

_RUNNABLE = [
    "abatch",
    "abatch_as_completed",
    "ainvoke",
    "as_tool",
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
    "stream_events": "streams, through invoke",
    "with_alisteners": "binds, and invokes",
}
_READS = dict.fromkeys(
    [
        "config_schema",
        "get_config_jsonschema",
        "get_graph",
        "get_input_jsonschema",
        "get_input_schema",
        "get_lc_namespace",
        "get_name",
        "get_output_jsonschema",
        "get_output_schema",
        "get_prompts",
        "is_lc_serializable",
        "lc_id",
        "to_json",
        "to_json_not_implemented",
    ],
    "describes",
)
_TOOL = dict.fromkeys([*_RUNNABLE, "arun", "run", "configurable_fields"], CALL)
_MODEL = dict.fromkeys(
    public_callables(BaseModel), "makes or describes a model, and keeps its class"
)
_TOOL_HARMLESS = {
    **_MODEL,
    **_SAME,
    **_READS,
    "configurable_alternatives": "chooses between objects, each of which is what it is",
}
_FACTORY = {"from_function": "makes a tool"}
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
    ],
    "builds or reads the graph",
)
_GRAPH_WRITES = ("abulk_update_state", "aupdate_state", "bulk_update_state", "update_state")

REACHES = {
    "BaseTool": _TOOL,
    "StructuredTool": _TOOL,
    "Tool": _TOOL,
    "ToolNode": dict.fromkeys(_RUNNABLE, NODE),
    "CompiledStateGraph": dict.fromkeys(_RUNNABLE, RUN) | dict.fromkeys(_GRAPH_WRITES, PAUSE),
}
HARMLESS = {
    "BaseTool": _TOOL_HARMLESS,
    "StructuredTool": {**_TOOL_HARMLESS, **_FACTORY},
    "Tool": {**_TOOL_HARMLESS, **_FACTORY},
    "ToolNode": {**_SAME, **_READS},
    "CompiledStateGraph": {
        **_SAME,
        **_READS,
        **_GRAPH_READS,
        "copy": "a copy with the same nodes",
        "validate": "checks the graph",
    },
}
"""By class, the public callables that reach a body and the test that drives each; and the rest."""

HOOKS = {
    "wrap_tool_call",
    "awrap_tool_call",
    "wrap_model_call",
    "awrap_model_call",
    "before_agent",
    "abefore_agent",
    "before_model",
    "abefore_model",
    "after_model",
    "aafter_model",
    "after_agent",
    "aafter_agent",
    "state_schema",
}
"""What a middleware can do; the first four stand around calls and requests."""


def known_tests():
    """Name every test of this folder by its module."""
    return {
        f"{path.stem}::{name}"
        for path in Path(__file__).parent.glob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("cls", [BaseTool, StructuredTool, Tool, ToolNode, CompiledStateGraph])
def test_every_public_callable_is_listed(cls):
    """A callable that a release adds fails until somebody has looked at it."""
    there = public_callables(cls)
    harmless = {name: why for name, why in HARMLESS[cls.__name__].items() if name in there}

    assert [] == unlisted(
        [cls],
        reaches={cls.__name__: REACHES[cls.__name__]},
        harmless={cls.__name__: harmless},
        driven=known_tests(),
    )


def test_every_kind_of_tool_is_listed():
    """A kind of tool that langchain-core adds is looked at before it is governed."""

    def below(kind: Any) -> set[Any]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    of_the_core = {
        each.__name__ for each in below(BaseTool) if each.__module__.startswith("langchain_core.")
    }

    assert {"BaseTool", "StructuredTool", "Tool"} <= of_the_core
    assert issubclass(BaseTool, RunnableSerializable)


def test_every_hook_of_a_middleware_is_listed():
    """A hook that could stand between the guard and a body fails here."""
    assert HOOKS >= public_callables(middlewares.AgentMiddleware)
    for hook in ("wrap_tool_call", "awrap_tool_call", "wrap_model_call", "awrap_model_call"):
        assert hook in vars(AdjudgeMiddleware)


def test_what_makes_langchain_ignore_a_handler_is_fixed():
    """A switch that a release adds to callback handlers fails until it is fixed as well."""
    switches = {
        name
        for name in dir(BaseCallbackHandler)
        if name.startswith("ignore_") or name in ("raise_error", "run_inline")
    }

    assert {
        "ignore_agent",
        "ignore_chain",
        "ignore_chat_model",
        "ignore_custom_event",
        "ignore_llm",
        "ignore_retriever",
        "ignore_retry",
        "raise_error",
        "run_inline",
    } >= switches
    assert {"raise_error", "run_inline", "ignore_agent"} <= vars(AdjudgeCallbackHandler).keys()


def test_where_the_private_places_are():
    """What is reached into for want of a public place is where it was."""
    source = inspect.getsource(inspect.getmodule(create_agent))

    for name in ("_execute_model_sync", "_execute_model_async"):
        assert f"{name}(request" in source
    assert "default_tools" in source
    assert {"_wrap_tool_call", "_awrap_tool_call"} <= vars(ToolNode([])).keys()
    assert {"_filter_injected_args", "_to_args_and_kwargs"} <= vars(BaseTool).keys()
