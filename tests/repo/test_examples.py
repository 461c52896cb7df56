"""The examples as their readers run them, in the environment of one framework (`--needs NAME`).

The operations desk passes, and notices any rule that is gone; the approval outlives its process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ._tree import ROOT

DESK = ROOT / "examples" / "ops_desk"
POLICY = yaml.safe_load((DESK / "policy.yaml").read_text(encoding="utf-8"))
RULES = [rule["id"] for rule in POLICY["rules"]]
STARTS_OVER = {"crewai"}
"""The frameworks that cannot save a run, and go on by starting it again."""
ENDS_ONCE = {"runtime"}
"""The frameworks whose finished run gives its answer again, and asks no model."""


@pytest.fixture
def framework(request: pytest.FixtureRequest) -> str:
    """Give the framework whose environment this is."""
    name = request.config.getoption("--needs")
    if name is None:
        pytest.fail("An example needs a framework: --needs openai-agents, in its environment.")
    return str(name)


def program(path: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run an example in a process of its own."""
    return subprocess.run(
        [sys.executable, str(path), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )


# The operations desk


def run_desk(
    framework: str, policy: dict[str, object], folder: Path
) -> tuple[int, dict[str, object]]:
    """Run the desk; give its exit code and its row."""
    file, out = folder / "policy.json", folder / "row.json"
    file.write_text(json.dumps(policy), encoding="utf-8")
    told = ("--framework", framework, "--policy", file, "--json", out)
    done = program(DESK / "run.py", *told)
    assert out.exists(), done.stdout + done.stderr
    return done.returncode, json.loads(out.read_text(encoding="utf-8"))


def test_the_shipped_policy_holds(framework: str, tmp_path: Path) -> None:
    """As shipped, what really happens is what the policy says."""
    code, row = run_desk(framework, POLICY, tmp_path)

    assert (0, []) == (code, row["problems"])
    assert {"allow", "deny", "dry_run", "approve_required", "transform"} == {
        call["verdict"] for call in row["calls"]
    }


@pytest.mark.parametrize("gone", RULES)
def test_a_missing_rule_is_noticed(framework: str, gone: str, tmp_path: Path) -> None:
    """Without any one of its rules, the desk exits with 1 and says what is wrong."""
    rules = [rule for rule in POLICY["rules"] if rule["id"] != gone]
    code, row = run_desk(framework, {**POLICY, "rules": rules}, tmp_path)

    assert 1 == code
    assert row["problems"]


def test_a_flipped_rule_shows_in_the_world(framework: str, tmp_path: Path) -> None:
    """A preview flipped to an allow is seen in the files that are really gone."""
    rules = [
        {**rule, "decision": "allow"} if rule["id"] == "preview-deletes" else rule
        for rule in POLICY["rules"]
    ]
    code, row = run_desk(framework, {**POLICY, "rules": rules}, tmp_path)

    assert 1 == code
    assert {"archive/2019.log": None}.items() <= row["changes"]["files"].items()


# The approval in another process


def step(framework: str, *arguments: object) -> tuple[int, str]:
    """Run one step of the approval; give its process's id and what it printed."""
    done = program(_approval(framework), *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    pids = {line.partition(":")[0] for line in told if line.startswith("process ")}
    assert len(pids) == 1
    return int(pids.pop().removeprefix("process ")), done.stdout


def refunds(folder: Path) -> str:
    """Read what was really paid."""
    file = folder / "refunds.txt"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _approval(framework: str) -> Path:
    folder = ROOT / "examples" / "approval_in_another_process"
    return folder / f"on_{framework.replace('-', '_')}.py"


def test_a_granted_call_runs_once_in_the_second_process(framework: str, tmp_path: Path) -> None:
    """Law 6: it runs where the answer is given, and never again with the same saved state."""
    first, started = step(framework, "start", tmp_path)
    paid_before = refunds(tmp_path)
    second, resumed = step(framework, "resume", tmp_path, "--grant")
    third, again = step(framework, "resume", tmp_path, "--grant")

    assert len({first, second, third}) == 3
    assert "waits for a person: refunds over 500 are approved by finance" in started
    assert "the model was told: refunded 900.00 on order 7" in resumed
    # A run that starts over is told again what happened, out of the ledger, and one that has ended
    # is told nothing new; any other is refused.
    tells = framework in STARTS_OVER | ENDS_ONCE
    end = "refunded 900.00 on order 7" if tells else "[denied] "
    assert f"the model was told: {end}" in again
    assert resumed.count("action.completed") == again.count("action.completed") == 1
    assert "the record verifies" in again
    assert ("", "order 7: 900.00\n") == (paid_before, refunds(tmp_path))


def test_a_refused_call_never_runs(framework: str, tmp_path: Path) -> None:
    """A refusal is told to the model, and a grant that comes after it changes nothing."""
    step(framework, "start", tmp_path)
    _, resumed = step(framework, "resume", tmp_path, "--refuse")
    step(framework, "resume", tmp_path, "--grant")

    assert "[denied] approval refused by finance-lead: too much" in resumed
    assert "" == refunds(tmp_path)


def test_without_the_ledger_nothing_runs(framework: str, tmp_path: Path) -> None:
    """Law 4: a process that cannot see what was asked ends with an error."""
    step(framework, "start", tmp_path)
    (tmp_path / "ledger.db").unlink()
    done = program(_approval(framework), "resume", tmp_path, "--grant")

    assert 1 == done.returncode
    assert "AnswerError: No call waits under" in done.stderr
    assert "" == refunds(tmp_path)
