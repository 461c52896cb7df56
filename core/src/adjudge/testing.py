"""For people who write policies: ask one about a call, script the approvals, keep the events.

It needs the standard library alone and works under any test runner. Nothing here runs a tool or
touches a file; what a path would resolve to is worked out from its text, unless it is given.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from adjudge._types import (
    ActionRequest,
    ApprovalDecision,
    ApprovalRequest,
    AuditEvent,
    Decision,
    ExecutionContext,
    Principal,
    ToolMetadata,
    Verdict,
)
from adjudge._values import EMPTY, canonical_json, freeze_object
from adjudge.policy import LayeredPolicyBundle, PolicyBundle, compile_policy, evaluate

__all__ = [
    "RecordingSink",
    "ScriptedApproval",
    "assert_verdict",
    "make_request",
    "scripted_approval",
]

Policy = PolicyBundle | LayeredPolicyBundle | str | bytes | Mapping[str, Any]

_SOMEBODY = Principal("user", "tester")
_PLAIN = ToolMetadata()


def make_request(
    tool: str,
    args: Mapping[str, Any] = EMPTY,
    *,
    namespace: str | None = None,
    declared: ToolMetadata | None = _PLAIN,
    given: Iterable[str] | None = None,
    injected: Mapping[str, Any] = EMPTY,
    principal: Principal = _SOMEBODY,
    environment: str | None = None,
    workspace: str = "/workspace",
    extra: Mapping[str, Any] = EMPTY,
    resolved: Mapping[str, str] = EMPTY,
) -> ActionRequest:
    """Make the request for one call, as a guard would hand it to `evaluate`.

    `declared` is a plain `@tool()` by default; None is a tool of which nothing is known. `given`
    names the arguments that the model itself sent (default: all). Values that are no JSON raise
    `ArgumentsRefused`.
    """
    context = ExecutionContext(
        principal=principal,
        environment=environment,
        workspace=workspace,
        extra=freeze_object(extra, where="extra"),
    )
    return ActionRequest(
        tool=tool,
        args=freeze_object(args),
        declared=declared,
        context=context,
        namespace=namespace,
        given=frozenset(given) if given is not None else None,
        injected=freeze_object(injected, where="injected"),
        resolved=dict(resolved),
    )


def assert_verdict(
    policy: Policy,
    tool: str,
    args: Mapping[str, Any],
    verdict: Verdict | str,
    *,
    rule: str | None = None,
    effective_args: Mapping[str, Any] | None = None,
    **request: Any,
) -> Decision:
    """Assert what a policy says of one call, and give its decision.

    `policy` is a bundle, or anything that `compile_policy` reads. `rule` must be among the rules
    that decided; `effective_args` must be the arguments as they would run. `request` is whatever
    `make_request` takes. Raises `AssertionError` with the whole decision where it differs.
    """
    bundle = policy
    if not isinstance(bundle, PolicyBundle | LayeredPolicyBundle):
        bundle = compile_policy(bundle)
    asked = _with_paths(bundle, make_request(tool, args, **request))
    decision = evaluate(bundle, asked)
    wrong = []
    if decision.verdict != Verdict(verdict):
        wrong.append(f"the verdict is {decision.verdict}, not {Verdict(verdict)}")
    if rule is not None and rule not in decision.matched_rules:
        wrong.append(f"the rule {rule!r} did not decide")
    if effective_args is not None:
        final = asked.args if decision.effective_args is None else decision.effective_args
        if canonical_json(effective_args) != canonical_json(final):
            wrong.append(f"the arguments would be {final!r}, not {effective_args!r}")
    if wrong:
        decided = ", ".join(decision.matched_rules) or "none"
        raise AssertionError(
            f"{tool}({dict(args)!r}): {'; '.join(wrong)}. "
            f"Rules that decided: {decided}. Reason: {decision.reason or 'none'}."
        )
    return decision


def _with_paths(
    policy: PolicyBundle | LayeredPolicyBundle, request: ActionRequest
) -> ActionRequest:
    """Resolve by their text alone the paths that nobody resolved."""
    workspace = request.context.workspace
    worked_out = {
        path: os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118 - text, not a file
        for path in policy.paths_to_resolve(request)
    }
    return replace(request, resolved={**worked_out, **request.resolved})


class RecordingSink:
    """A sink that keeps every event, in order, in `events`."""

    never_blocks = True

    def __init__(self) -> None:
        self._events: list[AuditEvent] = []
        self._lock = threading.Lock()

    def __call__(self, event: AuditEvent) -> None:
        """Keep the event."""
        with self._lock:
            self._events.append(event)

    @property
    def events(self) -> tuple[AuditEvent, ...]:
        """All events so far."""
        with self._lock:
            return tuple(self._events)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all events so far."""
        return tuple(event.kind for event in self.events)

    def of_kind(self, kind: str) -> tuple[AuditEvent, ...]:
        """The events of one kind."""
        return tuple(event for event in self.events if event.kind == kind)

    def clear(self) -> None:
        """Forget them all."""
        with self._lock:
            self._events.clear()


Answer = bool | ApprovalDecision | Exception


def scripted_approval(answers: Iterable[Answer] = ()) -> ScriptedApproval:
    """Make an approval handler that gives these answers in order.

    True and False grant and refuse; an `ApprovalDecision` is given as it is; an exception is
    raised. A request beyond the last answer raises `AssertionError`, which the guard takes for a
    failed handler: the call is denied, and `requests` shows that it was asked.
    """
    return ScriptedApproval(answers)


class ScriptedApproval:
    """The handler of `scripted_approval`; `requests` are those that were put to it."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = list(answers)
        self._requests: list[ApprovalRequest] = []
        self._lock = threading.Lock()

    @property
    def requests(self) -> tuple[ApprovalRequest, ...]:
        """What was asked, in order."""
        with self._lock:
            return tuple(self._requests)

    @property
    def unused(self) -> tuple[Answer, ...]:
        """The answers that nobody has asked for."""
        with self._lock:
            return tuple(self._answers)

    async def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Give the next answer."""
        with self._lock:
            self._requests.append(request)
            if not self._answers:
                raise AssertionError(f"The script has no answer left for {request.request.tool}.")
            answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, bool):
            return ApprovalDecision(answer, "scripted", "" if answer else "refused by the script")
        return answer
