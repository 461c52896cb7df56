"""Short ways to write a Decision, for Python rules and combiners.

Each checks what a policy file is checked for at compile time, so that a mistake fails where it is
made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge._types import Decision, Obligation, Verdict
from adjudge._values import freeze_object
from adjudge.policy._verdicts import is_time_out

__all__ = ["allow", "approve_required", "deny", "dry_run", "transform"]


def allow(
    reason: str = "",
    matched_rules: tuple[str, ...] = (),
    obligations: tuple[Obligation, ...] = (),
) -> Decision:
    """Let the call run as proposed."""
    return Decision(Verdict.ALLOW, reason, tuple(matched_rules), obligations=tuple(obligations))


def deny(
    reason: str = "",
    matched_rules: tuple[str, ...] = (),
    obligations: tuple[Obligation, ...] = (),
) -> Decision:
    """Refuse the call; the model is told the reason."""
    return Decision(Verdict.DENY, reason, tuple(matched_rules), obligations=tuple(obligations))


def dry_run(
    reason: str = "",
    matched_rules: tuple[str, ...] = (),
    obligations: tuple[Obligation, ...] = (),
) -> Decision:
    """Run the tool's shadow in place of the tool."""
    return Decision(Verdict.DRY_RUN, reason, tuple(matched_rules), obligations=tuple(obligations))


def approve_required(
    approvers: Sequence[str] = (),
    timeout_seconds: float | None = 1800,
    reason: str = "",
    matched_rules: tuple[str, ...] = (),
    obligations: tuple[Obligation, ...] = (),
) -> Decision:
    """Ask before running; no approvers means whoever the handler asks.

    `timeout_seconds` bounds the asking, None leaves it to the guard. Raises `ValueError` unless it
    is positive and finite.
    """
    if isinstance(approvers, str):
        raise ValueError(f"approvers is a tuple of names; write ({approvers!r},).")
    if timeout_seconds is not None and not is_time_out(timeout_seconds):
        raise ValueError(f"timeout_seconds is a positive number, not {timeout_seconds!r}.")
    return Decision(
        Verdict.APPROVE_REQUIRED,
        reason,
        tuple(matched_rules),
        approver_sets=(tuple(approvers),),
        timeout_seconds=timeout_seconds,
        obligations=tuple(obligations),
    )


def transform(
    transform_args: Mapping[str, Any],
    reason: str = "",
    matched_rules: tuple[str, ...] = (),
    obligations: tuple[Obligation, ...] = (),
) -> Decision:
    """Run the call with these arguments in place of the proposed ones, once they are judged too.

    Raises `ArgumentsRefused` for what is no JSON object.
    """
    return Decision(
        Verdict.TRANSFORM,
        reason,
        tuple(matched_rules),
        effective_args=freeze_object(transform_args, where="transform_args"),
        obligations=tuple(obligations),
    )
