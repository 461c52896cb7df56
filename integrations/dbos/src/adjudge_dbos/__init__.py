"""Governed runs of `adjudge_runtime` as DBOS workflows, for workers on many machines.

DBOS owns dispatch, queues, recovery and cancellation; the run's journal owns that nothing runs
twice. A worker makes `GovernedRuns` before `DBOS.launch()`; any process starts runs, answers what
waits and hands a dead worker's runs to the living.
"""

from adjudge_dbos._desk import answer, start, take_over, waiting
from adjudge_dbos._orders import AgentSetup, OrderError, RunOrder
from adjudge_dbos._runs import QUEUE, WORKFLOW, GovernedRuns

__all__ = [
    "QUEUE",
    "WORKFLOW",
    "AgentSetup",
    "GovernedRuns",
    "OrderError",
    "RunOrder",
    "answer",
    "start",
    "take_over",
    "waiting",
]
