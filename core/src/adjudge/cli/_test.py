"""`adjudge policy test`: whether a policy decides as its test cases say.

With `--coverage`, what the cases exercise; with `--mutate`, which mistakes they would not notice.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge._enforcement.approvals import escaped
from adjudge.cli._loading import load
from adjudge.cli._output import complain, say, say_json
from adjudge.cli._progress import progress_of
from adjudge.cli._refusing import complain_of
from adjudge.errors import PolicyCompileError

if TYPE_CHECKING:
    from adjudge.analysis import PolicyTests
    from adjudge.cli._test_report import Report
    from adjudge.policy import LayeredPolicyBundle, PolicyBundle

__all__ = ["add"]

_NO_CASES = (
    "It has no test cases: there is no {}.test.yaml (or .yml, .json, .toml) beside it; write one, "
    "or name the cases with --tests."
)
_ABOUT_OTHERS = (
    "The cases in {0} are about {1}, not about this policy; ask it about them with --tests {0}."
)


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


class _Refused(Exception):
    """Input that cannot be used; `file` is what it was read for."""

    def __init__(self, file: str, problems: Sequence[str]) -> None:
        super().__init__(file)
        self.file = file
        self.problems = tuple(problems)

    def to_json(self) -> dict[str, Any]:
        """Give it as plain JSON."""
        return {"file": self.file, "passed": False, "problems": list(self.problems)}


@contextmanager
def _reading(*files: str | Path) -> Iterator[None]:
    """Let what is wrong with these files be reported under the name of the one that it is in."""
    try:
        yield
    except PolicyCompileError as error:
        named = [str(file) for file in files if str(error).startswith(f"{file}:")]
        raise _Refused((named or [str(files[0])])[0], error.problems) from None


def _test(options: argparse.Namespace) -> int:
    reports: list[Report] = []
    refused: list[_Refused] = []
    runs: dict[tuple[str, ...], _Run] = {}
    for file in dict.fromkeys(options.files):
        try:
            for run in _runs(file, options.tests):
                runs.setdefault(run.key, run)
        except _Refused as error:
            refused.append(error)
    for run in runs.values():
        try:
            reports.append(_report(run, options))
        except _Refused as error:
            refused.append(error)
    for each in refused:
        complain_of(each.file, each.problems)
    for report in reports:
        for warning in report.tested.warnings:
            complain(escaped(f"warning: {warning}"))
    if options.json:
        say_json([*(each.to_json() for each in reports), *(each.to_json() for each in refused)])
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
    policy: PolicyBundle | LayeredPolicyBundle
    files: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """What it is that is run, whichever of its files was named."""
        return tuple(str(Path(file).resolve()) for file in (self.tests.file or "", *self.files))


def _runs(file: str, named: list[str] | None) -> Iterator[_Run]:
    """Give what is to be run for a file that the command names."""
    from adjudge.analysis import (
        find_policy_tests,
        is_test_file,
        load_policy_tests,
        load_tested_policy,
        policy_files_of,
    )

    if named is not None:
        with _reading(file):
            policy = load(file)
        for name in named:
            with _reading(name):
                tests = load_policy_tests(name)
            yield _Run(tests, policy, (file,))
        return
    beside = (Path(file),) if is_test_file(file) else find_policy_tests(file)
    if not beside:
        with _reading(file):
            load(file)  # What is wrong with the policy is worth more than that it has no cases.
        raise _Refused(file, [_NO_CASES.format(Path(file).stem)])
    for path in beside:
        with _reading(path):
            tests = load_policy_tests(path)
            files = policy_files_of(tests)
        if path != Path(file) and Path(file).resolve() not in [each.resolve() for each in files]:
            others = " and ".join(map(str, files))
            raise _Refused(file, [_ABOUT_OTHERS.format(path, others)])
        with _reading(*files):
            tested = load_tested_policy(tests)
        yield _Run(tests, tested, tuple(map(str, files)))


def _report(run: _Run, options: argparse.Namespace) -> Report:
    from adjudge.analysis import measure_coverage, mutate_policy, run_policy_tests
    from adjudge.cli._test_report import Report

    with _reading(run.tests.file or run.files[0]):
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
