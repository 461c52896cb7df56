"""A bar while a large policy is compiled: on a terminal, with rich, and nowhere else."""

from __future__ import annotations

import io
import json
import sys

import pytest

from adjudge.cli import _progress
from adjudge.cli._progress import progress_of

POLICY = json.dumps({"rules": [{"match": {"args.x": n}, "decision": "deny"} for n in range(50)]})


class Terminal(io.StringIO):
    """A standard error that is a terminal, and keeps what is written."""

    encoding = "utf-8"

    def isatty(self):
        """Say that it is one."""
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Make standard error a terminal, on which a bar is shown after so many seconds."""

    def attach(patience):
        kept = Terminal()
        monkeypatch.setattr(sys, "stderr", kept)
        monkeypatch.setattr(_progress, "_PATIENCE", patience)
        return kept

    return attach


def test_where_no_terminal_is_nobody_is_told(monkeypatch):
    """A log file or a pipe gets no bar, and compiling tells nobody how far it is."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    with progress_of("policy.yaml") as progress:
        assert progress is None


def test_without_rich_nothing_is_written(terminal, monkeypatch):
    """Without the extra the command works as before."""
    written = terminal(0.0)
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setitem(sys.modules, "rich.progress", None)

    with progress_of("policy.yaml") as progress:
        progress(1, 1000)
        progress(2, 1000)

    assert "" == written.getvalue()


def test_a_policy_that_is_compiled_at_once_shows_no_bar(terminal):
    """Nothing flickers where nobody had to wait."""
    written = terminal(60.0)

    with progress_of("policy.yaml") as progress:
        progress(500, 1000)

    assert "" == written.getvalue()


def test_linting_a_policy_into_a_pipe_writes_no_bar(adjudge, tmp_path):
    """Where standard error is no terminal it stays empty."""
    (tmp_path / "policy.json").write_text(POLICY, encoding="utf-8")

    listed = adjudge("policy", "lint", "policy.json")

    assert "" == listed.stderr
