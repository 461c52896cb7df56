"""Deliberate faults, each in one way, and the cases that must notice: what tests the suite.

A fault is a guard, a driver or a trial that is wrong in a single respect. Most can be put on any
driver whose integration goes through the guard's two doors, so that each is shown to be caught on
the reference loop and on a real framework: `failing_cases` must give exactly what `expected` gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge import ToolGuard
from adjudge_conformance import _faulty_guards as guards
from adjudge_conformance.case import Case, load_cases
from adjudge_conformance.cells import cells_of, gap_for
from adjudge_conformance.driver import Agent, Driver, Scene
from adjudge_conformance.tools import SuiteTool
from adjudge_conformance.trial import Trial
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import OneProcess, Workers

__all__ = ["FAULTS", "UNDECIDED", "Fault", "failing_cases"]

UNDECIDED = frozenset({"transparent.repeated-call-id"})
"""Cases in which it is the framework's affair whether a body runs; a fault may show there or
not."""

_BODILESS = frozenset(
    f"transparent.{name}"
    for name in ("no-call", "unknown-tool", "missing-argument", "no-json", "no-object")
)


@dataclass(frozen=True)
class Fault:
    """One fault: what is wrong, and which cases must fail for it.

    `notices` tells it of a case. `drives` makes the faulty driver out of a good one.
    """

    name: str
    says: str
    notices: Callable[[Case], bool]
    guard: type[ToolGuard] = ToolGuard
    drives: Callable[[type[Driver[Any]]], type[Driver[Any]]] = lambda driver: driver
    workers: type[Workers] = Workers

    def expected(self, driver: type[Driver[Any]], cases: Iterable[Case] = ()) -> set[str]:
        """The ids of the cases that must fail, those left out in which the driver has a gap."""
        return {case.id for case in _tried(driver, cases) if self.notices(case)}


def failing_cases(
    fault: Fault,
    driver: type[Driver[Any]],
    server: ScriptedServer,
    folder: Path,
    cases: Iterable[Case] = (),
) -> set[str]:
    """Put a fault on a driver and give the ids of the cases that fail, in any of their cells.

    One cell of each style is tried: a fault that only an API or company hides is not one of these.
    """
    with fault.workers() as workers:
        trial = Trial(fault.drives(driver), server, workers, fault.guard)
        return {
            case.id
            for case in _tried(driver, cases)
            if any(
                trial.differences(cell, folder / cell.id)
                for cell in cells_of(case, driver)
                if cell.api == driver.apis[0] and not cell.parallel
            )
        }


def _tried(driver: type[Driver[Any]], cases: Iterable[Case]) -> list[Case]:
    return [
        case
        for case in (tuple(cases) or load_cases())
        if case.id not in UNDECIDED
        and not any(gap_for(cell, driver) for cell in cells_of(case, driver))
    ]


def _told_another_schema(driver: type[Driver[Any]]) -> type[Driver[Any]]:
    """A driver that describes each tool otherwise once it is governed."""

    def described(made: SuiteTool) -> SuiteTool:
        made.function.__doc__ = f"{made.function.__doc__} (governed)"
        return made

    class ToldAnotherSchema(driver):  # type: ignore[valid-type, misc]
        def build(self, scene: Scene, base_url: str, guard: ToolGuard | None) -> Any:
            if guard is not None:
                tools = tuple(described(made) for made in scene.agent.tools)
                agent = scene.agent
                helped = Agent(agent.name, agent.instructions, tools, agent.helpers)
                scene = Scene(helped, scene.prompt, scene.api)
            return super().build(scene, base_url, guard)

    return ToldAnotherSchema


def _ends(*kinds: str) -> Callable[[Case], bool]:
    """Cases that run once and in which some call ends so."""
    return lambda case: (
        case.kind == "verdict" and any(expect.events[-1] in kinds for expect in case.expect)
    )


def _is(*ids: str) -> Callable[[Case], bool]:
    return lambda case: case.id in ids


def _denied_after_parsing(case: Case) -> bool:
    # Arguments that were refused are not there to run a body with.
    return _ends("action.denied")(case) and not case.id.startswith("arguments.")


def _runs(case: Case) -> bool:
    """Cases in which a body runs through a door of the guard."""
    if case.kind == "transparent":
        return case.id not in _BODILESS
    return case.kind == "verdict" and any(expect.runs for expect in case.expect)


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
    _fault("rewrites-results", guards.RewritesResults, _returns),
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
        "takes-grants-as-standing", guards.TakesGrantsAsStanding, _is("approve.one-grant-one-call")
    ),
    _fault(
        "drops-terminal-events", guards.DropsTerminalEvents, lambda case: case.kind != "transparent"
    ),
    Fault(
        "tells-another-schema",
        "The model is offered the governed tools in other words.",
        lambda case: case.kind == "transparent",
        drives=_told_another_schema,
    ),
    Fault(
        "resumes-in-the-same-process",
        "A paused run is never saved and found again.",
        lambda case: case.kind == "pause",
        workers=OneProcess,
    ),
)
