"""The run of one node: `run_agent` with the node's own powers, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from adjudge import ApprovalDecision
from adjudge_runtime._run import run_agent
from adjudge_runtime._values import RunResult
from adjudge_runtime.graph._settings import GraphSettings
from adjudge_runtime.graph._values import GraphNode, NodeOutcome

__all__ = ["run_node"]


async def run_node(
    name: str, node: GraphNode, task: str, *, hop: int, run: str, settings: GraphSettings
) -> NodeOutcome:
    """Run a node, and where it waits for answers that are given, go on with them."""
    result = await _attempt(node, task, run, settings, None)
    if result.code == "paused" and settings.answers:
        asked = {each.id for each in result.pending}
        answers = {key: answer for key, answer in settings.answers.items() if key in asked}
        if answers:
            result = await _attempt(node, task, run, settings, answers)
    return NodeOutcome(name, result, result.denials, hop)


async def _attempt(
    node: GraphNode,
    task: str,
    run: str,
    settings: GraphSettings,
    answers: Mapping[str, ApprovalDecision] | None,
) -> RunResult:
    durable = settings.store is not None
    return await run_agent(
        node.agent,
        task,
        tools=node.tools,
        policy=node.policy,
        sinks=settings.sinks,
        on_approval=node.on_approval,
        budget=node.budget,
        principal=settings.principal,
        environment=settings.environment,
        workspace=settings.workspace,
        # Each attempt at a durable run has a correlation id of its own, made of the run's.
        correlation_id=None if durable else run,
        store=settings.store,
        run_id=run if durable else None,
        executor=settings.executor,
        cancel=settings.cancel,
        obligations=settings.obligations,
        answers=answers,
        context=settings.context,
        shadows=settings.shadows,
        redact=settings.redact,
    )
