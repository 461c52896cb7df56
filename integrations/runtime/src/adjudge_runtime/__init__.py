"""The reference loop: an agent of your own, governed completely by Adjudge.

Everything that a user needs is a name of this package; `adjudge_runtime.models` has the agents that
talk to a model, `adjudge_runtime.kernel` the sessions and memories of a longer life.
"""

from adjudge_runtime._compressors import (
    Compressor,
    compose_compressors,
    dedup_compressor,
    external_filter_compressor,
    identity_compressor,
    route_compressor,
    truncate_compressor,
)
from adjudge_runtime._conversation import Conversation
from adjudge_runtime._keys import idempotency_key
from adjudge_runtime._nested import AgentToolError, agent_tool
from adjudge_runtime._past import JournalError
from adjudge_runtime._replay import RunView, StepView, replay
from adjudge_runtime._run import run_agent
from adjudge_runtime._scope import current_idempotency_key
from adjudge_runtime._values import (
    Agent,
    AgentAction,
    Budget,
    FinalAnswer,
    Message,
    OnToken,
    RunResult,
    StreamingAgent,
    ToolCall,
    ToolCalls,
    Usage,
)
from adjudge_runtime.graph import (
    Fork,
    GraphCompileError,
    GraphError,
    GraphNode,
    GraphResult,
    GraphSpec,
    NodeOutcome,
    Route,
    Router,
    compile_graph,
    load_graph_file,
    run_graph,
    to_mermaid,
    to_svg,
)

__all__ = [
    "Agent",
    "AgentAction",
    "AgentToolError",
    "Budget",
    "Compressor",
    "Conversation",
    "FinalAnswer",
    "Fork",
    "GraphCompileError",
    "GraphError",
    "GraphNode",
    "GraphResult",
    "GraphSpec",
    "JournalError",
    "Message",
    "NodeOutcome",
    "OnToken",
    "Route",
    "Router",
    "RunResult",
    "RunView",
    "StepView",
    "StreamingAgent",
    "ToolCall",
    "ToolCalls",
    "Usage",
    "agent_tool",
    "compile_graph",
    "compose_compressors",
    "current_idempotency_key",
    "dedup_compressor",
    "external_filter_compressor",
    "idempotency_key",
    "identity_compressor",
    "load_graph_file",
    "replay",
    "route_compressor",
    "run_agent",
    "run_graph",
    "to_mermaid",
    "to_svg",
    "truncate_compressor",
]
