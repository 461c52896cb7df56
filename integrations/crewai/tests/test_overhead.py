"""The script that measures what governing costs runs; no time is asserted."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "overhead.py"


def test_overhead_is_measured(tmp_path):
    """Both ways to the tool are timed, bare and under three guards that are really asked."""
    report = tmp_path / "speed.json"
    command = [sys.executable, str(SCRIPT), "--rounds", "1", "--json", str(report)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    ways = json.loads(report.read_text(encoding="utf-8"))["overhead"]["crewai"]["ways"]
    assert {"call": 3, "run": 3} == {name: len(way["added_us"]) for name, way in ways.items()}
