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
from adjudge_conformance import _faulty_resumptions as resumptions
from adjudge_conformance import _occasions as cases
from adjudge_conformance.bench import Bench
from adjudge_conformance.case import Case, load_cases
from adjudge_conformance.cells import Cell, cells_of, gap_for
from adjudge_conformance.driver import Driver, Scene, Style
from adjudge_conformance.trial import Trial
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import OneProcess, Workers

__all__ = ["FAULTS", "FAULTS_AT_THE_DOOR", "Fault"]


@dataclass(frozen=True)
class Fault:
    """One fault: what is wrong, and which cases must fail for it.

    `notices` tells it of a case; where `undecided` does, it depends on the framework whether the
    fault shows. Only cases `among` those that the fault can touch are tried: in every other the
    guard is the right one, or has no occasion to be wrong, and the suite itself tries that one.
    `trial` and `workers` are for faults of what is around the guard.
    """

    name: str
    says: str
    notices: Callable[[Case], bool]
    guard: type[ToolGuard] = ToolGuard
    undecided: Callable[[Case], bool] = cases.is_the_frameworks
    among: Callable[[Case], bool] = lambda case: True
    trial: type[Trial] = Trial
    workers: type[Workers] = Workers

    def expected(self, driver: type[Driver[Any]]) -> set[str]:
        """The ids of the cases that must fail, those left out in which the driver has a gap."""
        return {case.id for case in self._tried(driver, everywhere=False) if self.notices(case)}

    def failing(
        self,
        driver: type[Driver[Any]],
        server: ScriptedServer,
        workers: Workers,
        folder: Path,
        *,
        styles: Collection[Style] = (Style.SYNC, Style.ASYNC),
        everywhere: bool = False,
    ) -> set[str]:
        """Put the fault on a driver and give the ids of the cases that then fail.

        A case is tried in these styles (a paused one in the first of them), over the driver's first
        API, its calls alone: a fault that shows only in other cells is not one of these. `workers`
        are used unless the fault is in them. `everywhere` also tries the cases that the fault is
        said not to touch, which shows that it does not.
        """
        with contextlib.ExitStack() as closing:
            if self.workers is not Workers:
                workers = closing.enter_context(self.workers())
            trial = self.trial(driver, server, workers, self.guard)
            return {
                case.id
                for case in self._tried(driver, everywhere=everywhere)
                if any(
                    trial.differences(cell, folder / cell.id) for cell in _few(case, driver, styles)
                )
            }

    def _tried(self, driver: type[Driver[Any]], *, everywhere: bool) -> list[Case]:
        return [
            case
            for case in load_cases()
            if (everywhere or self.among(case))
            and not self.undecided(case)
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


def _fault(
    name: str, guard: type[ToolGuard], notices: Callable[[Case], bool], **more: Any
) -> Fault:
    return Fault(name, inspect.getdoc(guard) or "", notices, guard, **more)


FAULTS = (
    _fault(
        "runs-on-deny",
        guards.RunsOnDeny,
        cases.denied_after_parsing,
        undecided=cases.may_deny,
        among=cases.denies,
    ),
    _fault(
        "runs-twice",
        guards.RunsTwice,
        # A body that leaves the run the first time does not come to a second.
        lambda case: "leave" not in case.tools and cases.runs_any_body(case),
        among=cases.runs_any_body,
    ),
    _fault(
        "loses-transforms",
        guards.LosesTransforms,
        cases.is_one_of(
            "transform.runs-rewritten",
            "transform.append",
            "transform.delete-gives-the-default",
            "transform.then-asks",
            "approve.edit-is-judged-again",
            "layers.transforms-compose",
            "obligation.sees-the-rewritten-call",
            "pause.edit-runs-edited",
        ),
        among=cases.rewrites,
    ),
    _fault(
        "executes-other-arguments",
        guards.ExecutesOtherArguments,
        cases.runs_with_texts,
        among=cases.runs_any_body,
    ),
    _fault(
        "runs-shadow-and-tool",
        guards.RunsShadowAndTool,
        cases.ends("action.previewed"),
        among=cases.previews,
    ),
    _fault(
        "previews-with-the-body",
        guards.PreviewsWithTheBody,
        lambda case: any(expect.shadows for expect in case.expect),
        among=cases.previews,
    ),
    _fault(
        "rewrites-results",
        guards.RewritesResults,
        cases.returns,
        # Some frameworks make a result of what the body raised.
        undecided=lambda case: (
            cases.is_the_frameworks(case) or case.id == "transparent.body-that-raises"
        ),
        among=cases.runs_any_body,
    ),
    _fault(
        "raises-denials",
        guards.RaisesDenials,
        cases.denies,
        undecided=cases.may_answer_a_raise,
        among=cases.denies,
    ),
    _fault(
        "ignores-errored-rules",
        guards.IgnoresErroredRules,
        cases.is_one_of("deny.on-a-rule-that-errs"),
        among=cases.denies,
    ),
    _fault(
        "parses-leniently",
        guards.ParsesLeniently,
        cases.is_one_of("arguments.duplicate-keys"),
        among=cases.has_odd_text,
    ),
    _fault(
        "ignores-defaults",
        guards.IgnoresDefaults,
        cases.is_one_of("deny.sees-defaults", "approve.asks-with-defaults"),
        among=cases.leaves_out_arguments,
    ),
    _fault(
        "takes-silence-for-grant",
        guards.TakesSilenceForGrant,
        cases.is_one_of("approve.time-out-is-no-grant"),
        among=cases.is_answered("hang"),
    ),
    _fault(
        "takes-failure-for-grant",
        guards.TakesFailureForGrant,
        cases.is_one_of("approve.handler-that-fails"),
        among=cases.is_answered("raise"),
    ),
    _fault(
        "takes-true-for-grant",
        guards.TakesTrueForGrant,
        cases.is_one_of("approve.true-is-no-grant"),
        among=cases.is_answered("true"),
    ),
    _fault(
        "takes-grants-as-standing",
        guards.TakesGrantsAsStanding,
        cases.is_one_of(
            "approve.one-grant-one-call", "layers.each-asks-its-own", "layers.one-refusal-is-enough"
        ),
        # Where both are asked about at the same time, nothing stands yet.
        undecided=lambda case: (
            cases.is_the_frameworks(case) or case.id == "approve.each-call-its-own-answer"
        ),
        among=cases.asks,
    ),
    _fault(
        "drops-terminal-events",
        guards.DropsTerminalEvents,
        cases.ends_in_an_action,
        # Where every byte is compared, the record is not.
        among=lambda case: not cases.is_transparent(case),
    ),
    _fault(
        "skips-obligations",
        guards.SkipsObligations,
        # What nobody knows is not to be skipped.
        lambda case: (
            any(expect.obligations for expect in case.expect)
            or case.id in ("obligation.that-fails-denies", "obligation.after-the-body-cannot-undo")
        ),
        among=cases.obliges,
    ),
    _fault(
        "hears-one-layer",
        guards.HearsOneLayer,
        lambda case: bool(case.layers) and case.id != "layers.a-looser-one-loosens-nothing",
        among=cases.has_layers,
    ),
    _fault(
        "ignores-the-caller",
        resumptions.IgnoresTheCaller,
        cases.has_a_caller,
        among=cases.has_a_caller,
    ),
    _fault(
        "takes-refusal-for-grant",
        resumptions.TakesRefusalForGrant,
        cases.pauses_and(cases.is_answered("refuse")),
        among=cases.pauses_and(cases.is_answered("refuse")),
    ),
    _fault(
        "loses-edits",
        resumptions.LosesEdits,
        cases.is_one_of("pause.edit-runs-edited", "pause.edit-into-a-denial"),
        among=cases.pauses_and(cases.is_answered("edit")),
    ),
    _fault(
        "shares-answers",
        resumptions.SharesAnswers,
        cases.is_one_of("pause.partial-answers", "pause.each-call-its-own-answer"),
        among=cases.comes_again,
    ),
    _fault(
        "keeps-answers-for-good",
        resumptions.KeepsAnswersForGood,
        lambda case: case.resumption in ("again", "at once"),
        among=cases.comes_again,
    ),
    _fault(
        "takes-late-answers",
        resumptions.TakesLateAnswers,
        cases.is_one_of("pause.expired-grants-nothing"),
        among=cases.pauses_and(cases.denies),
    ),
    _fault(
        "resumes-without-judging",
        resumptions.ResumesWithoutJudging,
        cases.is_one_of(
            "pause.policy-now-denies",
            "pause.policy-now-asks-otherwise",
            "pause.nested-policy-now-denies",
        ),
        among=cases.pauses_and(cases.denies),
    ),
    _fault(
        "takes-native-approval-for-grant",
        resumptions.TakesNativeApprovalForGrant,
        cases.is_one_of("pause.native-approval-alone"),
        among=cases.comes_again,
    ),
    Fault(
        "tells-another-schema",
        "The model is offered the governed tools in other words.",
        cases.is_transparent,
        # Nobody else compares what the model was offered.
        among=cases.is_transparent,
        trial=_TellsAnotherSchema,
    ),
    Fault(
        "resumes-in-the-same-process",
        "A paused run is never saved and found again.",
        cases.pauses,
        among=cases.pauses,
        workers=OneProcess,
    ),
)

FAULTS_AT_THE_DOOR = (
    _fault(
        "knows-calls-by-their-id-alone",
        resumptions.KnowsCallsByTheirIdAlone,
        cases.is_one_of("pause.tampered-state"),
        among=cases.pauses,
    ),
)
"""Faults that show where a changed call is brought to the guard's door, as the reference does.

An integration may well refuse it sooner.
"""
