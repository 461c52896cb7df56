"""Who is asked when a policy requires approval.

A handler takes one `ApprovalRequest` and answers with an `ApprovalDecision`, sync or async; a sync
one runs in a thread. Nothing but an `ApprovalDecision` whose `granted` is the bool True grants:
whatever a handler raises, returns instead, or answers too late, is a refusal (clause 22).
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, TypeAlias

from adjudge._enforcement.limits import is_positive
from adjudge._record.format import to_json
from adjudge._types import ApprovalDecision, ApprovalRequest

if TYPE_CHECKING:
    from adjudge._ledger.entries import Ledger

__all__ = [
    "DEFAULT_APPROVAL_TIMEOUT",
    "ApprovalHandler",
    "PauseApproval",
    "auto_approve",
    "auto_deny",
    "callback_approval",
    "cli_prompt_approval",
    "pause_approval",
]

ApprovalHandler: TypeAlias = Callable[
    [ApprovalRequest], ApprovalDecision | Awaitable[ApprovalDecision]
]

DEFAULT_APPROVAL_TIMEOUT = 1800.0
"""Seconds that an approval waits where the rule does not say."""

_YES = frozenset({"y", "yes"})
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


def auto_approve(approver: str = "auto") -> ApprovalHandler:
    """Make a handler that grants every request, for tests and where nothing can be lost."""

    async def approve(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision(granted=True, approver=approver)

    return approve


def auto_deny(reason: str = "no approval handler is configured") -> ApprovalHandler:
    """Make a handler that refuses every request with one reason."""

    async def deny(request: ApprovalRequest) -> ApprovalDecision:
        return ApprovalDecision(granted=False, approver="system", reason=reason)

    return deny


def callback_approval(function: ApprovalHandler) -> ApprovalHandler:
    """Make a handler of any callable, sync or async."""
    if not callable(function):
        raise TypeError(
            f"{function!r} cannot be called; give a function that takes one ApprovalRequest."
        )
    return function


@dataclass(frozen=True, slots=True)
class PauseApproval:
    """The mark by which a guard knows to pause and not to ask; made by `pause_approval`."""

    ledger: Ledger
    timeout_seconds: float = DEFAULT_APPROVAL_TIMEOUT


def pause_approval(
    ledger: Ledger, *, timeout_seconds: float = DEFAULT_APPROVAL_TIMEOUT
) -> PauseApproval:
    """Pause calls that need approval, for `ToolGuard.resume` in any process that sees the ledger.

    `timeout_seconds` is how long a pause may last where the rule does not say.
    """
    if not hasattr(ledger, "claim"):
        raise TypeError(f"{ledger!r} is no ledger; give MemoryLedger() or SQLiteLedger(path).")
    if not is_positive(timeout_seconds):
        raise ValueError(
            f"timeout_seconds is {timeout_seconds!r}; give a positive number of seconds."
        )
    return PauseApproval(ledger, timeout_seconds)


def cli_prompt_approval(
    approver: str = "local",
    *,
    max_chars: int = 4000,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> ApprovalHandler:
    """Make a handler that asks on the terminal; `y` or `yes` grants, anything else refuses.

    The prompt shows the final arguments in full, or up to `max_chars` characters with an explicit
    cut mark, and the digest. Without a terminal nobody is asked and the request is refused.
    """

    def ask(request: ApprovalRequest) -> ApprovalDecision:
        source = sys.stdin if stdin is None else stdin
        target = sys.stderr if stdout is None else stdout
        if stdin is None and (source is None or not source.isatty()):
            return ApprovalDecision(False, approver, "there is no terminal to ask on")
        target.write(prompt_text(request, max_chars=max_chars))
        target.flush()
        line = source.readline()
        if not line:
            return ApprovalDecision(False, approver, "the input ended before an answer")
        if line.strip().lower() in _YES:
            return ApprovalDecision(True, approver)
        return ApprovalDecision(False, approver, "refused at the prompt")

    return ask


def prompt_text(request: ApprovalRequest, *, max_chars: int) -> str:
    """Write the question so that no character of it can hide, reorder or forge a line."""
    action = request.request
    text = escaped(
        json.dumps(to_json(action.args), ensure_ascii=False, allow_nan=False, indent=2), lines=True
    )
    if len(text) > max_chars:
        hidden = len(text) - max_chars
        text = f"{text[:max_chars]}\n[CUT: {hidden} of {len(text)} characters are not shown]"
    who = action.context.principal
    name = action.tool if action.namespace is None else f"{action.namespace} / {action.tool}"
    shown = text.replace("\n", "\n    ")
    rows = [
        "",
        "APPROVAL REQUIRED",
        f"  tool:      {escaped(name)}",
        f"  for:       {escaped(f'{who.kind} {who.id}')}",
        f"  reason:    {escaped(request.decision.reason) or '(none given)'}",
    ]
    if request.approvers:
        rows.append(f"  approvers: {escaped(', '.join(request.approvers))}")
    rows += [f"  digest:    {request.digest}", f"  arguments:\n    {shown}", "Approve? [y/N] "]
    return "\n".join(rows)


def escaped(text: str, *, lines: bool = False) -> str:
    """Write every control, format, surrogate, private and separator character as an escape.

    `lines` keeps line feeds, for text whose own line feeds have been escaped already.
    """
    return "".join(
        character
        if character == " " or (lines and character == "\n") or not _is_hidden(character)
        else _escape(character)
        for character in text
    )


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
