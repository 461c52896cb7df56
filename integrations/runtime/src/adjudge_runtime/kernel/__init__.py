"""The agent kernel: sessions that outlive their process, with quotas, memories and affinity.

`AgentKernel` runs a model's loop whose life, limits, state and record are not the model's to
decide. Every call of a tool goes through a `ToolGuard`.
"""

from adjudge_runtime.kernel._affinity import AffinityRouter, NoReplica, UnknownReplica
from adjudge_runtime.kernel._budgets import BudgetBreach, Budgets
from adjudge_runtime.kernel._chain import ExecutedStep
from adjudge_runtime.kernel._decision import Decision, Model
from adjudge_runtime.kernel._episodic import (
    Episode,
    Episodes,
    EpisodicMemory,
    SQLiteEpisodicMemory,
)
from adjudge_runtime.kernel._kernel import AgentKernel
from adjudge_runtime.kernel._lifecycle import (
    TERMINAL_STATES,
    TRANSITIONS,
    Event,
    IllegalTransition,
    RunState,
    lifecycle_diagram,
    transition,
)
from adjudge_runtime.kernel._results import SessionResult
from adjudge_runtime.kernel._scratchpad import Scratchpad, Summarize
from adjudge_runtime.kernel._semantic import Fact, SemanticMemory, SQLiteSemanticMemory
from adjudge_runtime.kernel._sessions import SessionSnapshot
from adjudge_runtime.kernel._steps import Step, default_summarizer, estimate_tokens

__all__ = [
    "TERMINAL_STATES",
    "TRANSITIONS",
    "AffinityRouter",
    "AgentKernel",
    "BudgetBreach",
    "Budgets",
    "Decision",
    "Episode",
    "Episodes",
    "EpisodicMemory",
    "Event",
    "ExecutedStep",
    "Fact",
    "IllegalTransition",
    "Model",
    "NoReplica",
    "RunState",
    "SQLiteEpisodicMemory",
    "SQLiteSemanticMemory",
    "Scratchpad",
    "SemanticMemory",
    "SessionResult",
    "SessionSnapshot",
    "Step",
    "Summarize",
    "UnknownReplica",
    "default_summarizer",
    "estimate_tokens",
    "lifecycle_diagram",
    "transition",
]
