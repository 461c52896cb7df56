"""What a person asks about a policy: what it says, whether it means that, and what would change.

`import adjudge` never loads this package, and nothing that decides or enforces imports it. Every
function takes compiled policies and gives values; the commands of the same names print them.
"""

from __future__ import annotations

from adjudge.analysis._comparing.diff import Difference, PolicyDifference, diff
from adjudge.analysis._explaining.explain import explain
from adjudge.analysis._explaining.explanation import (
    ConditionAnswer,
    Explanation,
    LayerAnswer,
    RuleAnswer,
)
from adjudge.analysis._linting.findings import FINDING_CODES, Finding
from adjudge.analysis._linting.lint import lint
from adjudge.analysis._recorded.log_files import LogFile
from adjudge.analysis._recorded.recorded import RecordedCall, RecordedLog, read_log
from adjudge.analysis._recorded.replay import Change, ReplayResult, UntoldCalls, replay
from adjudge.analysis._recorded.suggest import NothingToSuggest, Suggestion, suggest
from adjudge.analysis._recorded.telling import Untold
from adjudge.analysis._schema import policy_schema
from adjudge.analysis._testing.case_files import (
    find_policy_tests,
    is_test_file,
    load_policy_tests,
    load_tested_policy,
    policy_files_of,
)
from adjudge.analysis._testing.case_reading import read_policy_tests
from adjudge.analysis._testing.case_running import CaseResult, PolicyTestReport, run_policy_tests
from adjudge.analysis._testing.cases import Expectation, PolicyCase, PolicyTests
from adjudge.analysis._testing.coverage import (
    ConditionCoverage,
    Coverage,
    RuleCoverage,
    measure_coverage,
)
from adjudge.analysis._testing.mutants import MUTANT_KINDS, Mutant
from adjudge.analysis._testing.mutation import MutantResult, MutationReport, mutate_policy

__all__ = [
    "CaseResult",
    "Change",
    "ConditionAnswer",
    "ConditionCoverage",
    "Coverage",
    "Difference",
    "Expectation",
    "Explanation",
    "FINDING_CODES",
    "Finding",
    "LayerAnswer",
    "LogFile",
    "MUTANT_KINDS",
    "Mutant",
    "MutantResult",
    "MutationReport",
    "NothingToSuggest",
    "PolicyCase",
    "PolicyDifference",
    "PolicyTestReport",
    "PolicyTests",
    "RecordedCall",
    "RecordedLog",
    "ReplayResult",
    "RuleAnswer",
    "RuleCoverage",
    "Suggestion",
    "Untold",
    "UntoldCalls",
    "diff",
    "explain",
    "find_policy_tests",
    "is_test_file",
    "lint",
    "load_policy_tests",
    "load_tested_policy",
    "measure_coverage",
    "mutate_policy",
    "policy_files_of",
    "policy_schema",
    "read_log",
    "read_policy_tests",
    "replay",
    "run_policy_tests",
    "suggest",
]
