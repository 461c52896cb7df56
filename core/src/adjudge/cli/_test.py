"""`adjudge policy test`: whether a policy decides as its test cases say.

With `--coverage`, what the cases exercise; with `--mutate`, which mistakes they would not notice.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge._enforcement.approvals import escaped
from adjudge.cli._loading import complain_of, load
from adjudge.cli._output import say, say_json
from adjudge.cli._progress import progress_of
from adjudge.errors import PolicyCompileError

if TYPE_CHECKING:
    from adjudge.analysis import PolicyTests
    from adjudge.cli._test_report import Report
    from adjudge.policy import LayeredPolicyBundle, PolicyBundle

    Policy = PolicyBundle | LayeredPolicyBundle

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("test", help="ask policies about their test cases")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a policy, whose cases stand beside it in NAME.test.yaml; or such a file of cases",
    )
    parser.add_argument(
        "--tests", action="append", metavar="FILE", help="ask the policies about these cases"
    )
    parser.add_argument(
        "--coverage", action="store_true", help="say which rules and conditions no case exercises"
    )
    parser.add_argument(
        "--fail-under",
        type=_percent,
        metavar="PERCENT",
        help="fail if the coverage is less",
    )
    parser.add_argument(
        "--mutate", action="store_true", help="say which mistakes in the policy no case notices"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_test)


def _percent(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 100:
        raise ValueError
    return number


def _test(options: argparse.Namespace) -> int:

    reports: list[Report] = []
    runs: dict[tuple[str, ...], _Run] = {}
    refused = False
    for file in dict.fromkeys(options.files):
        try:
            for run in _runs(file, options.tests):
                runs.setdefault(run.key, run)
        except PolicyCompileError as error:
            complain_of(file, error.problems)
            refused = True
    for run in runs.values():
        try:
            reports.append(_report(run, options))
        except PolicyCompileError as error:
            complain_of(run.tests.file or "", error.problems)
            refused = True
    if options.json:
        say_json([report.to_json() for report in reports])
    else:
        for report in reports:
            say(escaped("\n".join(report.lines()), lines=True))
    if refused:
        return 2
    return 0 if all(report.good for report in reports) else 1


@dataclass(frozen=True)
class _Run:
    """The cases of one file, and the policy that is to be asked about them."""

    tests: PolicyTests
    policy: Policy
    files: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """What it is that is run, whichever of its files was named."""
        return tuple(str(Path(file).resolve()) for file in (self.tests.file or "", *self.files))


def _runs(file: str, named: list[str] | None) -> Iterator[_Run]:
    """Give what is to be run for a file that the command names."""
    from adjudge.analysis import (
        find_policy_tests,
        load_policy_tests,
        load_tested_policy,
        policy_files_of,
    )
    from adjudge.analysis import is_test_file as holds_cases

    if named is not None:
        policy = load(file)
        for name in named:
            yield _Run(load_policy_tests(name), policy, (file,))
        return
    beside = (Path(file),) if holds_cases(file) else find_policy_tests(file)
    if not beside:
        load(file)  # What is wrong with the policy itself is worth more than that it has no cases.
        raise PolicyCompileError(
            f"It has no test cases: there is no {Path(file).stem}.test.yaml (or .yml, .json, "
            ".toml) beside it; write one, or name the cases with --tests."
        )
    for path in beside:
        tests = load_policy_tests(path)
        files = policy_files_of(tests)
        if not holds_cases(file) and Path(file).resolve() not in [f.resolve() for f in files]:
            raise PolicyCompileError(
                f"The cases in {path} are about {' and '.join(map(str, files))}, not about this "
                f"policy; ask it about them with --tests {path}."
            )
        yield _Run(tests, load_tested_policy(tests), tuple(map(str, files)))


def _report(run: _Run, options: argparse.Namespace) -> Report:
    from adjudge.analysis import measure_coverage, mutate_policy, run_policy_tests
    from adjudge.cli._test_report import Report

    tested = run_policy_tests(run.policy, run.tests)
    coverage = None
    if options.coverage or options.fail_under is not None:
        coverage = measure_coverage(run.policy, tested)
    mutation = None
    if options.mutate:
        with progress_of(run.files[-1], doing="mutating") as tell:
            mutation = mutate_policy(run.policy, run.tests, progress=tell)
    return Report(
        policy=run.policy,
        files=run.files,
        tested=tested,
        coverage=coverage,
        fail_under=options.fail_under,
        mutation=mutation,
    )
