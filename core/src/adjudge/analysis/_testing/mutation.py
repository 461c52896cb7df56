"""Which changes to a policy its test cases would notice: mutation testing.

A change that no case notices and that does make a difference has survived, and the call on which it
does is the case that is missing. Where no such call is found the change counts as none; finding one
is a search, not a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from adjudge._enforcement.approvals import escaped
from adjudge._types import ActionRequest, Decision, ToolMetadata
from adjudge.analysis._asking import Policy, settled
from adjudge.analysis._comparing.diff import diff
from adjudge.analysis._testing.case_running import PolicyTestReport, differences, run_policy_tests
from adjudge.analysis._testing.cases import PolicyCase, PolicyTests, spot
from adjudge.analysis._testing.mutants import Changed, Mutant, mutants_of
from adjudge.analysis._wording import RuleNames, call_in_words
from adjudge.errors import PolicyCompileError
from adjudge.policy import LayeredPolicyBundle, PolicyBundle, evaluate
from adjudge.policy._compile import CompiledPolicy, compile_source
from adjudge.policy._match import literal_tools
from adjudge.policy._model import Rule
from adjudge.policy._python_rules import PythonRule, name_of
from adjudge.policy._verdicts import tagged
from adjudge.policy._work import Work
from adjudge.testing import make_request

__all__ = ["MutantResult", "MutationReport", "mutate_policy"]

# Most differences show in the first calls that are tried; that there is none is worth more of them.
_FIRST_CALLS = 400
_USUAL = ("principal", "workspace")
_NOBODYS = make_request("another_tool")
_METADATA = (ToolMetadata(), ToolMetadata(reversible=False), None)


@dataclass(frozen=True, slots=True)
class MutantResult:
    """What came of one mutant: the case that noticed it, or a call that it decides otherwise.

    `call` is a call that no case is like: `before` is what the policy decides about it and `after`
    what the mutant does. All are None where no such call was found. `told` says it in words.
    """

    mutant: Mutant
    killed_by: str | None = None
    call: ActionRequest | None = None
    before: Decision | None = None
    after: Decision | None = None
    told: tuple[str, ...] = ()

    def explained(self) -> str:
        """Say in lines what is not noticed, where it stands, and which case is missing."""
        mutant = self.mutant
        rule = "" if mutant.rule is None else f"rule {mutant.rule}: "
        lines = (f"{spot(mutant.place)}: {rule}no case notices if {mutant.change}", *self.told)
        return "\n  ".join(map(escaped, lines))

    @property
    def survived(self) -> bool:
        """Whether it decides otherwise and no case notices."""
        return self.killed_by is None and self.call is not None


@dataclass(frozen=True, slots=True)
class MutationReport:
    """What came of all mutants; none is made where a case fails on the policy itself."""

    baseline: PolicyTestReport
    results: tuple[MutantResult, ...]

    @property
    def killed(self) -> tuple[MutantResult, ...]:
        """Those that a case noticed."""
        return tuple(each for each in self.results if each.killed_by is not None)

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """Those that decide otherwise, and no case noticed."""
        return tuple(each for each in self.results if each.survived)

    @property
    def equal(self) -> tuple[MutantResult, ...]:
        """Those of which no call was found that they decide otherwise."""
        return tuple(each for each in self.results if each.killed_by is None and each.call is None)

    @property
    def passed(self) -> bool:
        """Whether the cases pass, and notice every change that makes a difference."""
        return self.baseline.passed and not self.survivors

    def explained(self) -> str:
        """Say in lines how many changes are noticed, and which are not."""
        if not self.baseline.passed:
            return "mutation: not tried, for the cases must pass first"
        told = f"mutation: {len(self.killed)} of {len(self.results)} changes noticed"
        told += f", {len(self.survivors)} not"
        if self.equal:
            told += f", {len(self.equal)} without a difference that was found"
        blocks = [told, *(each.explained() for each in self.survivors)]
        return "\n".join(blocks).replace("\n", "\n  ")


def mutate_policy(
    policy: Policy,
    tests: PolicyTests,
    *,
    max_calls: int = 10_000,
    progress: Callable[[int, int], None] | None = None,
) -> MutationReport:
    """Change the policy in one place after the other, and see which changes the cases notice.

    At most about `max_calls` calls are tried to tell a mutant that no case notices from the policy,
    of the tools that the file of cases lists, or else of any.
    `progress` is told how many of how many mutants were tried. Raises `PolicyCompileError` as
    `run_policy_tests` does.
    """
    baseline = run_policy_tests(policy, tests)
    if not baseline.passed:
        return MutationReport(baseline, ())
    count = sum(1 for _ in _trials(policy))
    trier = _Trier(policy, tests, max_calls)
    results = []
    for number, trial in enumerate(_trials(policy)):
        result = trier.tried(trial)
        if result is not None:
            results.append(result)
        if progress is not None:
            progress(number + 1, count)
    return MutationReport(baseline, tuple(results))


@dataclass(frozen=True, slots=True)
class _Trial:
    """One mutant of one layer, and the tools that its change is about (None: any)."""

    mutant: Mutant
    layer: str
    changed: Changed | None
    python_rules: tuple[PythonRule, ...]
    tools: frozenset[str] | None


def _layers(policy: Policy) -> tuple[tuple[str, PolicyBundle], ...]:
    return policy.layers if isinstance(policy, LayeredPolicyBundle) else (("", policy),)


def _trials(policy: Policy) -> Iterator[_Trial]:
    for layer, bundle in _layers(policy):
        for changed in mutants_of(bundle.source):
            rule = None if changed.before is None else tagged(layer, changed.before.id)
            mutant = Mutant(changed.kind, rule, changed.place, changed.change)
            yield _Trial(mutant, layer, changed, bundle.python_rules, _tools_of(changed))
        for function in bundle.python_rules:
            name = tagged(layer, name_of(function))
            left = tuple(each for each in bundle.python_rules if each is not function)
            mutant = Mutant("python_rule_dropped", name, None, "the Python rule is gone")
            yield _Trial(mutant, layer, None, left, None)


def _tools_of(changed: Changed) -> frozenset[str] | None:
    """Give the only tools about which a changed rule can say something else."""
    if changed.before is None:
        return None
    tools = literal_tools(changed.before.match)
    if tools is None or changed.after is None:
        return tools
    now = literal_tools(changed.after.match)
    return None if now is None else tools | now


class _Trier:
    """Runs the cases against mutants, and looks for the call that a survivor decides otherwise."""

    def __init__(self, policy: Policy, tests: PolicyTests, max_calls: int) -> None:
        self._policy = policy
        self._max_calls = max_calls
        self._cases = tests.cases
        self._available = tests.tools
        self._decided = {id(case): self._deciders(case) for case in tests.cases}
        self._names = RuleNames(policy)
        self._tools: dict[int, frozenset[str] | None] = {}
        # What one mutant compiles of patterns, the next one has.
        self._work = Work()

    def _deciders(self, case: PolicyCase) -> tuple[str, ...]:
        return settled(self._policy, case.request, unresolvable=case.unresolvable)[1].matched_rules

    def tried(self, trial: _Trial) -> MutantResult | None:
        """Say what comes of a mutant; None for one that is no policy."""
        cases = [
            case for case in self._cases if trial.tools is None or case.request.tool in trial.tools
        ]
        # Who decides a case is the likeliest to be missed by it.
        cases.sort(key=lambda case: trial.mutant.rule not in self._decided[id(case)])
        asked = frozenset(case.request.tool for case in cases)
        try:
            killer = self._killer(self._changed(trial, asked), cases) if cases else None
            if killer is not None:
                return MutantResult(trial.mutant, killed_by=killer)
            found = self._difference(self._changed(trial, None))
        except PolicyCompileError:
            return None
        return MutantResult(trial.mutant, None, *found, self._told(*found))

    def _told(
        self, call: ActionRequest | None, before: Decision | None, after: Decision | None
    ) -> tuple[str, ...]:
        if call is None or before is None or after is None:
            return ()
        was, is_now = (
            f"{each.verdict} by {self._names.in_words(each.matched_rules)}"
            for each in (before, after)
        )
        return (
            f"a case that would: {call_in_words(call, usual=_USUAL)}",
            f"is {was}, and would be {is_now}",
        )

    def _difference(
        self, mutant: Policy
    ) -> tuple[ActionRequest | None, Decision | None, Decision | None]:
        """Give a call that a mutant decides otherwise, with both decisions, if one is found."""
        for call in self._plain_calls():
            before, after = evaluate(self._policy, call), evaluate(mutant, call)
            if before.verdict is not after.verdict:
                return call, before, after
        for most in (min(_FIRST_CALLS, self._max_calls), self._max_calls):
            found = diff(self._policy, mutant, max_calls=most, available=self._available)
            if not found.same:
                first = found.differences[0]
                return first.call, first.old, first.new
            if found.proved:
                break
        return None, None, None

    def _plain_calls(self) -> Iterable[ActionRequest]:
        """Give calls without arguments, which a change of a default shows in."""
        if self._available is None:
            return (replace(_NOBODYS, declared=declared) for declared in _METADATA)
        return (
            replace(_NOBODYS, tool=name, namespace=tool.namespace, declared=tool.declared)
            for name, tool in self._available.items()
        )

    def _killer(self, mutant: Policy, cases: Sequence[PolicyCase]) -> str | None:
        for case in cases:
            request, decision = settled(mutant, case.request, unresolvable=case.unresolvable)
            if differences(case.expect, request, decision):
                return case.name
        return None

    def _changed(self, trial: _Trial, tools: frozenset[str] | None) -> Policy:
        """Give the policy with the mutant in it; with `tools`, good for calls of these alone."""
        policy = self._policy
        if isinstance(policy, PolicyBundle):
            return self._recompiled(policy, trial, tools)
        layers = tuple(
            (name, self._recompiled(bundle, trial, tools) if name == trial.layer else bundle)
            for name, bundle in policy.layers
        )
        compiled: tuple[CompiledPolicy, ...] = tuple(
            bundle._compiled if name == trial.layer else before
            for (name, bundle), before in zip(layers, policy._compiled, strict=True)
        )
        return replace(policy, id="mutant", layers=layers, _compiled=compiled)

    def _concerns(self, rule: Rule, tools: frozenset[str]) -> bool:
        """Whether a rule can be anything but false of any of these tools."""
        if id(rule) not in self._tools:
            self._tools[id(rule)] = literal_tools(rule.match)
        named = self._tools[id(rule)]
        return named is None or not named.isdisjoint(tools)

    def _recompiled(
        self, bundle: PolicyBundle, trial: _Trial, tools: frozenset[str] | None
    ) -> PolicyBundle:
        """Compile the changed source alone; what no case asks about need not be compiled."""
        source = bundle.source
        if tools is not None:
            changed = None if trial.changed is None else trial.changed.before
            rules = (
                rule for rule in source.rules if rule is changed or self._concerns(rule, tools)
            )
            source = replace(source, rules=tuple(rules))
        if trial.changed is not None:
            source = trial.changed.of(source)
        python_rules = {name_of(rule): rule for rule in trial.python_rules}
        compiled = compile_source(
            source,
            python_rules,
            dict(bundle.python_rule_priorities),
            layer=trial.layer,
            work=self._work,
        )
        return replace(
            bundle,
            id="mutant",
            source=source,
            python_rules=trial.python_rules,
            _compiled=compiled,
        )
