"""The policies that we ship have test cases that notice every mistake in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.analysis import (
    find_policy_tests,
    load_policy_tests,
    load_tested_policy,
    measure_coverage,
    mutate_policy,
)

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
POLICIES = sorted(EXAMPLES.glob("**/policy.yaml"))


@pytest.mark.needs_yaml
@pytest.mark.parametrize("policy", POLICIES, ids=lambda path: path.parent.name)
def test_no_mistake_in_a_shipped_policy_survives(policy):
    """Every case passes, everything is covered, and every change that matters is noticed."""
    (beside,) = find_policy_tests(policy)
    tests = load_policy_tests(beside)
    tested = load_tested_policy(tests)
    report = mutate_policy(tested, tests)

    assert report.baseline.passed
    assert 100.0 == measure_coverage(tested, report.baseline).percent
    assert () == report.survivors, report.explained()
    assert len(report.equal) < len(report.killed) / 10
