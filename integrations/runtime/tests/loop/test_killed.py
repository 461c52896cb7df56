"""Workers that are killed, and workers that race: nothing is done twice, or lost without a word."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("killing.py")


def test_nothing_is_done_twice(tmp_path):
    """Over kills at each boundary, and over races, each row is there once or reported uncertain."""
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "110", "12"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert 0 == ran.returncode, ran.stderr
    found = json.loads(ran.stdout)
    assert found["kills"] >= 110
    assert (12, True, True) == (found["races"], found["superseded"] > 0, found["uncertain"] > 0)
