"""The file of policy tests as pytest sees it: an item for each case, for coverage, for mutation.

Each item stands for itself, so that it may run in any worker and in any order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import LayeredPolicyBundle, PolicyBundle, PolicyCompileError
from adjudge.analysis import (
    PolicyCase,
    PolicyTests,
    load_policy_tests,
    load_tested_policy,
    measure_coverage,
    mutate_policy,
    run_policy_tests,
)
from pytest_adjudge._settings import least_coverage, mutates

__all__ = ["PolicyTestFile"]

Policy = PolicyBundle | LayeredPolicyBundle


class _Failed(Exception):
    """A policy does not decide as expected; the text is all that there is to say."""


class PolicyTestFile(pytest.File):
    """One file of cases, with the policy that they are about."""

    def collect(self) -> Iterator[pytest.Item]:
        """Read the cases and compile the policy; what is wrong with either fails the collection."""
        here = Path.cwd()
        shown = self.path.relative_to(here) if self.path.is_relative_to(here) else self.path
        try:
            tests = load_policy_tests(shown)
            policy = load_tested_policy(tests)
        except PolicyCompileError as error:
            raise self.CollectError(str(error)) from None
        for case in tests.cases:
            yield _CaseItem.of(self, case.name, policy, tests, case)
        least = least_coverage(self.config)
        if least is not None:
            yield _CoverageItem.of(self, "[coverage]", policy, tests, least)
        if mutates(self.config):
            yield _MutationItem.of(self, "[mutation]", policy, tests, None)


class _PolicyItem(pytest.Item):
    """One thing that is asked of the policy."""

    policy: Policy
    tests: PolicyTests
    about: Any

    @classmethod
    def of(
        cls, parent: PolicyTestFile, name: str, policy: Policy, tests: PolicyTests, about: Any
    ) -> _PolicyItem:
        item: _PolicyItem = cls.from_parent(parent, name=name)
        item.policy, item.tests, item.about = policy, tests, about
        return item

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Say what is wrong, without a traceback through us."""
        if isinstance(excinfo.value, _Failed | PolicyCompileError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Say where the case stands."""
        return self.path, None, self.name


class _CaseItem(_PolicyItem):
    """One case."""

    def runtest(self) -> None:
        """Ask the policy about the call."""
        case: PolicyCase = self.about
        report = run_policy_tests(self.policy, replace(self.tests, cases=(case,)))
        for failure in report.failures:
            place = case.place
            where = f"{place.file}:{place.line}" if place.line else f"{place.file} {place.path}"
            raise _Failed(f"{where}: {failure.explained()}")

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Say where the case stands."""
        line = self.about.place.line
        return self.path, None if line is None else line - 1, self.name


class _CoverageItem(_PolicyItem):
    """How much of the policy all cases of the file exercise."""

    def runtest(self) -> None:
        """Measure it."""
        report = run_policy_tests(self.policy, self.tests)
        coverage = measure_coverage(self.policy, report)
        if coverage.percent < self.about:
            raise _Failed(f"{coverage.explained()}\nThat is less than {self.about:g} %.")


class _MutationItem(_PolicyItem):
    """Whether all cases of the file together notice every mistake."""

    def runtest(self) -> None:
        """Try them."""
        report = mutate_policy(self.policy, self.tests)
        if not report.passed:
            raise _Failed(report.explained())
