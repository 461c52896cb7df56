"""The script that times the loop beside lynx-agent's runs; no time is asserted."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "loop.py"


def test_both_loops_are_timed(tmp_path):
    """Each way to run is timed in both, and each guard alone, at each length, and put down."""
    file = tmp_path / "figures.json"
    options = ["--rounds", "2", "--lengths", "3", "5", "--json", str(file)]

    ran = subprocess.run(
        [sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=False
    )

    assert 0 == ran.returncode, ran.stderr
    rows = json.loads(file.read_text())["loop"]["rows"]
    assert 8 == len(rows) == len(ran.stdout.splitlines()) - 1
    assert all(row["adjudge"] > 0 < row["lynx-agent"] for row in rows)
