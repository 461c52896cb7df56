"""A process that dies between a body and the checkpoint after it (law 6, fault B025)."""

import subprocess
import sys
from pathlib import Path

import pytest
from desk_process import Desk

PROCESS = Path(__file__).with_name("desk_process.py")


@pytest.mark.parametrize("layout", ["one-task", "fan-out"])
def test_a_body_that_has_begun_is_not_run_again(layout: str, tmp_path: Path) -> None:
    """LangGraph runs the task again; nobody knows how far the call came, and the model is told.

    With durability="sync": by default LangGraph begins a call before the checkpoint is written.
    """
    died = subprocess.run([sys.executable, PROCESS, tmp_path, layout, "dies"], timeout=120)
    desk = Desk(tmp_path)

    told = desk.go_on()

    assert -9 == died.returncode
    assert ["note"] == [name for name, _, _ in desk.ran if name == "note"]
    assert any("its outcome is not known; it is not run again" in each for each in told)
