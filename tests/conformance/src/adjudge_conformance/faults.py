"""Deliberate faults, each in one way, and the cases that must notice: what tests the suite.

A fault is a guard, a driver or a trial that is wrong in a single respect. Most can be put on any
driver whose integration goes through the guard's two doors, so that each is shown to be caught on
the reference loop and on a real framework: `failing` must give exactly what `expected` gives.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge import ToolGuard
from adjudge_conformance import _faulty_guards as guards
from adjudge_conformance.bench import Bench
from adjudge_conformance.case import Case, load_cases
from adjudge_conformance.cells import Cell, cells_of, gap_for
from adjudge_conformance.driver import Driver, Scene, Style
from adjudge_conformance.trial import Trial
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import OneProcess, Workers

__all__ = ["FAULTS", "Fault"]


def _is_the_frameworks(case: Case) -> bool:
    """Whether it is the framework's affair what runs."""
    return case.kind == "transparent" and case.runs is None


@dataclass(frozen=True)
class Fault:
    """One fault: what is wrong, and which cases must fail for it.

    `notices` tells it of a case; where `undecided` does, it depends on the framework whether the
    fault shows. `trial` and `workers` are for faults of what is around the guard.
    """

    name: str
    says: str
    notices: Callable[[Case], bool]
    guard: type[ToolGuard] = ToolGuard
    undecided: Callable[[Case], bool] = _is_the_frameworks
    trial: type[Trial] = Trial
    workers: type[Workers] = Workers

    def expected(self, driver: type[Driver[Any]]) -> set[str]:
        """The ids of the cases that must fail, those left out in which the driver has a gap."""
        return {case.id for case in self._tried(driver) if self.notices(case)}

    def failing(
        self,
        driver: type[Driver[Any]],
        server: ScriptedServer,
        workers: Workers,
        folder: Path,
        *,
        styles: Collection[Style] = (Style.SYNC, Style.ASYNC),
    ) -> set[str]:
        """Put the fault on a driver and give the ids of the cases that then fail.

        A case is tried in these styles (a paused one in the first of them), over the driver's first
        API, its calls alone: a fault that shows only in other cells is not one of these. `workers`
        are used unless the fault is in them.
        """
        with contextlib.ExitStack() as closing:
            if self.workers is not Workers:
                workers = closing.enter_context(self.workers())
            trial = self.trial(driver, server, workers, self.guard)
            return {
                case.id
                for case in self._tried(driver)
                if any(
                    trial.differences(cell, folder / cell.id) for cell in _few(case, driver, styles)
                )
            }

    def _tried(self, driver: type[Driver[Any]]) -> list[Case]:
        return [
            case
            for case in load_cases()
            if not self.undecided(case)
            and not any(gap_for(cell, driver) for cell in cells_of(case, driver))
        ]


def _few(case: Case, driver: type[Driver[Any]], styles: Collection[Style]) -> list[Cell]:
    cells = [
        cell
        for cell in cells_of(case, driver)
        if cell.style in styles and cell.api == driver.apis[0] and not cell.parallel
    ]
    # A resumed call has one way in, whatever the style in which it was paused.
    return cells[:1] if case.kind == "pause" else cells


class _TellsAnotherSchema(Trial):
    """The model is offered the governed tools in other words."""

    def scene(self, bench: Bench, *, governed: bool) -> Scene:
        """Describe each tool otherwise once it is governed."""
        scene = bench.scene()
        for made in scene.agent.tools if governed else ():
            made.function.__doc__ = f"{made.function.__doc__} (governed)"
        return scene


def _ends(*kinds: str) -> Callable[[Case], bool]:
    """Cases that run once and in which some call ends so."""
    return lambda case: (
        case.kind == "verdict" and any(expect.events[-1] in kinds for expect in case.expect)
    )


def _ends_in_an_action(case: Case) -> bool:
    return any(expect.events[-1].startswith("action.") for expect in case.expect)


def _is(*ids: str) -> Callable[[Case], bool]:
    return lambda case: case.id in ids


def _denied_after_parsing(case: Case) -> bool:
    # Arguments that were refused are not there to run a body with.
    return _ends("action.denied")(case) and not case.id.startswith("arguments.")


def _runs(case: Case) -> bool:
    """Cases in which a body runs through a door of the guard, and not because it was resumed."""
    if case.kind == "transparent":
        return bool(case.runs)
    return any(each.runs and "approval.pending" not in each.events for each in case.expect)


def _returns(case: Case) -> bool:
    return _runs(case) and "boom" not in case.tools


def _runs_with_texts(case: Case) -> bool:
    return _runs(case) and "label_notes" not in case.tools


def _fault(
    name: str, guard: type[ToolGuard], notices: Callable[[Case], bool], **more: Any
) -> Fault:
    return Fault(name, inspect.getdoc(guard) or "", notices, guard, **more)


FAULTS = (
    _fault("runs-on-deny", guards.RunsOnDeny, _denied_after_parsing),
    _fault("runs-twice", guards.RunsTwice, _runs),
    _fault(
        "loses-transforms",
        guards.LosesTransforms,
        _is(
            "transform.runs-rewritten",
            "transform.append",
            "transform.delete-gives-the-default",
            "transform.then-asks",
            "approve.edit-is-judged-again",
        ),
    ),
    _fault("executes-other-arguments", guards.ExecutesOtherArguments, _runs_with_texts),
    _fault("runs-shadow-and-tool", guards.RunsShadowAndTool, _ends("action.previewed")),
    _fault(
        "previews-with-the-body",
        guards.PreviewsWithTheBody,
        lambda case: any(expect.shadows for expect in case.expect),
    ),
    _fault(
        "rewrites-results",
        guards.RewritesResults,
        _returns,
        # Some frameworks make a result of what the body raised.
        undecided=lambda case: (
            _is_the_frameworks(case) or case.id == "transparent.body-that-raises"
        ),
    ),
    _fault("raises-denials", guards.RaisesDenials, _ends("action.denied")),
    _fault("ignores-errored-rules", guards.IgnoresErroredRules, _is("deny.on-a-rule-that-errs")),
    _fault("parses-leniently", guards.ParsesLeniently, _is("arguments.duplicate-keys")),
    _fault(
        "ignores-defaults",
        guards.IgnoresDefaults,
        _is("deny.sees-defaults", "approve.asks-with-defaults"),
    ),
    _fault(
        "takes-silence-for-grant", guards.TakesSilenceForGrant, _is("approve.time-out-is-no-grant")
    ),
    _fault(
        "takes-failure-for-grant", guards.TakesFailureForGrant, _is("approve.handler-that-fails")
    ),
    _fault("takes-true-for-grant", guards.TakesTrueForGrant, _is("approve.true-is-no-grant")),
    _fault(
        "takes-grants-as-standing",
        guards.TakesGrantsAsStanding,
        _is("approve.one-grant-one-call"),
        # Where both are asked about at the same time, nothing stands yet.
        undecided=lambda case: (
            _is_the_frameworks(case) or case.id == "approve.each-call-its-own-answer"
        ),
    ),
    _fault("drops-terminal-events", guards.DropsTerminalEvents, _ends_in_an_action),
    Fault(
        "tells-another-schema",
        "The model is offered the governed tools in other words.",
        lambda case: case.kind == "transparent",
        trial=_TellsAnotherSchema,
    ),
    Fault(
        "resumes-in-the-same-process",
        "A paused run is never saved and found again.",
        lambda case: case.kind == "pause",
        workers=OneProcess,
    ),
)
