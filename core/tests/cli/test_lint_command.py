"""`adjudge policy lint`: findings, tool lists, exit codes."""

from __future__ import annotations

import json
import sys

import pytest

RULES = [
    {"id": "wide", "match": {"tool": "pay"}, "decision": "deny"},
    {"id": "narrow", "match": {"tool": "pay", "args.n.gt": 5}, "decision": "deny"},
]


@pytest.fixture
def policy(tmp_path):
    """A policy with one finding, in a file; gives its name."""
    (tmp_path / "p.json").write_text(json.dumps({"version": 1, "rules": RULES}))
    return "p.json"


def test_a_finding_is_one_with_its_place_and_code(adjudge, policy):
    """The summary stays, the findings follow, and the code is 1."""
    done = adjudge("policy", "lint", policy)

    assert (1, "") == (done.returncode, done.stderr)
    assert "p.json: 2 rules, " in done.stdout
    assert ": shadowed: narrow: This rule never decides" in done.stdout
    assert "1 finding\n" in done.stdout


def test_json_has_the_findings(adjudge, policy):
    """With code, rule, place and the rules that the sentence names."""
    done = adjudge("policy", "lint", "--json", policy)
    ((finding,),) = [report["findings"] for report in json.loads(done.stdout)]

    assert 1 == done.returncode
    assert ("shadowed", "narrow", ["wide"]) == (
        finding["code"],
        finding["rule"],
        finding["related"],
    )
    assert "rules[1]" == finding["path"]


def test_a_code_can_be_ignored(adjudge, policy):
    """The rest still counts."""
    assert 0 == adjudge("policy", "lint", "--ignore", "shadowed", policy).returncode
    assert 1 == adjudge("policy", "lint", "--ignore", "timestamp", policy).returncode


@pytest.mark.parametrize(
    "module", ["raise SystemExit(0)", "class E(Exception):\n    __str__ = None\nraise E"]
)
def test_tools_whose_module_does_not_load_are_two(adjudge, policy, tmp_path, monkeypatch, module):
    """Whatever it does: a lint that did not happen is no good one."""
    (tmp_path / "ending_tools.py").write_text(module)
    monkeypatch.delitem(sys.modules, "ending_tools", raising=False)
    done = adjudge("policy", "lint", policy, "--tools", "ending_tools:tools")

    assert (2, "") == (done.returncode, done.stdout)
    assert "The tools 'ending_tools:tools' cannot be imported" in done.stderr


def test_an_unknown_code_is_bad_usage(adjudge, policy):
    """A misspelt --ignore would hide nothing and look as if it did."""
    done = adjudge("policy", "lint", "--ignore", "shadow", policy)

    assert 2 == done.returncode
    assert "shadowed" in done.stderr


def test_tools_come_from_a_json_file(adjudge, tmp_path, policy):
    """A list of names or of schemas."""
    (tmp_path / "tools.json").write_text('["pay", {"name": "other"}]')
    done = adjudge("policy", "lint", "--tools", "tools.json", "--ignore", "shadowed", policy)

    assert 1 == done.returncode
    assert 'missing_tool: No rule speaks of the tool "other"' in done.stdout


def test_tools_come_from_a_module(adjudge, tmp_path, policy):
    """module:attribute, found in the folder where the command runs."""
    (tmp_path / "my_lint_tools.py").write_text(
        "from adjudge import ToolSet, tool\n\n@tool()\ndef other():\n    ...\n\n"
        "TOOLS = ToolSet([other])\n"
    )
    before = list(sys.path)
    done = adjudge("policy", "lint", "--tools", "my_lint_tools:TOOLS", policy)

    assert before == sys.path
    assert 1 == done.returncode
    assert 'unknown_tool: wide: The rule names "pay"' in done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("missing.json", None),
        ("broken.json", "["),
        ("number.json", "7"),
        ("mixed.json", "[7]"),
        ("deep.json", "[" * 100_000),
        ("latin.json", b"\xff"),
        ("no_such_module:x", None),
        ("json:loads", None),
        ("json:nothing", None),
    ],
)
def test_what_is_no_tool_list_is_bad_input(adjudge, tmp_path, policy, name, text):
    """Said in a sentence, and nothing is linted."""
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    done = adjudge("policy", "lint", "--tools", name, policy)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("adjudge: ")


def test_a_file_that_does_not_compile_beside_findings_is_two(adjudge, tmp_path, policy):
    """The worst code counts, and every file is reported."""
    (tmp_path / "bad.json").write_text("{}")
    done = adjudge("policy", "lint", policy, "bad.json")

    assert 2 == done.returncode
    assert "shadowed" in done.stdout


def test_control_characters_of_a_finding_do_not_reach_the_terminal(adjudge, tmp_path):
    """An operand cannot rewrite the screen."""
    rule = {"match": {"tool": "x", "args.path.starts_with": "/\x1b[2J"}, "decision": "allow"}
    (tmp_path / "x.json").write_text(json.dumps({"rules": [rule]}))
    done = adjudge("policy", "lint", "x.json")

    assert 1 == done.returncode
    assert "\x1b" not in done.stdout
