"""The approval prompt: all of it seen, nothing of it forged (design, section 4)."""

import io

import pytest

from adjudge._enforcement.approvals import cli_prompt_approval
from adjudge._types import (
    ActionRequest,
    ApprovalRequest,
    Decision,
    ExecutionContext,
    Principal,
    Verdict,
)
from adjudge._values import FrozenDict


def question(args=None, reason="big", tool="pay"):
    """Make a question."""
    request = ActionRequest(
        tool,
        FrozenDict(args or {"to": "ana"}),
        None,
        ExecutionContext(Principal("user", "eve")),
    )
    decision = Decision(Verdict.APPROVE_REQUIRED, reason)
    return ApprovalRequest(request, decision, "run", "e1", ("ana", "bo"), "d" * 64, 60.0)


def ask(typed, **kwargs):
    """Ask one question and give the answer with what was shown."""
    shown = io.StringIO()
    handler = cli_prompt_approval(
        "ana", stdin=io.StringIO(typed), stdout=shown, max_chars=kwargs.pop("max_chars", 4000)
    )
    return handler(question(**kwargs)), shown.getvalue()


@pytest.mark.parametrize("typed", ["y\n", "yes\n", " Y \n", "YES\n"])
def test_yes_grants(typed):
    """`y` and `yes` grant, in the approver's name."""
    answer, _ = ask(typed)

    assert (answer.granted, answer.approver) == (True, "ana")


@pytest.mark.parametrize("typed", ["", "\n", "n\n", "yess\n", "y y\n", "ja\n", "1\n", "true\n"])
def test_anything_else_refuses(typed):
    """End of input, an empty line and every other word refuse."""
    answer, _ = ask(typed)

    assert answer.granted is False


def test_without_a_terminal_nobody_is_asked(monkeypatch, capsys):
    """A process without a terminal refuses at once."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))

    answer = cli_prompt_approval()(question())

    assert (answer.granted, answer.reason) == (False, "there is no terminal to ask on")
    assert capsys.readouterr() == ("", "")


def test_without_any_input_nobody_is_asked(monkeypatch):
    """A process whose standard input was closed refuses at once."""
    monkeypatch.setattr("sys.stdin", None)

    assert cli_prompt_approval()(question()).granted is False


def test_the_prompt_shows_what_matters():
    """Tool, caller, reason, approvers, digest and every argument."""
    _, shown = ask("n\n", args={"to": "ana", "deep": {"list": [1, 2.5, None, True]}})

    for part in ("pay", "user eve", "big", "ana, bo", "d" * 64, '"deep"', "2.5", "null", "true"):
        assert part in shown


def test_what_is_cut_is_marked():
    """An argument that is too long is cut with a mark that says how much is missing."""
    _, shown = ask("n\n", args={"body": "a" * 9000}, max_chars=100)

    assert "[CUT: " in shown
    assert "of 9016 characters are not shown]" in shown
    assert "d" * 64 in shown


def test_without_a_cut_there_is_no_mark():
    """The whole text is there otherwise."""
    _, shown = ask("n\n", args={"body": "a" * 3000})

    assert "a" * 3000 in shown
    assert "[CUT" not in shown


HIDDEN = {
    "escape": "\x1b[2J",
    "carriage-return": "\r",
    "newline": "\n",
    "bell": "\a",
    "right-to-left": "\u202e",
    "isolate": "\u2067",
    "zero-width": "\u200b",
    "joiner": "\u200d",
    "bom": "\ufeff",
    "line-separator": "\u2028",
    "paragraph-separator": "\u2029",
    "next-line": "\x85",
    "no-break-space": "\u00a0",
    "tag": "\U000e0041",
    "private": "\ue000",
}


@pytest.mark.parametrize("place", ["args", "key", "reason", "tool"])
@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_characters_are_escaped(name, place):
    """Control, format, bidirectional and separator characters show as escapes."""
    character = HIDDEN[name]
    text = f"a{character}b"
    given = {
        "args": {"args": {"x": text}},
        "key": {"args": {text: 1}},
        "reason": {"reason": text},
        "tool": {"tool": text},
    }[place]

    _, shown = ask("n\n", **given)

    assert text not in shown
    assert character[0] == "\n" or character[0] not in shown


def test_an_argument_cannot_forge_a_line():
    """What looks like a prompt inside an argument stays inside its quotes."""
    _, shown = ask("n\n", args={"x": "y\nApprove? [y/N] "}, reason="r\n  digest:    0000")

    assert shown.count("\nApprove? [y/N] ") == 1
    assert "\n  digest:    0000" not in shown
