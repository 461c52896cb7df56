"""The suite's deliberate faults on the real CrewAI: they are noticed by their cases, and no others.

The reference shows it of every case. Here it is a few of each fault's own, all where it has few,
and a few of the rest, because a run of a real crew takes its time.
"""

from dataclasses import replace
from pathlib import Path

from adjudge_conformance.case import load_cases
from adjudge_conformance.faults import FAULTS
from adjudge_conformance.noticing import STOPPED_BEFORE_THE_BODY, FaultsAreNoticed, driver_in

DRIVER = driver_in(Path(__file__).with_name("test_conformance.py"), "CrewAIDriver")
# A run that starts over is given its finished calls again, whatever the guard makes of answers;
# where two do so at once, it depends on which is first whether there is anything to give yet.
AGAIN = {"pause.replayed-state-runs-nothing", "pause.resumed-at-once"}
UNSEEN = {"keeps-answers-for-good": AGAIN, "runs-on-deny": AGAIN}


def few(fault):
    """Give the fault with some of its cases and some of the others."""
    also = STOPPED_BEFORE_THE_BODY.get(fault.name, set())
    own = sorted(fault.expected(DRIVER))
    rest = sorted({case.id for case in load_cases() if fault.among(case)} - {*own, *also})
    chosen = {*own[:: 1 if len(own) < 10 else 9], *rest[::20], *also}
    chosen -= UNSEEN.get(fault.name, set())
    return replace(fault, among=lambda case: case.id in chosen)


class TestFaults(FaultsAreNoticed):
    driver = DRIVER
    faults = tuple(few(fault) for fault in FAULTS)
    also = STOPPED_BEFORE_THE_BODY
