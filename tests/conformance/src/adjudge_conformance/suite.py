"""The suite as pytest sees it: subclass `Conformance`, name a driver, and every case is a test.

    class TestConformance(Conformance):
        driver = AcmeDriver

Nothing is registered and nothing is skipped. A case that cannot hold is a declared gap, and a gap
that has closed is a failure. Redefining anything of the suite is an error when the class is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from adjudge import ToolGuard
from adjudge_conformance.case import Case, by_id, load_cases
from adjudge_conformance.cells import Cell, cells_of, gap_for, unknown_gaps
from adjudge_conformance.driver import Driver
from adjudge_conformance.report import Tally
from adjudge_conformance.trial import Trial
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import Workers

__all__ = ["CaseFailed", "Conformance"]


class CaseFailed(AssertionError):
    """What was seen is not what the case expects."""


class Conformance:
    """Every case in every cell that a driver's styles and APIs allow.

    `driver` is the class under test. `extra_cases` are cases of an integration's own, beside the
    suite's. `guard_class` is for integrations that bring a guard of their own.
    """

    driver: ClassVar[type[Driver[Any]]]
    extra_cases: ClassVar[Sequence[Case]] = ()
    guard_class: ClassVar[type[ToolGuard]] = ToolGuard
    _OPEN: ClassVar = frozenset({"driver", "extra_cases", "guard_class"})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        taken = {name for base in Conformance.__mro__[:-1] for name in vars(base)} - cls._OPEN
        redefined = sorted(
            name for name in vars(cls) if name in taken and not _is_pythons_own(name)
        )
        if redefined:
            raise TypeError(
                f"{cls.__name__} redefines {', '.join(redefined)} of the suite; "
                "declare a gap on the driver instead"
            )
        driver = getattr(cls, "driver", None)
        if not (isinstance(driver, type) and issubclass(driver, Driver)):
            raise TypeError(f"{cls.__name__} names no driver; write `driver = YourDriver`")
        unknown = unknown_gaps(driver, cls.cases())
        if unknown:
            raise TypeError(f"{driver.__name__} declares gaps that no case answers to: {unknown}")
        if not cls.cells():
            raise TypeError(f"{driver.__name__} has no style or no API, so nothing would be tried")

    @classmethod
    def cases(cls) -> tuple[Case, ...]:
        """The suite's cases and the integration's own."""
        return by_id([*load_cases(), *cls.extra_cases])

    @classmethod
    def cells(cls) -> list[Cell]:
        """Every cell that is tried."""
        return [cell for case in cls.cases() for cell in cells_of(case, cls.driver)]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each cell its test."""
        if "cell" in metafunc.fixturenames:
            cells = self.cells()
            metafunc.parametrize("cell", cells, ids=[cell.id for cell in cells])

    @pytest.fixture(scope="class")
    @classmethod
    def trial(cls) -> Iterator[Trial]:
        """The model service and the driver, for as long as the class runs."""
        with ScriptedServer() as server, Workers() as workers:
            yield Trial(cls.driver, server, workers, cls.guard_class)

    @pytest.fixture(scope="class")
    @classmethod
    def tally(cls) -> Iterator[Tally]:
        """What came of each cell, written where ADJUDGE_CONFORMANCE_REPORT says."""
        tally = Tally(cls.driver.name, cls.driver.version)
        yield tally
        tally.write_if_asked()

    def test_case(self, cell: Cell, trial: Trial, tally: Tally, tmp_path: Path) -> None:
        """What is seen of the case is what every framework must show."""
        gap = gap_for(cell, self.driver)
        differences = trial.differences(cell, tmp_path)
        tally.add(cell, holds=not differences, gap=gap)
        if gap is None and differences:
            raise CaseFailed("\n".join([f"{cell.id}: {cell.case.says}", *differences]))
        if gap is not None and not differences:
            raise CaseFailed(f"{cell.id} holds: remove its gap ({gap.reason})")
        if gap is not None:
            pytest.xfail(f"{gap.reason} ({gap.url})")


def _is_pythons_own(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
