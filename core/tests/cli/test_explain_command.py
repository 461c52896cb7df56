"""`adjudge explain`: the call it is given, what it prints, exit codes."""

from __future__ import annotations

import json

import pytest

POLICY = {
    "version": 1,
    "rules": [
        {"id": "large", "match": {"tool": "pay", "args.n.gt": 5}, "decision": "deny"},
        {
            "id": "mine",
            "match": {"tool": "pay", "context.principal.id": "alice"},
            "decision": "allow",
        },
        {"id": "files", "match": {"tool": "read", "args.path.under": "."}, "decision": "allow"},
    ],
}


@pytest.fixture
def policy(tmp_path):
    """A policy in a file; gives its name."""
    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    return "p.json"


def test_it_says_verdict_rules_conditions_and_values(adjudge, policy):
    """In the order asked; what was not asked is counted, and shown with --all."""
    done = adjudge("explain", policy, "--tool", "pay", "--args", '{"n": 9}')
    shown = adjudge("explain", policy, "--tool", "pay", "--args", '{"n": 9}', "--all")

    assert (0, "") == (done.returncode, done.stderr)
    assert "deny by large" in done.stdout
    assert "true  args.n gt 5  (is 9)" in done.stdout
    assert "(1 not asked: the search had ended)" in done.stdout
    assert "(1 about other tools)" in done.stdout
    assert "not asked mine (allow)" in shown.stdout


def test_who_asks_is_an_option(adjudge, policy):
    """--principal and --context make the context."""
    call = ("explain", policy, "--tool", "pay", "--args", '{"n": 1}', "--json")
    by_option = adjudge(*call, "--principal", "user:alice")
    by_json = adjudge(*call, "--context", '{"principal": {"kind": "user", "id": "alice"}}')

    assert "allow" == json.loads(by_option.stdout)["decision"]["verdict"]
    assert by_option.stdout == by_json.stdout


def test_a_request_file_holds_call_and_context(adjudge, tmp_path, policy):
    """Options stand in place of what it says; a dash is standard input."""
    request = {
        "call": {"tool": "pay", "args": {"n": 1}},
        "context": {"principal": {"kind": "user", "id": "alice"}},
    }
    (tmp_path / "r.json").write_text(json.dumps(request))
    by_file = adjudge("explain", policy, "--request", "r.json")
    by_stdin = adjudge("explain", policy, "--request", "-", stdin=json.dumps(request))
    changed = adjudge("explain", policy, "--request", "r.json", "--args", '{"n": 9}')

    assert "allow by mine" in by_file.stdout
    assert by_file.stdout == by_stdin.stdout
    assert "deny by large" in changed.stdout


def test_paths_are_worked_out_in_the_workspace(adjudge, policy):
    """Without a file system: what leads out of the workspace is not under it."""
    inside = adjudge("explain", policy, "--tool", "read", "--args", '{"path": "a/b"}')
    outside = adjudge("explain", policy, "--tool", "read", "--args", '{"path": "../b"}')

    assert "allow by files" in inside.stdout
    assert "deny by <default:on_no_match>" in outside.stdout


def test_several_policies_are_layers(adjudge, tmp_path, policy):
    """Named after their files."""
    (tmp_path / "team.json").write_text(
        json.dumps({"rules": [{"id": "no", "match": "always", "decision": "deny"}]})
    )
    done = adjudge("explain", policy, "team.json", "--tool", "pay", "--args", '{"n": 1}')

    assert "deny by team:no" in done.stdout
    assert "Layer p, in the order asked:" in done.stdout


def test_secrets_and_control_characters_do_not_reach_the_terminal(adjudge, policy):
    """What the record leaves out is left out, and nothing can rewrite the screen."""
    args = json.dumps({"password": "hunter2", "n": "\x1b[2J"})
    done = adjudge("explain", policy, "--tool", "pay\x1b", "--args", args)

    assert 0 == done.returncode
    assert "hunter2" not in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--tool", "pay", "--args", "["),
        ("--tool", "pay", "--args", "7"),
        ("--tool", "pay", "--args", '{"a": 1, "a": 2}'),
        ("--tool", "pay", "--args", '{"a": NaN}'),
        ("--tool", "pay", "--context", '{"nonsense": 1}'),
        ("--tool", "pay", "--context", "[]"),
        ("--tool", "pay", "--principal", "robot:x"),
        ("--tool", "pay", "--principal", "user:"),
        ("--tool", "pay", "--principal", "bad"),
        ("--tool", "pay", "--principal", ""),
        ("--tool", ""),
        ("--request", "missing.json"),
        ("--request", "p.json"),
        ("--nonsense",),
    ],
)
def test_what_is_no_call_is_bad_input(adjudge, policy, options):
    """Said in a sentence, on standard error."""
    done = adjudge("explain", policy, *options)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr


def test_a_principal_without_its_kind_is_told_how_it_is_written(adjudge, policy):
    """A word alone is no user: a misspelt option must not explain another call."""
    done = adjudge("explain", policy, "--tool", "pay", "--principal", "bad")

    assert "adjudge: --principal is KIND:ID, as in user:alice; 'bad' has no colon.\n" == done.stderr


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_what_is_no_policy_is_bad_input(adjudge, policy, name):
    """As it is for the other commands."""
    assert 2 == adjudge("explain", name, "--tool", "pay").returncode
