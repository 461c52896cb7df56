"""The inventory of the loop's public names, which notices a new way; and the checklist."""

import inspect
import pkgutil
import re
from importlib.metadata import distribution
from pathlib import Path

import adjudge_runtime
from adjudge_conformance.inventory import public_callables, uncovered, unlisted
from adjudge_runtime import adapters, agent_tool, graph, kernel, models, run_agent, run_graph

MODULES = (adjudge_runtime, adapters, graph, kernel, models)
COMMANDS = {"graph": "checks and draws a graph's file", "trace": "shows a journal"}
"""The commands that the distribution adds to `adjudge`, and why none of them reaches a body."""

_CREW = "adapters/test_crewai.py::test_a_crew_with_tools_is_refused"
_LANGGRAPH = "adapters/test_langgraph.py::test_a_graph_that_runs_tools_itself_is_refused"
REACHES = {
    "run_agent": "test_async",
    "run_graph": "test_nodes",
    "agent_tool": "test_nested_agent",
    "AgentKernel": "test_kernel",
    "LangGraphAgent": _LANGGRAPH,
    "CrewAIAgent": _CREW,
}
_TYPE, _VALUE, _ERROR = "a type", "a value", "an error"
_AFTER = "makes what is told of a result, after the body: `test_compressor`"
_TEXT, _ASKS = "makes a text", "asks a model, and proposes"
HARMLESS = {
    **dict.fromkeys(("Agent", "Compressor", "Episodes", "Model", "OnToken", "Router"), _TYPE),
    **dict.fromkeys(("StreamingAgent", "Summarize"), _TYPE),
    **dict.fromkeys(("Budget", "Budgets", "BudgetBreach", "Conversation", "Decision"), _VALUE),
    **dict.fromkeys(("Edge", "Episode", "Event", "ExecutedStep", "Fact", "FinalAnswer"), _VALUE),
    **dict.fromkeys(("Fork", "GraphNode", "GraphResult", "GraphSpec", "Message"), _VALUE),
    **dict.fromkeys(("NodeOutcome", "Provider", "RunResult", "RunState", "RunView"), _VALUE),
    **dict.fromkeys(("SessionResult", "SessionSnapshot", "Step", "StepView"), _VALUE),
    **dict.fromkeys(("ToolCall", "ToolCalls", "Usage", "When"), _VALUE),
    **dict.fromkeys(("AgentToolError", "GraphCompileError", "GraphError"), _ERROR),
    **dict.fromkeys(("IllegalTransition", "JournalError", "NoReplica", "UnknownReplica"), _ERROR),
    **dict.fromkeys(("ModelError", "ModelRefused", "ModelReplyError"), _ERROR),
    **dict.fromkeys(("ModelRequestError", "ModelUnavailable"), _ERROR),
    **dict.fromkeys(("ClaudeAgent", "OpenAIAgent", "OpenAIChatAgent"), _ASKS),
    **dict.fromkeys(("FallbackAgent", "RoutingAgent", "openai_compatible_agent"), _ASKS),
    **dict.fromkeys(("EpisodicMemory", "SQLiteEpisodicMemory", "Scratchpad"), "keeps texts"),
    **dict.fromkeys(("SemanticMemory", "SQLiteSemanticMemory"), "keeps texts"),
    **dict.fromkeys(("to_mermaid", "to_svg", "lifecycle_diagram"), _TEXT),
    **dict.fromkeys(("idempotency_key", "current_idempotency_key"), _TEXT),
    **dict.fromkeys(("compose_compressors", "dedup_compressor"), _AFTER),
    **dict.fromkeys(("identity_compressor", "route_compressor"), _AFTER),
    **dict.fromkeys(("external_filter_compressor", "truncate_compressor"), _AFTER),
    "AffinityRouter": "names the replica of a session, and calls none",
    "compile_graph": "reads a text, of which no code is run",
    "load_graph_file": "reads a text, of which no code is run",
    "default_summarizer": _TEXT,
    "estimate_tokens": "counts letters",
    "replay": "reads records",
    "resolve_credentials": "reads the environment",
    "transition": "looks a state up",
}
"""The names that the package exports: those that reach a body, with the test that drives each; and
the rest, with what they are instead."""

_PROPOSES = {"step": _ASKS, "stream": _ASKS, "aclose": "closes a client"}
_MEMORY = dict.fromkeys(("get", "put", "search", "recall", "record"), "keeps texts")
METHODS_REACH = {
    "AgentKernel": {"run": "test_kernel"},
    "LangGraphAgent": {"step": _LANGGRAPH},
    "CrewAIAgent": {"step": _CREW},
}
METHODS_HARMLESS = {
    "AffinityRouter": dict.fromkeys(
        ("add", "distribution", "drain", "remove", "route"), "names replicas, and calls none"
    ),
    **dict.fromkeys(("Agent", "StreamingAgent", "ClaudeAgent", "OpenAIAgent"), _PROPOSES),
    **dict.fromkeys(("OpenAIChatAgent", "FallbackAgent", "RoutingAgent"), _PROPOSES),
    "AgentKernel": {
        "cancel": "ends a session",
        "create_session": "makes a session, and runs nothing of it",
        "execution_chain": "reads records",
        "load": "reads records",
        "suspend": "leaves a session for `run`",
    },
    "Budget": {"unlimited": "makes a budget"},
    "Budgets": {"breach": "compares numbers"},
    "Conversation": dict.fromkeys(("append", "extended", "count", "index"), "a sequence's own"),
    **dict.fromkeys(("Episodes", "EpisodicMemory", "SQLiteEpisodicMemory"), _MEMORY),
    **dict.fromkeys(("SemanticMemory", "SQLiteSemanticMemory"), _MEMORY),
    "GraphSpec": {"__call__": "compares an outcome with a table"},
    "Scratchpad": dict.fromkeys(
        ("append", "compact_if_needed", "compacted_summary", "fold", "render", "token_count"),
        "keeps texts, which the application's own function makes shorter",
    ),
    "Step": {"render": _TEXT},
    "When": {"holds": "compares an outcome with a condition"},
}
"""The same of the public methods of the classes among them."""

PARAMETERS_REACH = {
    **dict.fromkeys(("tools", "policy", "shadows"), "test_async"),
    **dict.fromkeys(("store", "chain"), "test_resumed_run"),
    **dict.fromkeys(("on_approval", "answers"), "test_answers_that_a_person_gave_earlier"),
    "guard": "test_guard",
    "executor": "test_executor",
    "compressor": "test_compressor",
    "nodes": "test_nodes",
}
PARAMETERS_HARMLESS = {
    **dict.fromkeys(("agent", "model"), "proposes"),
    **dict.fromkeys(("task", "name", "description", "environment", "workspace"), "is a text"),
    **dict.fromkeys(("correlation_id", "run_id", "start"), "is a text"),
    **dict.fromkeys(("principal", "context", "caller"), "says for whom a call is made"),
    **dict.fromkeys(("budget", "budgets", "cancel", "max_transitions"), "ends runs"),
    **dict.fromkeys(("tool_costs", "scratchpad_max_tokens", "keep_recent"), "is a number"),
    **dict.fromkeys(("estimate", "now", "router"), "answers a question, and is given no tool"),
    **dict.fromkeys(("compose_task", "compose_join", "summarize"), "makes a text of texts"),
    **dict.fromkeys(
        ("sinks", "redact", "on_token", "episodic"), "sees what is written down, and no tool"
    ),
    "declared": "is what the policy reads of a tool",
    "obligations": "is the application's own code, for what a decision asks for besides",
}
"""What the parameters of the four ways in are to a body."""

NOT_THERE = {
    "sync": "the loop has no blocking entry point; blocking bodies are driven by `test_async`",
    "batch": "the loop runs one task at a time",
}
DRIVEN = {
    "async": "test_async",
    "stream": "test_stream",
    "parallel": "test_parallel",
    "retry": "test_body_that_was_lost",
    "cache": "test_kept_result",
    "direct-call": "test_direct_call",
    "copied-tool": "test_copied_tool",
    "added-later": "test_added_later",
    "nested-agent": "test_nested_agent",
    "provider-side": "models/test_failures.py::test_a_tool_that_the_provider_ran_is_an_error",
}
"""The suite's checklist: what is driven, and what the loop does not have."""


def known_tests():
    """Name every test of this folder, by its file unless that is `test_bypasses.py`."""
    here = Path(__file__).parent
    found = {
        f"{path.relative_to(here).as_posix()}::{name}"
        for path in here.rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    return {name.removeprefix("test_bypasses.py::") for name in found}


def exports():
    """Give what each public module exports and can be called, as a class of that module's name."""
    return [
        type(module.__name__, (), {name: getattr(module, name) for name in module.__all__})
        for module in MODULES
    ]


def test_every_exported_callable_is_listed():
    """Law 3: a name that is added fails until somebody has looked at it."""
    listed = [module.__name__ for module in MODULES]

    assert [] == unlisted(
        exports(),
        reaches=dict.fromkeys(listed, REACHES),
        harmless=dict.fromkeys(listed, HARMLESS),
        driven=known_tests(),
    )
    assert set().union(*map(public_callables, exports())) == REACHES.keys() | HARMLESS.keys()


def test_every_public_method_is_listed():
    """Law 3: so does a method; those of texts and exceptions are Python's own."""
    classes = {item for each in exports() for item in vars(each).values() if inspect.isclass(item)}
    own = {
        cls.__name__: dict.fromkeys(public_callables(base), "Python's own")
        for base in (BaseException, str)
        for cls in classes
        if issubclass(cls, base)
    }

    assert [] == unlisted(
        sorted(classes, key=lambda cls: cls.__name__),
        reaches=METHODS_REACH,
        harmless=METHODS_HARMLESS | own,
        driven=known_tests(),
    )


def test_every_parameter_is_listed():
    """Law 3: so does a parameter of a way in."""
    ways = (run_agent, run_graph, agent_tool, kernel.AgentKernel)

    parameters = {name for way in ways for name in inspect.signature(way).parameters}

    assert parameters == PARAMETERS_REACH.keys() | PARAMETERS_HARMLESS.keys()
    assert set(PARAMETERS_REACH.values()) <= known_tests()


def test_every_public_module_and_command_is_listed():
    """Law 3: so does a module, and a command of the terminal."""
    name = adjudge_runtime.__name__
    found = {f"{name}.{each.name}" for each in pkgutil.iter_modules(adjudge_runtime.__path__)}
    public = {each for each in found if "._" not in each}

    assert {name} | public == {module.__name__ for module in MODULES}
    assert COMMANDS.keys() == distribution("adjudge-runtime").entry_points.names


def test_the_checklist_is_covered():
    """Each bypass of the checklist is driven, or a sentence says that there is none."""
    assert [] == uncovered(DRIVEN, not_there=NOT_THERE)
    assert set(DRIVEN.values()) <= known_tests()
