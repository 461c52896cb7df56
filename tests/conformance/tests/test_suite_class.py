"""Opting in: what a subclass of `Conformance` may say, and what it may not."""

import json
import subprocess
import sys

import pytest

from adjudge_conformance import Conformance, Gap, Style
from adjudge_conformance.case import load_cases
from adjudge_conformance.cells import cells_of
from adjudge_conformance.reference import ReferenceDriver
from adjudge_conformance.report import REPORT_VARIABLE, Tally, markdown

UNGOVERNED = "def build(self, scene, url, guard): return super().build(scene, url, None)"
GAP = Gap("it cannot pause", "https://example.org/issues/1")


def driver_with(**members):
    """Give a variant of the reference driver."""
    return type("Variant", (ReferenceDriver,), members)


def suite_with(**members):
    """Make a suite class of the reference driver."""
    return type("Suite", (Conformance,), {"driver": ReferenceDriver, **members})


class TestClassCreation:
    def test_driver_is_needed(self):
        """A suite without a driver would try nothing, so it cannot be made."""
        with pytest.raises(TypeError, match="names no driver"):
            type("Suite", (Conformance,), {})

    @pytest.mark.parametrize("name", ["test_case", "trial", "cases", "pytest_generate_tests"])
    def test_nothing_of_the_suite_can_be_redefined(self, name):
        """A test, fixture or case list of the suite cannot be replaced."""
        with pytest.raises(TypeError, match="redefines"):
            suite_with(**{name: None})

    def test_case_of_the_suite_cannot_be_redefined(self):
        """An extra case with an id of the suite is an error."""
        with pytest.raises(ValueError, match="cannot be redefined"):
            suite_with(extra_cases=load_cases()[:1])

    def test_unknown_gap_is_an_error(self):
        """A gap that no case answers to is a typing error or out of date."""
        with pytest.raises(TypeError, match="no case answers to"):
            suite_with(driver=driver_with(gaps={"deny.never-run": GAP}))

    def test_driver_without_styles_is_an_error(self):
        """A suite that would collect nothing cannot be made."""
        with pytest.raises(TypeError, match="nothing would be tried"):
            suite_with(driver=driver_with(styles=()))

    def test_integration_may_add_tests(self):
        """Tests of an integration's own may stand beside the suite's."""
        suite = suite_with(test_of_our_own=lambda self: None)

        assert hasattr(suite, "test_of_our_own")


class TestCells:
    def test_cells_are_styles_by_apis_by_company(self):
        """A case is tried in each style, over each API, alone and beside other calls."""
        case = next(case for case in load_cases() if case.id == "deny.never-runs")
        driver = driver_with(styles=(Style.SYNC, Style.ASYNC_STREAM))

        assert [
            "deny.never-runs-sync-chat",
            "deny.never-runs-sync-chat-parallel",
            "deny.never-runs-sync-responses",
            "deny.never-runs-sync-responses-parallel",
            "deny.never-runs-async-stream-chat",
            "deny.never-runs-async-stream-chat-parallel",
            "deny.never-runs-async-stream-responses",
            "deny.never-runs-async-stream-responses-parallel",
        ] == [cell.id for cell in cells_of(case, driver)]

    def test_react_makes_one_call_at_a_time(self):
        """A ReAct model writes one action at a time, so cases of more in a turn have no cell."""
        cases = {case.id: case for case in load_cases()}
        driver = driver_with(styles=(Style.SYNC,), apis=("react",))

        assert ["deny.never-runs-sync-react"] == [
            cell.id for cell in cells_of(cases["deny.never-runs"], driver)
        ]
        assert [] == list(cells_of(cases["pause.partial-answers"], driver))


class TestGaps:
    def test_gap_that_has_closed_fails(self, pytester_run):
        """A declared gap whose case holds is a failure that says to remove it."""
        result = pytester_run('gaps = {"deny.never-runs": GAP}')

        assert "remove its gap" in result
        assert "2 failed" in result

    def test_case_that_fails_without_a_gap_fails(self, pytester_run):
        """What the driver does wrong is a failure that shows expected and seen."""
        result = pytester_run(
            "def build(self, scene, url, guard): return super().build(scene, url, None)"
        )

        assert "2 failed" in result
        assert "+++ seen" in result

    def test_case_that_fails_under_a_gap_is_an_expected_failure(self, pytester_run):
        """A gap that is there is reported with its reason, and fails nothing."""
        result = pytester_run(f'gaps = {{"deny.never-runs": GAP}}\n    {UNGOVERNED}')

        assert "2 xfailed" in result
        assert "it cannot pause" in result


@pytest.fixture
def pytester_run(tmp_path):
    """Run one case against a variant of the reference driver in a pytest of its own."""

    def run(body):
        (tmp_path / "test_variant.py").write_text(
            "from adjudge_conformance import Conformance, Gap, Style\n"
            "from adjudge_conformance.reference import ReferenceDriver\n"
            f"GAP = Gap({GAP.reason!r}, {GAP.url!r})\n"
            "class Variant(ReferenceDriver):\n"
            '    apis = ("chat",)\n'
            "    styles = (Style.SYNC,)\n"
            f"    {body}\n"
            "class TestConformance(Conformance):\n"
            "    driver = Variant\n"
        )
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-rxf",
            "-k",
            "deny.never-runs",
            "test_variant.py",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout

    return run


class TestReport:
    def test_report_counts_cells_and_lists_gaps(self, tmp_path, monkeypatch):
        """The matrix has the cells that were tried and held, and each gap with its address."""
        cells = list(cells_of(load_cases()[0], ReferenceDriver))
        tally = Tally("acme")
        tally.add(cells[0], holds=True, gap=None)
        tally.add(cells[1], holds=False, gap=GAP)
        monkeypatch.setenv(REPORT_VARIABLE, str(tmp_path / "report.json"))
        tally.write_if_asked()
        report = json.loads((tmp_path / "report.json").read_text())

        assert (2, 1) == (report["acme"]["cells"], report["acme"]["held"])
        assert GAP.url in (tmp_path / "report.md").read_text()

    def test_frameworks_share_one_report(self, tmp_path, monkeypatch):
        """Runs of several frameworks and releases fill the columns of one table."""
        monkeypatch.setenv(REPORT_VARIABLE, str(tmp_path / "report.json"))
        for name, version in (("acme", "1.0"), ("acme", "2.0"), ("bolt", "")):
            Tally(name, version).write_if_asked()
        report = json.loads((tmp_path / "report.json").read_text())

        assert markdown(report).startswith("| cases | acme 1.0 | acme 2.0 | bolt |")
