"""Run test cases against a policy, and say of each how the decision differs from what it expects.

Pure but for Python rules: no tool runs and no file is read. A case that names a rule which the
policy does not have is refused, since it could never have passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge._enforcement.approvals import escaped
from adjudge._types import ActionRequest, Decision
from adjudge._values import canonical_json
from adjudge.analysis._asking import Policy, settled
from adjudge.analysis._testing.cases import Expectation, PolicyCase, PolicyTests
from adjudge.analysis._testing.names import unknown_names
from adjudge.analysis._wording import RuleNames, call_in_words
from adjudge.policy import LayeredPolicyBundle
from adjudge.policy._python_rules import name_of
from adjudge.policy._reading.nodes import Problems
from adjudge.policy._reading.suggest import did_you_mean
from adjudge.policy._verdicts import tagged

__all__ = ["CaseResult", "PolicyTestReport", "check_names", "differences", "run_policy_tests"]

_USUAL = ("principal", "workspace")


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of one case: the request with its paths resolved, the decision, what differs.

    `differences` has one clause for each thing that is not as expected; a case that passed has
    none. `decided_by` says in words which rules decided, and where they stand.
    """

    case: PolicyCase
    request: ActionRequest
    decision: Decision
    differences: tuple[str, ...]
    decided_by: str

    @property
    def passed(self) -> bool:
        """Whether the decision is the one that the case expects."""
        return not self.differences

    def explained(self) -> str:
        """Say in lines what was expected, what was decided, by which rule and why."""
        lines = (
            call_in_words(self.request, usual=_USUAL),
            *(f"  {difference}" for difference in self.differences),
            f"  decided by: {self.decided_by}",
            f"  reason: {self.decision.reason or 'none given'}",
        )
        return "\n".join(map(escaped, lines))


@dataclass(frozen=True, slots=True)
class PolicyTestReport:
    """What came of all cases, in the order of the file.

    `warnings` has a sentence for each tool and argument of the cases that neither the policy nor
    `tools:` names, and that is perhaps misspelt.
    """

    tests: PolicyTests
    results: tuple[CaseResult, ...]
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every case passed; there is at least one."""
        return bool(self.results) and not self.failures

    @property
    def failures(self) -> tuple[CaseResult, ...]:
        """The cases that did not pass."""
        return tuple(result for result in self.results if not result.passed)


def run_policy_tests(policy: Policy, tests: PolicyTests) -> PolicyTestReport:
    """Ask the policy about every case.

    Raises `PolicyCompileError` for cases that name what the policy does not have, and where there
    is no case.
    """
    check_names(policy, tests)
    names = RuleNames(policy)
    results = tuple(_run(policy, case, names) for case in tests.cases)
    return PolicyTestReport(tests, results, unknown_names(policy, tests))


def _run(policy: Policy, case: PolicyCase, names: RuleNames) -> CaseResult:
    request, decision = settled(policy, case.request, unresolvable=case.unresolvable)
    found = differences(case.expect, request, decision)
    return CaseResult(case, request, decision, found, names.in_words(decision.matched_rules))


def differences(expect: Expectation, request: ActionRequest, decision: Decision) -> tuple[str, ...]:
    """Say how a decision differs from what is expected, a clause for each difference."""
    return tuple(_differences(expect, request, decision))


def _differences(expect: Expectation, request: ActionRequest, decision: Decision) -> Iterator[str]:
    names = decision.matched_rules
    if expect.verdict != decision.verdict:
        yield f"verdict: expected {expect.verdict}, decided {decision.verdict}"
    if expect.rule is not None and expect.rule not in names:
        yield f"rule: expected {expect.rule}, decided by {_listed(names)}"
    default = f"<default:{expect.default}>"
    # A layer's own default has the layer's name before it.
    if expect.default is not None and not any(name.endswith(default) for name in names):
        yield f"default: expected {expect.default}, decided by {_listed(names)}"
    if expect.rules is not None and sorted(expect.rules) != sorted(names):
        yield f"rules: expected {_listed(expect.rules)}, decided by {_listed(names)}"
    if expect.args is not None:
        final = request.args if decision.effective_args is None else decision.effective_args
        wanted, got = canonical_json(expect.args), canonical_json(final)
        if wanted != got:
            yield f"args: expected {wanted}, decided {got}"
    if expect.reason is not None and expect.reason != decision.reason:
        yield f"reason: expected {expect.reason!r}, decided {decision.reason!r}"
    yield from _differing("approvers", expect.approvers, decision.approvers)
    obligations = [each.id for each in decision.obligations]
    yield from _differing("obligations", expect.obligations, obligations)


def _differing(what: str, expected: Sequence[str] | None, decided: Sequence[str]) -> Iterator[str]:
    if expected is not None and sorted(expected) != sorted(decided):
        yield f"{what}: expected {_listed(expected)}, decided {_listed(decided)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def check_names(policy: Policy, tests: PolicyTests) -> None:
    """Refuse cases that name rules which the policy does not have, or that are none at all."""
    layers = policy.layers if isinstance(policy, LayeredPolicyBundle) else (("", policy),)
    known = {
        tagged(layer, name)
        for layer, bundle in layers
        for name in (
            *(rule.id for rule in bundle.source.rules),
            *map(name_of, bundle.python_rules),
        )
    }
    problems = Problems(file=tests.file)
    if not tests.cases:
        problems.add_text("There are no cases, so there is nothing to check.")
    for case in tests.cases:
        expect = case.expect
        named: tuple[Any, ...] = (expect.rule, *(expect.rules or ()))
        for name in named:
            if name is None or name in known or (name != expect.rule and "<" in name):
                continue
            advice = (
                "A default is expected with default: on_no_match."
                if name.startswith("<default:")
                else did_you_mean(name, sorted(known))
            )
            problems.add(expect.place, f'The policy has no rule "{name}". {advice}')
    problems.stop_if_any()
