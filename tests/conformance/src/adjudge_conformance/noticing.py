"""The faults as pytest sees them: subclass `FaultsAreNoticed`, and the suite is tested on a driver.

    class TestFaults(FaultsAreNoticed):
        driver = driver_in(Path(__file__).with_name("test_conformance.py"), "AcmeDriver")

That a driver passes the suite says something only if the suite would notice one that is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from adjudge_conformance.driver import Driver, Style
from adjudge_conformance.faults import FAULTS, Fault
from adjudge_conformance.wire import ScriptedServer
from adjudge_conformance.worker import Workers, module_in

__all__ = ["STOPPED_BEFORE_THE_BODY", "FaultsAreNoticed", "driver_in"]

STOPPED_BEFORE_THE_BODY: Mapping[str, Collection[str]] = {
    "ignores-defaults": {
        "transform.delete-gives-the-default",
        "transparent.left-out-defaults",
        "transparent.odd-spelling",
        "transparent.parallel-calls",
    }
}
"""What notices as well where an integration runs no arguments but those that were judged."""


def driver_in(file: Path, name: str) -> type[Driver[Any]]:
    """Give the driver of this name out of a test file, which is no module to be imported."""
    driver: type[Driver[Any]] = getattr(module_in(str(file)), name)
    return driver


class FaultsAreNoticed:
    """Every fault that some case can notice, on one driver.

    `also` are the ids of further cases by the fault that they notice on this driver, and
    `unreached` the faults that it has no occasion to show. `everywhere` tries the cases as well
    that a fault is said not to touch.
    """

    driver: ClassVar[type[Driver[Any]]]
    faults: ClassVar[Sequence[Fault]] = FAULTS
    also: ClassVar[Mapping[str, Collection[str]]] = {}
    unreached: ClassVar[Collection[str]] = ()
    styles: ClassVar[Collection[Style]] = (Style.ASYNC,)
    everywhere: ClassVar[bool] = False

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each fault its test."""
        if "fault" in metafunc.fixturenames:
            tried = [
                fault
                for fault in self.faults
                if fault.expected(self.driver) and fault.name not in self.unreached
            ]
            metafunc.parametrize("fault", tried, ids=[fault.name for fault in tried])

    @pytest.fixture(scope="class")
    @classmethod
    def around(cls) -> Iterator[tuple[ScriptedServer, Workers]]:
        """The model service and the two processes of all trials."""
        with ScriptedServer() as server, Workers() as workers:
            yield server, workers

    def test_a_fault_fails_exactly_its_cases(
        self, fault: Fault, around: tuple[ScriptedServer, Workers], tmp_path: Path
    ) -> None:
        """No case misses the fault that it is there for, and none fails for another's."""
        expected = {*fault.expected(self.driver), *self.also.get(fault.name, ())}

        failing = fault.failing(
            self.driver, *around, tmp_path, styles=self.styles, everywhere=self.everywhere
        )

        assert expected == failing
