"""Deliberately wrong drivers: each fault is noticed by exactly the cases that are there for it."""

import pytest

from adjudge_conformance.case import load_cases
from adjudge_conformance.faults import FAULTS, FAULTS_AT_THE_DOOR
from adjudge_conformance.reference import ReferenceDriver
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import Workers


@pytest.fixture(scope="module")
def server():
    """The model service for all trials."""
    with ScriptedServer() as running:
        yield running


@pytest.fixture(scope="module")
def workers():
    """The two processes for all trials."""
    with Workers() as running:
        yield running


ALL = (*FAULTS, *FAULTS_AT_THE_DOOR)


@pytest.mark.parametrize("fault", ALL, ids=[fault.name for fault in ALL])
def test_fault_fails_exactly_its_cases(fault, server, workers, tmp_path):
    """No case misses the fault that it is there for; none fails for another's, touched or not."""
    assert fault.expected(ReferenceDriver) == fault.failing(
        ReferenceDriver, server, workers, tmp_path, everywhere=True
    )


def test_every_fault_has_a_case_that_notices():
    """A fault that no case is expected to notice would show nothing."""
    assert all(fault.expected(ReferenceDriver) for fault in ALL)


def test_every_case_notices_some_fault():
    """A case that no fault can fail is no test."""
    noticed = {case.id for case in load_cases() if any(f.notices(case) for f in FAULTS)}

    assert {case.id for case in load_cases()} <= noticed
