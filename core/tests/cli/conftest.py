"""What the tests of the command share: calling it here, and starting it as its users do."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from adjudge.cli import main


@pytest.fixture
def adjudge(tmp_path, monkeypatch, capsys):
    """Call the command in an empty folder; the answer has code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*args, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(list(map(str, args)))
        out, err = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=out, stderr=err)

    return call


@pytest.fixture
def process(tmp_path):
    """Start the command as a process in an empty folder, and give it when it has ended."""

    def run(*args, path=None, **streams):
        environment = {**os.environ, "PYTHONWARNINGS": "error"}
        if path is not None:
            known = os.environ.get("PYTHONPATH", "")
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(path), known)))
        return subprocess.run(
            [sys.executable, "-m", "adjudge", *map(str, args)],
            cwd=tmp_path,
            env=environment,
            text=True,
            check=False,
            timeout=60,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )

    return run
