"""The command as a whole: version, usage, plug-ins, pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import adjudge as package
from adjudge.cli import main


def test_the_version_is_the_packages(process):
    """--version prints the version and succeeds."""
    done = process("--version")

    assert (0, f"adjudge {package.__version__}\n", "") == (
        done.returncode,
        done.stdout,
        done.stderr,
    )


@pytest.mark.parametrize(
    "args", [[], ["nonsense"], ["policy"], ["verify"], ["verify", "--nonsense", "x"], ["run"]]
)
def test_bad_usage_is_two_and_said_on_standard_error(adjudge, args):
    """What the command does not understand is exit code 2, with the usage on standard error."""
    done = adjudge(*args)

    assert (2, "") == (done.returncode, done.stdout)
    assert "usage: adjudge" in done.stderr


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("explain", "missing.yaml", "--tool", "x"), "policy_compile_error"),
        (("explain", "good.json"), "no_call"),
        (("explain", "good.json", "--tool", "x", "--principal", "bad"), "no_call"),
        (("policy", "diff", "missing.yaml", "good.json"), "policy_compile_error"),
        (("policy", "diff", "good.json", "empty.json"), "nothing_checked"),
        (("policy", "lint", "good.json", "--ignore", "nonsense"), "usage"),
        (("policy", "lint", "good.json", "--tools", "missing.json"), "policy_compile_error"),
        (("policy", "lint"), "usage"),
        (("replay", "missing.jsonl", "--policy", "good.json"), "record"),
        (("replay", "good.json", "--policy", "missing.json"), "policy_compile_error"),
        (("suggest", "missing.jsonl"), "record"),
        (("suggest", "good.json", "--output", "x.txt"), "usage"),
        (("verify", "missing.jsonl"), "record"),
        (("checkpoint", "good.json"), "usage"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_what_is_refused_is_json_too_where_that_was_asked_for(adjudge, tmp_path, args, code):
    """Every command: sentences on standard error, and one object with the same under --json."""
    rule = {"id": "a", "match": "always", "decision": "allow"}
    (tmp_path / "good.json").write_text(json.dumps({"version": 1, "rules": [rule]}))
    (tmp_path / "empty.json").write_text('{"version": 1}')
    plain, structured = adjudge(*args), adjudge(*args, "--json")
    error = json.loads(structured.stdout)["error"]

    assert (2, "", 2) == (plain.returncode, plain.stdout, structured.returncode)
    assert code == error["code"]
    assert all(problem in structured.stderr for problem in error["problems"])
    assert error["problems"]
    assert plain.stderr == structured.stderr


def test_help_succeeds(adjudge):
    """--help prints the commands to standard output."""
    done = adjudge("--help")

    assert 0 == done.returncode
    assert all(name in done.stdout for name in ("init", "policy", "verify", "run"))


def test_main_returns_the_code_and_does_not_exit(capsys):
    """Main can be called from Python: it gives the exit code."""
    assert 0 == main(["--version"])
    assert 2 == main(["nonsense"])
    assert 0 == main(["--help"])


@pytest.mark.parametrize("args", [["--version"], ["--help"]])
def test_a_reader_that_has_gone_changes_nothing(process, args):
    """A closed pipe is no error of the command's, and no traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        done = process(*args, stdout=stdout)

    assert (0, "") == (done.returncode, done.stderr)


def test_output_that_cannot_be_written_is_two(process, tmp_path):
    """A full disk is bad input and output, never "violations" and no traceback."""
    unwritable = tmp_path / "unwritable"
    unwritable.touch()
    with unwritable.open() as stdout:
        done = process("--version", stdout=stdout)

    assert 2 == done.returncode
    assert done.stderr.startswith("adjudge: the output cannot be written: ")
    assert "Traceback" not in done.stderr


def test_no_standard_output_at_all_changes_nothing(tmp_path):
    """Started with its output closed, the command still gives its code."""
    done = subprocess.run(
        ["sh", "-c", '"$0" -m adjudge --version >&-', sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)


@pytest.fixture
def plugins(tmp_path):
    """Distributions with commands: one that works, one that does not import, one that is taken."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "shouting.py").write_text(
        "def configure(parser):\n"
        "    parser.add_argument('--loud', action='store_true')\n"
        "    parser.add_argument('word')\n"
        "    parser.set_defaults(run=run)\n"
        "def run(options):\n"
        "    print(options.word.upper() if options.loud else options.word)\n"
        "    return 1 if options.word == 'bad' else 0\n"
    )
    (site / "broken.py").write_text("raise ImportError('no such extra')\n")
    (site / "ending.py").write_text("raise SystemExit(0)\n")
    metadata = site / "plugins-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugins\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[adjudge.commands]\n"
        "shout = shouting:configure\n"
        "broken = broken:configure\n"
        "ending = ending:configure\n"
        "verify = shouting:configure\n"
    )
    return site


def test_a_plug_in_adds_its_command(process, plugins):
    """A command of another distribution gets its own arguments and gives its own code."""
    good = process("shout", "--loud", "hello", path=plugins)
    bad = process("shout", "bad", path=plugins)
    misused = process("shout", "--nonsense", path=plugins)

    assert (0, "HELLO\n") == (good.returncode, good.stdout)
    assert 1 == bad.returncode
    assert 2 == misused.returncode
    assert "usage: adjudge shout" in misused.stderr
    assert "usage: adjudge shout" in process("shout", "--help", path=plugins).stdout


def test_a_broken_plug_in_is_reported_and_breaks_no_other(process, plugins):
    """One that does not import fails by itself, with its distribution's name."""
    broken = process("broken", path=plugins)

    assert 2 == broken.returncode
    assert "of plugins does not load: ImportError: no such extra" in broken.stderr
    assert 2 == process("ending", path=plugins).returncode
    assert 0 == process("--version", path=plugins).returncode
    assert 0 == process("shout", "x", path=plugins).returncode


def test_a_plug_in_cannot_take_a_name_that_is_ours(process, plugins):
    """`verify` stays what it is; the plug-in that wants the name is reported."""
    done = process("verify", "missing.jsonl", path=plugins)

    assert 2 == done.returncode
    assert "'verify' of shouting:configure is left out" in done.stderr
    assert "missing.jsonl cannot be read" in done.stderr
