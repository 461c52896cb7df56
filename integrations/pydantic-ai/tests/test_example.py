"""The example of an approval that outlives its process, as its reader runs it."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"
PROGRAM = EXAMPLES / "approval_in_another_process" / "on_pydantic_ai.py"


def step(*arguments) -> tuple[int, str]:
    """Run one step in a process of its own; give the process's id and what it printed."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    pids = {line.partition(":")[0] for line in told if line.startswith("process ")}
    assert len(pids) == 1
    return int(pids.pop().removeprefix("process ")), done.stdout


def refunds(folder) -> str:
    """Read what was really paid."""
    file = folder / "refunds.txt"
    return file.read_text() if file.exists() else ""


def test_a_granted_call_runs_once_in_the_second_process(tmp_path):
    """Law 6: it runs where the answer is given, and never again with the same saved state."""
    first, started = step("start", tmp_path)
    paid_before = refunds(tmp_path)
    second, resumed = step("resume", tmp_path, "--grant")
    third, again = step("resume", tmp_path, "--grant")

    assert len({first, second, third}) == 3
    assert "waits for a person: refunds over 500 are approved by finance" in started
    assert "the model was told: refunded 900.00 on order 7" in resumed
    assert "the model was told: [denied] " in again
    assert "the record verifies" in again
    assert ("", "order 7: 900.00\n") == (paid_before, refunds(tmp_path))


def test_a_refused_call_never_runs(tmp_path):
    """A refusal is told to the model, and a grant that comes after it changes nothing."""
    step("start", tmp_path)
    _, resumed = step("resume", tmp_path, "--refuse")
    step("resume", tmp_path, "--grant")

    assert "[denied] approval refused by finance-lead: too much" in resumed
    assert "" == refunds(tmp_path)


def test_without_the_ledger_nothing_runs(tmp_path):
    """Law 4: a process that cannot see what was asked ends with an error."""
    step("start", tmp_path)
    (tmp_path / "ledger.db").unlink()
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "resume", str(tmp_path), "--grant"],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert 1 == done.returncode
    assert "AnswerError: No call waits under" in done.stderr
    assert "" == refunds(tmp_path)
