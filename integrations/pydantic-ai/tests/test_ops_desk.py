"""The operations desk as its user runs it: it passes, and notices any rule that is gone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

DESK = Path(__file__).parents[3] / "examples" / "ops_desk"
POLICY = yaml.safe_load((DESK / "policy.yaml").read_text())
RULES = [rule["id"] for rule in POLICY["rules"]]


def run_desk(policy: dict[str, object], folder: Path) -> tuple[int, dict[str, object]]:
    """Run the desk in a process of its own; give its exit code and its row."""
    file, out = folder / "policy.json", folder / "row.json"
    file.write_text(json.dumps(policy))
    command = [sys.executable, str(DESK / "run.py"), "--framework", "pydantic-ai"]
    done = subprocess.run(
        [*command, "--policy", str(file), "--json", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert out.exists(), done.stdout + done.stderr
    return done.returncode, json.loads(out.read_text())


def test_the_shipped_policy_holds(tmp_path):
    """As shipped, what really happens is what the policy says."""
    code, row = run_desk(POLICY, tmp_path)

    assert (0, []) == (code, row["problems"])
    assert {"allow", "deny", "dry_run", "approve_required", "transform"} == {
        call["verdict"] for call in row["calls"]
    }


@pytest.mark.parametrize("gone", RULES)
def test_a_missing_rule_is_noticed(gone, tmp_path):
    """Without any one of its rules, the desk exits with 1 and says what is wrong."""
    rules = [rule for rule in POLICY["rules"] if rule["id"] != gone]
    code, row = run_desk({**POLICY, "rules": rules}, tmp_path)

    assert 1 == code
    assert row["problems"]


def test_a_flipped_rule_shows_in_the_world(tmp_path):
    """A preview flipped to an allow is seen in the files that are really gone."""
    rules = [
        {**rule, "decision": "allow"} if rule["id"] == "preview-deletes" else rule
        for rule in POLICY["rules"]
    ]
    code, row = run_desk({**POLICY, "rules": rules}, tmp_path)

    assert 1 == code
    assert {"archive/2019.log": None}.items() <= row["changes"]["files"].items()
