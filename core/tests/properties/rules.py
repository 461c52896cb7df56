"""Python rules for generated policies: pure functions, each of one kind of answer."""

from __future__ import annotations

from typing import Any

from adjudge._types import ActionRequest, Decision, ExecutionContext, Obligation, Verdict


def deny_when_forced(request: ActionRequest, context: ExecutionContext) -> Decision | None:
    """Deny a forced call."""
    if request.args.get("force") is True:
        return Decision(Verdict.DENY, "forced", obligations=(Obligation("tell"),))
    return None


def ask_to_write(request: ActionRequest, context: ExecutionContext) -> Decision | None:
    """Ask before a write."""
    if request.tool == "write":
        return Decision(Verdict.APPROVE_REQUIRED, approver_sets=(("coder",),), timeout_seconds=30)
    return None


def preview_in_dev(request: ActionRequest, context: ExecutionContext) -> Decision | None:
    """Preview whatever happens in dev."""
    return Decision(Verdict.DRY_RUN) if context.environment == "dev" else None


def allow_small(request: ActionRequest, context: ExecutionContext) -> Decision | None:
    """Allow a small amount; a text for an amount makes it fail."""
    amount = request.args.get("amount")
    return Decision(Verdict.ALLOW) if amount is not None and amount < 10 else None


def cap_amount(request: ActionRequest, context: ExecutionContext) -> Decision | None:
    """Rewrite a large amount."""
    amount = request.args.get("amount")
    if isinstance(amount, int) and amount > 50:
        return Decision(Verdict.TRANSFORM, effective_args={**request.args, "amount": 5})
    return None


def answer_yes(request: ActionRequest, context: ExecutionContext) -> Any:
    """Answer something that is no Decision, sometimes."""
    return True if request.args.get("mode") == "a" else None


def fail_on_tags(request: ActionRequest, context: ExecutionContext) -> Decision | None:
    """Fail where there are no tags."""
    return None if request.args["tags"] else Decision(Verdict.ALLOW)


RULES = (
    deny_when_forced,
    ask_to_write,
    preview_in_dev,
    allow_small,
    cap_amount,
    answer_yes,
    fail_on_tags,
)
