"""The example, as its readers run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "runs_on_two_workers" / "run.py"


def test_a_killed_worker_costs_no_refund_and_repeats_none(url: str) -> None:
    """Six runs are finished, the dead worker's by the other one, and nothing is made twice."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "ADJUDGE_POSTGRES_URL": url},
    )
    told = done.stdout.splitlines()

    assert 0 == done.returncode, done.stdout + done.stderr
    assert told[0].startswith("worker one was killed; it left batch-")
    assert 6 == sum(": finished by worker " in line for line in told)
    assert told[-1].endswith("; made twice: 0")
