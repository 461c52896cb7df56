"""A workflow whose process is killed goes on in another one, node by node."""

import signal
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")


def test_a_workflow_outlives_its_processes(tmp_path):
    """Killed in each of its nodes in turn, it comes to its end, and writes once in each."""
    written = tmp_path / "written"

    def worker(deadly):
        arguments = [sys.executable, str(WORKER), str(tmp_path / "runs.db"), str(written), deadly]
        return subprocess.run(arguments, capture_output=True, text=True, check=False)

    killed = [worker(name).returncode for name in "abc"]
    last = worker("")

    assert killed == [-signal.SIGKILL] * 3
    assert (last.stdout, last.stderr) == ("|a-b-c", "")
    assert written.read_text().split() == ["a", "b", "c"]
