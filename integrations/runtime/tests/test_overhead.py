"""The script that measures what governing costs runs; no time is asserted."""

from pathlib import Path

from adjudge_conformance.overhead import ways_measured

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "overhead.py"


def test_overhead_is_measured(tmp_path):
    """Both ways to the tool are timed, bare and under three guards that are really asked."""
    measured = ways_measured(SCRIPT, name="runtime", folder=tmp_path)

    assert {"call": 3, "run": 3} == measured
