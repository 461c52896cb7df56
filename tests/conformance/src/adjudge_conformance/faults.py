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
from adjudge_conformance.bench import Bench
from adjudge_conformance.case import Case, load_cases
from adjudge_conformance.cells import Cell, cells_of, gap_for
from adjudge_conformance.driver import Driver, Scene, Style
from adjudge_conformance.trial import Trial
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import OneProcess, Workers

__all__ = ["FAULTS", "FAULTS_AT_THE_DOOR", "Fault"]


def _is_the_frameworks(case: Case) -> bool:
    """Whether it is the framework's affair what runs."""
    return case.kind == "transparent" and case.runs is None


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
    undecided: Callable[[Case], bool] = _is_the_frameworks
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


def _ends(*kinds: str) -> Callable[[Case], bool]:
    """Cases in which some call ends so."""
    return lambda case: any(expect.events[-1] in kinds for expect in case.expect)


def _is_compared(case: Case) -> bool:
    """Whether more than what ran is compared: in odd resumptions the rest is left open."""
    return case.resumption in ("once", "again")


def _ends_in_an_action(case: Case) -> bool:
    ends = [expect.events[-1] for expect in case.expect]
    turned_away = any(expect.turned_away for expect in case.expect)
    return _is_compared(case) and (turned_away or any(e.startswith("action.") for e in ends))


def _denies(case: Case) -> bool:
    """Cases in which a call is denied, be it because it had its turn before."""
    turned_away = case.resumption in ("again", "at once") or any(
        expect.turned_away for expect in case.expect
    )
    return turned_away or _ends("action.denied", "approval.expired")(case)


def _may_deny(case: Case) -> bool:
    """Cases in which it is the framework's affair whether a call is denied or waits again."""
    return _is_the_frameworks(case) or case.resumption in ("natively", "tampered")


def _may_answer_a_raise(case: Case) -> bool:
    """Cases in which a framework may make a tool's failure of a raised denial, unseen."""
    return _may_deny(case) or case.resumption in ("again", "at once")


def _is(*ids: str) -> Callable[[Case], bool]:
    return lambda case: case.id in ids


def _denied_after_parsing(case: Case) -> bool:
    # Arguments that were refused are not there to run a body with.
    return _denies(case) and not case.id.startswith("arguments.")


def _runs(case: Case) -> bool:
    """Cases in which a body runs through a door of the guard."""
    if case.kind == "transparent":
        return bool(case.runs)
    return any(each.runs for each in case.expect)


def _returns(case: Case) -> bool:
    return _runs(case) and _is_compared(case) and not {"boom", "leave"} & {*case.tools}


def _runs_with_texts(case: Case) -> bool:
    return _runs(case) and not {"label_notes", "leave"} & {*case.tools}


def _pauses(case: Case) -> bool:
    return case.kind == "pause"


def _asks(case: Case) -> bool:
    """Cases in which the approver is asked while the call waits."""
    return any(expect.asked for expect in case.expect)


def _previews(case: Case) -> bool:
    """Cases in which a call is only to be previewed."""
    return any(expect.verdict == "dry_run" or expect.shadows for expect in case.expect)


def _obliges(case: Case) -> bool:
    """Cases in which a rule obliges to something."""
    rules = (case.policy or {}).get("rules", ())
    return any("obligations" in rule for rule in rules)


def _has_layers(case: Case) -> bool:
    return bool(case.layers)


def _has_a_caller(case: Case) -> bool:
    return case.caller is not None


def _fault(
    name: str, guard: type[ToolGuard], notices: Callable[[Case], bool], **more: Any
) -> Fault:
    return Fault(name, inspect.getdoc(guard) or "", notices, guard, **more)


FAULTS = (
    _fault(
        "runs-on-deny",
        guards.RunsOnDeny,
        _denied_after_parsing,
        undecided=_may_deny,
        among=_denies,
    ),
    _fault(
        "runs-twice",
        guards.RunsTwice,
        # A body that leaves the run the first time does not come to a second.
        lambda case: "leave" not in case.tools and (_runs(case) or bool(case.helper)),
    ),
    _fault(
        "loses-transforms",
        guards.LosesTransforms,
        _is(
            "transform.runs-rewritten",
            "transform.append",
            "transform.delete-gives-the-default",
            "transform.then-asks",
            "approve.edit-is-judged-again",
            "layers.transforms-compose",
            "obligation.sees-the-rewritten-call",
            "pause.edit-runs-edited",
        ),
    ),
    _fault("executes-other-arguments", guards.ExecutesOtherArguments, _runs_with_texts),
    _fault(
        "runs-shadow-and-tool",
        guards.RunsShadowAndTool,
        _ends("action.previewed"),
        among=_previews,
    ),
    _fault(
        "previews-with-the-body",
        guards.PreviewsWithTheBody,
        lambda case: any(expect.shadows for expect in case.expect),
        among=_previews,
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
    _fault(
        "raises-denials",
        guards.RaisesDenials,
        _denies,
        undecided=_may_answer_a_raise,
        among=_denies,
    ),
    _fault("ignores-errored-rules", guards.IgnoresErroredRules, _is("deny.on-a-rule-that-errs")),
    _fault("parses-leniently", guards.ParsesLeniently, _is("arguments.duplicate-keys")),
    _fault(
        "ignores-defaults",
        guards.IgnoresDefaults,
        _is("deny.sees-defaults", "approve.asks-with-defaults"),
    ),
    _fault(
        "takes-silence-for-grant",
        guards.TakesSilenceForGrant,
        _is("approve.time-out-is-no-grant"),
        among=_asks,
    ),
    _fault(
        "takes-failure-for-grant",
        guards.TakesFailureForGrant,
        _is("approve.handler-that-fails"),
        among=_asks,
    ),
    _fault(
        "takes-true-for-grant",
        guards.TakesTrueForGrant,
        _is("approve.true-is-no-grant"),
        among=_asks,
    ),
    _fault(
        "takes-grants-as-standing",
        guards.TakesGrantsAsStanding,
        _is(
            "approve.one-grant-one-call", "layers.each-asks-its-own", "layers.one-refusal-is-enough"
        ),
        # Where both are asked about at the same time, nothing stands yet.
        undecided=lambda case: (
            _is_the_frameworks(case) or case.id == "approve.each-call-its-own-answer"
        ),
        among=_asks,
    ),
    _fault("drops-terminal-events", guards.DropsTerminalEvents, _ends_in_an_action),
    _fault(
        "skips-obligations",
        guards.SkipsObligations,
        # What nobody knows is not to be skipped.
        lambda case: (
            any(expect.obligations for expect in case.expect)
            or case.id in ("obligation.that-fails-denies", "obligation.after-the-body-cannot-undo")
        ),
        among=_obliges,
    ),
    _fault(
        "hears-one-layer",
        guards.HearsOneLayer,
        lambda case: bool(case.layers) and case.id != "layers.a-looser-one-loosens-nothing",
        among=_has_layers,
    ),
    _fault(
        "ignores-the-caller",
        resumptions.IgnoresTheCaller,
        _has_a_caller,
        among=_has_a_caller,
    ),
    _fault(
        "takes-refusal-for-grant",
        resumptions.TakesRefusalForGrant,
        lambda case: _pauses(case) and any(a.does == "refuse" for a in case.answers),
        among=_pauses,
    ),
    _fault(
        "loses-edits",
        resumptions.LosesEdits,
        _is("pause.edit-runs-edited", "pause.edit-into-a-denial"),
        among=_pauses,
    ),
    _fault(
        "shares-answers",
        resumptions.SharesAnswers,
        _is("pause.partial-answers", "pause.each-call-its-own-answer"),
        among=_pauses,
    ),
    _fault(
        "keeps-answers-for-good",
        resumptions.KeepsAnswersForGood,
        lambda case: case.resumption in ("again", "at once"),
        among=_pauses,
    ),
    _fault(
        "takes-late-answers",
        resumptions.TakesLateAnswers,
        _is("pause.expired-grants-nothing"),
        among=_pauses,
    ),
    _fault(
        "resumes-without-judging",
        resumptions.ResumesWithoutJudging,
        _is(
            "pause.policy-now-denies",
            "pause.policy-now-asks-otherwise",
            "pause.nested-policy-now-denies",
        ),
        among=_pauses,
    ),
    _fault(
        "takes-native-approval-for-grant",
        resumptions.TakesNativeApprovalForGrant,
        _is("pause.native-approval-alone"),
        among=_pauses,
    ),
    Fault(
        "tells-another-schema",
        "The model is offered the governed tools in other words.",
        lambda case: case.kind == "transparent",
        trial=_TellsAnotherSchema,
    ),
    Fault(
        "resumes-in-the-same-process",
        "A paused run is never saved and found again.",
        _pauses,
        among=_pauses,
        workers=OneProcess,
    ),
)

FAULTS_AT_THE_DOOR = (
    _fault(
        "knows-calls-by-their-id-alone",
        resumptions.KnowsCallsByTheirIdAlone,
        _is("pause.tampered-state"),
        among=_pauses,
    ),
)
"""Faults that show where a changed call is brought to the guard's door, as the reference does.

An integration may well refuse it sooner.
"""
