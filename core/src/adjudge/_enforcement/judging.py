"""Judging a request, until what was judged is what would run.

Paths are resolved before `under` reads them, rewritten arguments are completed with the defaults
that the body would see and judged again, and a policy that misbehaves denies (laws 4 and 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from adjudge._arguments.proposal import InvalidArguments
from adjudge._enforcement.attempt import Attempt, Refusal, Steps, failure_text, unfit
from adjudge._enforcement.effects import Resolve
from adjudge._types import ActionRequest, Decision, Verdict
from adjudge._values import FrozenDict, canonical_json, freeze_object
from adjudge.errors import ArgumentsRefused
from adjudge.policy._verdicts import STRICTNESS

__all__ = ["Judging", "same", "united"]

T = TypeVar("T")

_MAX_ROUNDS = 4


class Judging(Attempt):
    """An attempt that can be judged."""

    def judge_at_once(self, request: ActionRequest) -> Decision | None:
        """Judge what most requests are: no path is read. None says that it takes `judge`."""
        settings = self.settings
        if settings.may_read_paths:
            return None
        try:
            decision: object = settings.evaluate(settings.policy, request)
        except Exception as error:
            return _failed(_policy_failed(error))
        if isinstance(decision, Decision) and type(decision.verdict) is Verdict:
            return decision
        return _failed(_no_decision(decision))

    def judge(
        self, request: ActionRequest, decision: Decision | None = None
    ) -> Steps[tuple[ActionRequest, Decision]]:
        """Judge a request; rewritten arguments come as the body would get them.

        Where the judging itself fails, that is a denial like any other (law 4). `decision` is what
        `judge_at_once` gave.
        """
        try:
            if decision is None:
                if self.settings.may_read_paths:
                    missing = self._unresolved(request)
                    if missing:
                        request = yield from self._resolve(request, missing)
                decision = self._evaluate(request)
            if decision.effective_args is not None:
                return (yield from self._judge_rewritten(request, decision))
        except Refusal as failed:
            decision = _failed(failed)
        return request, decision

    def _judge_rewritten(
        self, request: ActionRequest, decision: Decision
    ) -> Steps[tuple[ActionRequest, Decision]]:
        for _ in range(_MAX_ROUNDS):
            if decision.effective_args is None:
                return request, decision
            final = self.completed(decision.effective_args)
            rewritten = replace(request, args=final)
            missing = self._unresolved(rewritten)
            known = (yield from self._resolve(rewritten, missing)) if missing else rewritten
            if known is rewritten:
                if same(final, decision.effective_args):
                    return request, replace(decision, effective_args=final)
                return request, self._judge_completed(rewritten, decision)
            # `under` reads a rewritten value: with its path resolved, judge again (clause 19).
            request = replace(request, resolved=known.resolved)
            decision = self._evaluate(request)
        raise Refusal("policy_failed", "the policy kept rewriting the arguments")

    def completed(self, args: Mapping[str, Any]) -> FrozenDict:
        """Give rewritten arguments as the body would get them; refuse what does not fit it."""
        try:
            return self.door.complete(args if type(args) is FrozenDict else freeze_object(args))
        except (InvalidArguments, ArgumentsRefused) as error:
            raise unfit(error) from None

    def _judge_completed(self, rewritten: ActionRequest, decision: Decision) -> Decision:
        """Judge arguments into which defaults came back after a transform took them out.

        The stricter of the two judgments holds.
        """
        again = self._evaluate(rewritten)
        if again.effective_args is not None and not same(
            self.completed(again.effective_args), rewritten.args
        ):
            raise Refusal(
                "invalid_rewrite",
                "the rewritten arguments change again when defaults are filled in",
            )
        stricter = max(decision, again, key=lambda item: STRICTNESS[item.verdict])
        return replace(
            stricter,
            effective_args=rewritten.args,
            matched_rules=united(decision.matched_rules, again.matched_rules),
            approver_sets=united(decision.approver_sets, again.approver_sets),
            obligations=united(decision.obligations, again.obligations),
        )

    def _evaluate(self, request: ActionRequest) -> Decision:
        settings = self.settings
        try:
            decision: object = settings.evaluate(settings.policy, request)
        except Exception as error:
            raise _policy_failed(error) from error
        if not isinstance(decision, Decision) or type(decision.verdict) is not Verdict:
            raise _no_decision(decision)
        return decision

    def _unresolved(self, request: ActionRequest) -> tuple[str, ...]:
        try:
            wanted = self.settings.policy.paths_to_resolve(request)
        except Exception as error:
            raise _policy_failed(error) from error
        return tuple(path for path in wanted if path not in request.resolved) if wanted else ()

    def _resolve(self, request: ActionRequest, missing: tuple[str, ...]) -> Steps[ActionRequest]:
        yield from self.flush()  # a file system may hang
        found = yield Resolve(missing, request.context.workspace)
        # What could not be resolved stays out, and `under` errs on it (clause 12).
        known = {path: found[path] for path in missing if path in found}
        if not known:
            return request
        return replace(request, resolved=FrozenDict({**request.resolved, **known}))


def _failed(failed: Refusal) -> Decision:
    return Decision(Verdict.DENY, failed.reason, (f"<{failed.code}>",))


def _no_decision(answer: object) -> Refusal:
    return Refusal(
        "policy_failed", f"the policy answered with a {type(answer).__name__} that is no decision"
    )


def _policy_failed(error: Exception) -> Refusal:
    return Refusal(
        "policy_failed",
        f"the policy could not be evaluated: {failure_text(error)}",
    )


def same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether two arguments are the same JSON value, kinds included."""
    # Python's equality would take 1 for True.
    return left is right or canonical_json(left) == canonical_json(right)


def united(first: tuple[T, ...], second: tuple[T, ...]) -> tuple[T, ...]:
    """Give the members of both, in order, once each."""
    return first + tuple(item for item in second if item not in first)
