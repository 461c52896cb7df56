"""The cells of a case: each combination of style, API and company in which it is tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from adjudge_conformance.case import Case
from adjudge_conformance.driver import Driver, Gap, Style
from adjudge_conformance.wire import Api

__all__ = ["Cell", "cells_of", "gap_for", "unknown_gaps"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One case in one style, over one API, its calls alone or beside unrelated ones."""

    case: Case
    style: Style
    api: Api
    parallel: bool

    @property
    def id(self) -> str:
        """The name that pytest shows: `deny.never-runs-async-chat`."""
        company = "-parallel" if self.parallel else ""
        return f"{self.case.id}-{self.style}-{self.api}{company}"

    @property
    def runs(self) -> int | None:
        """How many bodies an ungoverned run starts; None where that is the framework's affair."""
        if self.case.runs is None:
            return None
        return self.case.runs + (len(self.case.proposes) if self.parallel else 0)

    @property
    def coroutines(self) -> bool:
        """Whether the tools' bodies are coroutine functions."""
        return self.case.bodies == "as style" and not self.style.is_sync


def cells_of(case: Case, driver: type[Driver[Any]]) -> Iterator[Cell]:
    """Give every cell that a driver's styles and APIs allow."""
    for style in driver.styles:
        if case.only and style not in case.only:
            continue
        for api in driver.apis:
            # A ReAct model writes one action at a time.
            if api == "react" and any(len(turn) > 1 for turn in (*case.proposes, *case.helper)):
                continue
            yield Cell(case, style, api, parallel=False)
            if "parallel" in case.varies and api != "react":
                yield Cell(case, style, api, parallel=True)


def gap_for(cell: Cell, driver: type[Driver[Any]]) -> Gap | None:
    """Give the gap that a driver declares for a cell, if any."""
    for pattern, gap in driver.gaps.items():
        if _covers(pattern, cell):
            return gap
    return None


def unknown_gaps(driver: type[Driver[Any]], cases: tuple[Case, ...]) -> list[str]:
    """Name the gaps that no cell answers to: a typing error, or a case that is gone."""
    cells = [cell for case in cases for cell in cells_of(case, driver)]
    return [name for name in driver.gaps if not any(_covers(name, cell) for cell in cells)]


def _covers(pattern: str, cell: Cell) -> bool:
    return fnmatchcase(cell.case.id, pattern) or fnmatchcase(cell.id, pattern)
