"""The suite's deliberate faults on the real LangGraph: each is noticed by exactly its cases."""

import importlib.util
import sys
from pathlib import Path

import pytest

from adjudge_conformance import Style
from adjudge_conformance.faults import FAULTS
from adjudge_conformance.worker import Workers

_PATH = Path(__file__).with_name("test_conformance.py")
_SPEC = importlib.util.spec_from_file_location("langgraph_driver", _PATH)
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _MODULE  # by which the driver's file is found, for another process
_SPEC.loader.exec_module(_MODULE)

DRIVER = _MODULE.OneTaskDriver


@pytest.fixture(scope="module")
def workers():
    """The two processes for all trials."""
    with Workers() as running:
        yield running


# Arguments that the guard did not read with the call are stopped before the body, so that these
# cases notice as well.
ALSO = {
    "executes-other-arguments": {"context.of-a-nested-agent"},
    "ignores-defaults": {
        "transform.delete-gives-the-default",
        "transparent.left-out-defaults",
        "transparent.odd-spelling",
        "transparent.parallel-calls",
    },
}
# A call that waits does not come to the guard until it has its answer, so this one cannot show.
UNREACHED = {"takes-native-approval-for-grant"}


@pytest.mark.parametrize(
    "fault",
    [fault for fault in FAULTS if fault.expected(DRIVER) and fault.name not in UNREACHED],
    ids=lambda fault: fault.name,
)
def test_a_fault_fails_exactly_its_cases(fault, server, workers, tmp_path):
    """No case misses the fault that it is there for, and none fails for another's."""
    expected = fault.expected(DRIVER)

    failing = fault.failing(DRIVER, server, workers, tmp_path, styles=(Style.ASYNC,))

    assert expected | ALSO.get(fault.name, set()) == failing
