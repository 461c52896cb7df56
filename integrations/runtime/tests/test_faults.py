"""The suite's deliberate faults on the reference loop: each is noticed by exactly its cases."""

import importlib.util
import sys
from pathlib import Path

import pytest

from adjudge_conformance import Style
from adjudge_conformance.faults import FAULTS
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import Workers

_PATH = Path(__file__).with_name("test_conformance.py")
_SPEC = importlib.util.spec_from_file_location("runtime_driver", _PATH)
_MODULE = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _MODULE  # by which the driver's file is found, for another process
_SPEC.loader.exec_module(_MODULE)

DRIVER = _MODULE.RuntimeDriver


@pytest.fixture(scope="module")
def server():
    """The model service."""
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="module")
def workers():
    """The two processes for all trials."""
    with Workers() as running:
        yield running


@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.expected(DRIVER)], ids=lambda fault: fault.name
)
def test_a_fault_fails_exactly_its_cases(fault, server, workers, tmp_path):
    """No case misses the fault that it is there for, and none fails for another's."""
    assert fault.expected(DRIVER) == fault.failing(
        DRIVER, server, workers, tmp_path, styles=(Style.ASYNC,)
    )
