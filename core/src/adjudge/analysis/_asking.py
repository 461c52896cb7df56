"""Ask a policy about a request as a guard would: with the paths that `under` reads resolved.

What a path resolves to is worked out from its text, since no file is touched here; what the
request brings with it counts first. Where a rewrite brings new paths, the policy is asked again
(clause 19).
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace

from adjudge._types import ActionRequest, Decision
from adjudge._values import FrozenDict
from adjudge.policy import LayeredPolicyBundle, PolicyBundle, evaluate

__all__ = ["Policy", "settled"]

Policy = PolicyBundle | LayeredPolicyBundle

_MAX_ROUNDS = 4


def settled(
    policy: Policy, request: ActionRequest, *, unresolvable: Collection[str] = ()
) -> tuple[ActionRequest, Decision]:
    """Give the request with its paths resolved, and the decision about it.

    A path in `unresolvable` stays unresolved, and `under` errs on it.
    """
    request = _resolved(policy, request, request, unresolvable)
    decision = evaluate(policy, request)
    for _ in range(_MAX_ROUNDS):
        if decision.effective_args is None:
            break
        rewritten = replace(request, args=decision.effective_args)
        known = _resolved(policy, rewritten, request, unresolvable)
        if known is request:
            break
        request = known
        decision = evaluate(policy, request)
    return request, decision


def _resolved(
    policy: Policy,
    asked: ActionRequest,
    request: ActionRequest,
    unresolvable: Collection[str],
) -> ActionRequest:
    """Give `request` with the paths that `asked` needs; the request itself where it has them."""
    workspace = request.context.workspace
    missing = {
        path: os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118 - text, not a file
        for path in policy.paths_to_resolve(asked)
        if path not in request.resolved and path not in unresolvable
    }
    if not missing:
        return request
    return replace(request, resolved=FrozenDict({**request.resolved, **missing}))
