"""Runs pytest within pytest, in a folder and a process of its own.

pytest's own `pytester` can only be turned on for a whole run, and these tests are part of larger
ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

POLICY = {
    "version": 1,
    "rules": [{"id": "pay", "match": {"tool": "pay", "args.amount.le": 50}, "decision": "allow"}],
    "defaults": {"on_missing_shadow": "deny"},
}


class Desk:
    """A folder with a policy, to which cases are written, and in which pytest is run."""

    def __init__(self, path):
        self.path = path
        self.file("policy.json", json.dumps(POLICY))

    def file(self, name, text):
        """Write a file."""
        (self.path / name).write_text(text)

    def write(self, *cases, **sections):
        """Write cases beside the policy."""
        tests = {"adjudge_tests": 1, "cases": list(cases), **sections}
        self.file("policy.test.json", json.dumps(tests, indent=1))

    def run(self, *arguments):
        """Run pytest here as a user would."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=self.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        out, err = done.stdout.splitlines(), done.stderr.splitlines()
        return pytest.RunResult(done.returncode, out, err, time.monotonic() - begun)


@pytest.fixture
def desk(tmp_path):
    """A folder with a policy."""
    return Desk(tmp_path)
