"""Deliberately wrong drivers: each fault is noticed by exactly the cases that are there for it."""

from adjudge_conformance import Style
from adjudge_conformance.case import load_cases
from adjudge_conformance.faults import FAULTS, FAULTS_AT_THE_DOOR
from adjudge_conformance.noticing import FaultsAreNoticed
from adjudge_conformance.reference import ReferenceDriver


class TestFaults(FaultsAreNoticed):
    driver = ReferenceDriver
    faults = (*FAULTS, *FAULTS_AT_THE_DOOR)
    styles = (Style.SYNC, Style.ASYNC)
    everywhere = True

    def test_every_fault_has_a_case_that_notices(self):
        """A fault that no case is expected to notice would show nothing."""
        assert all(fault.expected(ReferenceDriver) for fault in self.faults)


def test_every_case_notices_some_fault():
    """A case that no fault can fail is no test."""
    noticed = {case.id for case in load_cases() if any(f.notices(case) for f in FAULTS)}

    assert {case.id for case in load_cases()} <= noticed
