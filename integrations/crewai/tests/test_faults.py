"""The suite's deliberate faults on the real CrewAI: they are noticed by their cases, and no others.

The reference shows it of every case. Here it is a few of each fault's own, all where it has few,
and a few of the rest, because a run of a real crew takes its time.
"""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge_conformance import Style
from adjudge_conformance.case import load_cases
from adjudge_conformance.faults import FAULTS
from adjudge_conformance.worker import Workers

_PATH = Path(__file__).with_name("test_conformance.py")
_SPEC = importlib.util.spec_from_file_location("crewai_driver", _PATH)
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _MODULE  # by which the driver's file is found, for another process
_SPEC.loader.exec_module(_MODULE)

DRIVER = _MODULE.CrewAIDriver


# A run that starts over is given its finished calls again, whatever the guard makes of answers;
# where two do so at once, it depends on which is first whether there is anything to give yet.
AGAIN = {"pause.replayed-state-runs-nothing", "pause.resumed-at-once"}
UNSEEN = {"keeps-answers-for-good": AGAIN, "runs-on-deny": AGAIN}
# What was not judged is stopped before the body, so that these cases notice as well.
ALSO = {
    "ignores-defaults": {
        "transform.delete-gives-the-default",
        "transparent.left-out-defaults",
        "transparent.odd-spelling",
        "transparent.parallel-calls",
    }
}


def few(fault):
    """Give the fault with some of its cases and some of the others."""
    own = sorted(fault.expected(DRIVER))
    rest = sorted({case.id for case in load_cases() if fault.among(case)} - set(own))
    rest = [case for case in rest if case not in ALSO.get(fault.name, ())]
    chosen = {*own[:: 1 if len(own) < 10 else 9], *rest[::20], *ALSO.get(fault.name, ())}
    chosen -= UNSEEN.get(fault.name, set())
    return replace(fault, among=lambda case: case.id in chosen)


@pytest.fixture(scope="module")
def workers():
    """The two processes for all trials."""
    with Workers() as running:
        yield running


@pytest.mark.parametrize(
    "fault",
    [few(fault) for fault in FAULTS if fault.expected(DRIVER)],
    ids=lambda fault: fault.name,
)
def test_a_fault_fails_exactly_its_cases(fault, server, workers, tmp_path):
    """No case misses the fault that it is there for, and none fails for another's."""
    expected = fault.expected(DRIVER)

    failing = fault.failing(DRIVER, server, workers, tmp_path, styles=(Style.ASYNC,))

    assert expected | ALSO.get(fault.name, set()) == failing
