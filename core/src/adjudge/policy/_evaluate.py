"""`evaluate`: the policy decision point.

Pure: no clock, network, file, global or random number, and the same answer to the same question. It
raises no `Exception`: whatever fails ends in the stricter outcome with its cause in the decision
(laws 4 and 8). `BaseException` passes through.
"""

from __future__ import annotations

from adjudge._types import ActionRequest, Decision, ExecutionContext, Verdict
from adjudge.policy._bundle import LayeredPolicyBundle, PolicyBundle
from adjudge.policy._faults import describe
from adjudge.policy._judge import decide
from adjudge.policy._layers import decide_layers
from adjudge.policy._verdicts import error_marker

__all__ = ["evaluate"]


def evaluate(
    policy: PolicyBundle | LayeredPolicyBundle,
    request: ActionRequest,
    context: ExecutionContext | None = None,
) -> Decision:
    """Decide about one proposed call.

    A `context` given here replaces the request's everywhere (clause 18). Python rules are called,
    in their place in the order.
    """
    try:
        if isinstance(policy, LayeredPolicyBundle):
            return decide_layers(policy._compiled, policy.merge, request, context)
        compiled = policy._compiled
        if context is not None or compiled.declarations:
            request = compiled.prepared(request, context)
        return decide(compiled, request)
    except Exception as error:
        return Decision(
            Verdict.DENY,
            f"the policy could not be evaluated: {describe(error)}",
            (error_marker("", "evaluate", type(error).__name__),),
        )
