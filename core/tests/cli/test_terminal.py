"""Colours: on a terminal where rich is installed, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from adjudge.cli._terminal import painted


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


@pytest.fixture
def shown(monkeypatch):
    """Paint a text in red while standard output is a terminal with colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def paint(text):
        # Within the test: before it pytest puts its own stream in place.
        monkeypatch.setattr(sys, "stdout", Terminal())
        return painted(text, "red")

    return paint


@pytest.mark.needs_extra
def test_a_terminal_shows_colours(shown):
    """The text is in it, unchanged, brackets and all, however long."""
    text = "[bold]deny[/bold] " * 50

    assert f"\x1b[31m{text}\x1b[0m" == shown(text)


@pytest.mark.needs_extra
def test_no_color_is_heeded(shown, monkeypatch):
    """Who sets NO_COLOR gets none."""
    monkeypatch.setenv("NO_COLOR", "1")

    assert "deny" == shown("deny")


def test_without_rich_text_is_text(shown, monkeypatch):
    """The extra is not needed for anything but colours."""
    monkeypatch.setitem(sys.modules, "rich.console", None)

    assert "deny" == shown("deny")


def test_a_pipe_gets_text(monkeypatch):
    """Into a file or a pipe it goes as it is, and so it does where there is no output at all."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert "deny" == painted("deny", "red")

    monkeypatch.setattr(sys, "stdout", None)
    assert "deny" == painted("deny", "red")
