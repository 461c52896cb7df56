"""What `adjudge policy test` prints of one file of cases: as text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adjudge._types import Decision
from adjudge.analysis import (
    CaseResult,
    Coverage,
    MutantResult,
    MutationReport,
    PolicyTestReport,
)
from adjudge.analysis._testing.cases import spot
from adjudge.analysis._wording import call_to_json
from adjudge.policy import LayeredPolicyBundle, PolicyBundle
from adjudge.policy._model import Place

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """What came of one file of cases; `coverage` and `mutation` where they were asked for."""

    policy: PolicyBundle | LayeredPolicyBundle
    files: tuple[str, ...]
    tested: PolicyTestReport
    coverage: Coverage | None
    fail_under: float | None
    mutation: MutationReport | None

    @property
    def good(self) -> bool:
        """Whether every case passed, enough is covered and no mutant survived."""
        return (
            self.tested.passed and self.covered and (self.mutation is None or self.mutation.passed)
        )

    @property
    def covered(self) -> bool:
        """Whether as much is covered as is asked for."""
        return self.coverage is None or self.coverage.percent >= (self.fail_under or 0)

    def lines(self) -> Iterator[str]:
        """Give the report as text, a line each."""
        yield from self._cases()
        if self.coverage is not None:
            yield self.coverage.explained()
            if not self.covered:
                yield f"  that is less than {self.fail_under:g} %"
        if self.mutation is not None:
            yield self.mutation.explained()

    def _cases(self) -> Iterator[str]:
        count, failures = len(self.tested.results), self.tested.failures
        about = f"{self.tested.tests.file} ({', '.join(self.files)})"
        cases = "1 case" if count == 1 else f"{count} cases"
        if not failures:
            yield f"{about}: {cases}, as expected"
            return
        yield f"{about}: {len(failures)} of {cases} not as expected"
        for result in failures:
            yield f'{spot(result.case.place)}: "{result.case.name}"'
            yield from (f"  {line}" for line in result.explained().splitlines())

    def to_json(self) -> dict[str, Any]:
        """Give the whole report as plain JSON."""
        report: dict[str, Any] = {
            "tests": self.tested.tests.file,
            "policies": list(self.files),
            "bundle_id": self.policy.id,
            "passed": self.good,
            "warnings": list(self.tested.warnings),
            "cases": [_case_to_json(result) for result in self.tested.results],
        }
        if self.coverage is not None:
            report["coverage"] = _coverage_to_json(self.coverage)
        if self.mutation is not None:
            report["mutation"] = _mutation_to_json(self.mutation)
        return report


def _place_to_json(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"file": place.file, "line": place.line, "column": place.column, "path": place.path}


def _decision_to_json(decision: Decision) -> dict[str, Any]:
    return {
        "verdict": decision.verdict,
        "rules": list(decision.matched_rules),
        "reason": decision.reason,
        "args": _plain(decision.effective_args),
        "approvers": list(decision.approvers),
        "obligations": [each.id for each in decision.obligations],
    }


def _plain(value: Any) -> Any:
    from adjudge._record.format import to_json

    return None if value is None else to_json(value)


def _case_to_json(result: CaseResult) -> dict[str, Any]:
    return {
        "name": result.case.name,
        "place": _place_to_json(result.case.place),
        "passed": result.passed,
        "differences": list(result.differences),
        "decision": _decision_to_json(result.decision),
    }


def _coverage_to_json(coverage: Coverage) -> dict[str, Any]:
    return {
        "percent": coverage.percent,
        "defaults": {name: list(cases) for name, cases in coverage.defaults.items()},
        "rules": [
            {
                "rule": rule.name,
                "place": _place_to_json(rule.place),
                "decided": list(rule.decided),
                "conditions": [
                    {
                        "condition": each.text,
                        "place": _place_to_json(each.place),
                        "true": each.true,
                        "false": each.false,
                        "errors": each.errors,
                    }
                    for each in rule.conditions
                ],
            }
            for rule in coverage.rules
        ],
    }


def _mutation_to_json(mutation: MutationReport) -> dict[str, Any]:
    return {
        "mutants": len(mutation.results),
        "killed": len(mutation.killed),
        "survived": len(mutation.survivors),
        "equal": len(mutation.equal),
        "results": [_mutant_to_json(result) for result in mutation.results],
    }


def _mutant_to_json(result: MutantResult) -> dict[str, Any]:
    mutant = result.mutant
    told: dict[str, Any] = {
        "kind": mutant.kind,
        "rule": mutant.rule,
        "place": _place_to_json(mutant.place),
        "change": mutant.change,
        "killed_by": result.killed_by,
    }
    if result.call is not None:
        told["call"] = call_to_json(result.call)
        told["before"] = result.before and _decision_to_json(result.before)
        told["after"] = result.after and _decision_to_json(result.after)
    return told
