"""Calls whose outcome a crash lost: run again only where the policy says so (law 6).

Such a call is judged with `context.extra.uncertain_retry` true. That the policy permits it is not
enough, since a policy that has never heard of such calls permits them as it permits any: its
decision must be another than it would be for the same call made afresh.
"""

from __future__ import annotations

from dataclasses import replace

from adjudge import (
    ActionRequest,
    ActionResult,
    Executor,
    LayeredPolicyBundle,
    PolicyBundle,
    ToolDef,
    evaluate,
)
from adjudge.integration import FrozenDict
from adjudge_runtime._claiming import unrouted

__all__ = ["EXTRA", "before_asking", "careful_executor", "speaks_of_retries"]

_NAME = "uncertain_retry"
EXTRA = {_NAME: True}

_UNSAID = (
    "whether an earlier attempt at this call was carried out is not known, and no rule of the "
    "policy says that it may be run again"
)


def speaks_of_retries(policy: object, request: ActionRequest) -> bool:
    """Whether the policy decides an uncertain call otherwise than the same call made afresh."""
    if not isinstance(policy, PolicyBundle | LayeredPolicyBundle):
        return False
    context = request.context
    extra = FrozenDict({name: item for name, item in context.extra.items() if name != _NAME})
    again = evaluate(policy, request)
    afresh = evaluate(policy, replace(request, context=replace(context, extra=extra)))
    return (again.verdict, again.matched_rules) != (afresh.verdict, afresh.matched_rules)


def before_asking(policy: object, request: ActionRequest) -> tuple[str, str] | None:
    """Say why nobody is to be asked about an uncertain call, None where somebody may be."""
    return None if speaks_of_retries(policy, request) else ("uncertain", _UNSAID)


def careful_executor(policy: object, executor: Executor, *, routes: bool) -> Executor:
    """Make an executor that runs nothing again of which the policy does not say so.

    `routes` vouches that the executor provides the isolation that a tool declares.
    """

    async def execute(request: ActionRequest, tool: ToolDef) -> ActionResult:
        if not speaks_of_retries(policy, request):
            return ActionResult(False, error=_UNSAID, code="uncertain")
        if tool.metadata.isolation is not None and not routes:
            return unrouted(tool)
        return await executor(request, tool)

    return execute
