"""Paused runs that go on otherwise than they must: each is told as what it is."""

import base64
import json

import pytest

from adjudge import ApprovalDecision
from adjudge_conformance.case import load_cases
from adjudge_conformance.cells import Cell
from adjudge_conformance.driver import Driver, Outcome, Style
from adjudge_conformance.reference import ReferenceDriver
from adjudge_conformance.trial import Trial
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import Workers


class WithoutNativeApproval(ReferenceDriver):
    """A driver that does not say how its framework approves."""

    approve_natively = Driver.approve_natively


class NativeApprovalIsAnAnswer(ReferenceDriver):
    """A driver that takes the framework's word for a person's."""

    def approve_natively(self, target, saved):
        """Grant all that waits."""
        state = json.loads(saved)
        waiting = target.guard.waiting_sync(state["run"])
        run = target.guard.reopen_sync({each.id: ApprovalDecision(True) for each in waiting})
        target.load(state, run)
        return target.go_on()


class Sealed(ReferenceDriver):
    """A driver whose saved runs are no text that could be changed."""

    def save(self, outcome):
        """Seal it."""
        return base64.b64encode(super().save(outcome))

    def resume(self, target, saved, answers):
        """Break the seal."""
        return super().resume(target, base64.b64decode(saved), answers)


class WaitsForNobody(ReferenceDriver):
    """A driver that says of a run in which somebody is still to answer that it is over."""

    def resume(self, target, saved, answers):
        """Go on, and forget what waits."""
        return Outcome(final=super().resume(target, saved, answers).final or "Over.")


class RaisesWhenItIsLate(ReferenceDriver):
    """A driver that fails where another process has gone on."""

    def resume(self, target, saved, answers):
        """Look whether the model has been told of the call."""
        done = super().resume(target, saved, answers)
        told = str(target.conversation.history)
        if "[denied]" in told:
            raise RuntimeError("somebody else was here")
        return done


@pytest.fixture(scope="module")
def surroundings():
    """The model service and the two processes for all trials."""
    with ScriptedServer() as server, Workers() as workers:
        yield server, workers


@pytest.fixture
def problems(surroundings, tmp_path):
    """Try a case on a driver and give what is wrong, in one text."""

    def try_case(driver, name):
        case = next(case for case in load_cases() if case.id == name)
        cell = Cell(case, Style.SYNC, "chat", parallel=False)
        folder = tmp_path / f"{name}-{driver.__name__}"
        return "\n".join(Trial(driver, *surroundings).differences(cell, folder))

    return try_case


@pytest.mark.parametrize(
    ("driver", "case", "said"),
    [
        (WithoutNativeApproval, "pause.native-approval-alone", "has no approval of its own"),
        (
            NativeApprovalIsAnAnswer,
            "pause.native-approval-alone",
            "this ran when the framework alone had approved: body pay",
        ),
        (Sealed, "pause.tampered-state", "does not hold the text '99.5'"),
        (WaitsForNobody, "pause.partial-answers", "did not wait for round 2"),
        (RaisesWhenItIsLate, "pause.resumed-at-once", "somebody else was here"),
        (RaisesWhenItIsLate, "pause.replayed-state-runs-nothing", "somebody else was here"),
    ],
)
def test_wrong_resumption_is_told(problems, driver, case, said):
    """Each way of going on wrongly has its own line."""
    assert said in problems(driver, case)


@pytest.mark.parametrize("case", ["pause.partial-answers", "pause.resumed-at-once"])
def test_right_resumption_has_no_problems(problems, case):
    """The same cases hold on the reference, a saved run that is sealed included."""
    assert ["", ""] == [problems(ReferenceDriver, case), problems(Sealed, case)]
