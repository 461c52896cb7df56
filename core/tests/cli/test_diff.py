"""`adjudge policy diff`."""

from __future__ import annotations

import json

import pytest

OLD = {
    "version": 1,
    "rules": [
        {"id": "no-delete", "match": {"tool": "delete_file"}, "decision": "deny"},
        {
            "id": "ask",
            "match": {"tool": "pay", "args.n.gt": 5},
            "decision": "approve_required",
            "approvers": ["finance"],
        },
        {"id": "reads", "match": {"tool": "read"}, "decision": "allow"},
    ],
}


def changed(**by_id):
    """Give the policy with changed rules; None takes one out."""
    rules = [{**rule, **(by_id.get(rule["id"].replace("-", "_")) or {})} for rule in OLD["rules"]]
    return {**OLD, "rules": rules}


@pytest.fixture
def files(tmp_path):
    """Policies in files: old, equal, looser, tighter, asking others, bad, empty."""
    for name, policy in (
        ("old", OLD),
        ("equal", {**OLD, "rules": [{**rule, "reason": "x"} for rule in OLD["rules"]]}),
        ("looser", changed(no_delete={"decision": "allow"})),
        ("tighter", changed(reads={"decision": "deny"})),
        ("others", changed(ask={"approvers": ["boss"]})),
        ("bad", {"rules": 1}),
        ("empty", {"version": 1, "rules": []}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(policy, indent=1))
    return tmp_path


def compare(adjudge, old, new, *options):
    """Compare two of the policies."""
    return adjudge("policy", "diff", f"{old}.json", f"{new}.json", "--max-calls", "900", *options)


@pytest.mark.parametrize("new", ["old", "equal"])
def test_equal_rules_are_zero_and_proved(adjudge, files, new):
    """It is said that nothing can differ, not only that nothing was found."""
    done = compare(adjudge, "old", new)

    assert (0, "") == (done.returncode, done.stderr)
    assert "the rules are the same" in done.stdout


def test_a_loosened_verdict_is_one_and_shows_call_and_rules(adjudge, files):
    """The mark, both verdicts, a call, and both rules."""
    done = compare(adjudge, "old", "looser")

    assert 1 == done.returncode
    assert "- deny -> allow  delete_file {}\n    rule no-delete" in done.stdout
    assert "calls tried" in done.stdout


def test_a_tightened_verdict_has_another_mark(adjudge, files):
    """The direction shows."""
    assert "+ allow -> deny  read {}" in compare(adjudge, "old", "tighter").stdout


def test_other_approvers_are_said(adjudge, files):
    """One verdict, other people."""
    done = compare(adjudge, "old", "others")

    assert 1 == done.returncode
    assert "other approvers: finance -> boss" in done.stdout


@pytest.mark.needs_yaml
def test_rules_of_yaml_have_their_lines(adjudge, files):
    """file:line of both rules."""
    text = "version: 1\nrules:\n  - id: a\n    match: {tool: x}\n    decision: DECISION\n"
    for name, decision in (("a", "deny"), ("b", "allow")):
        (files / f"{name}.yaml").write_text(text.replace("DECISION", decision))
    done = adjudge("policy", "diff", "a.yaml", "b.yaml", "--max-calls", "500")

    assert "rule a (a.yaml:3) -> rule a (b.yaml:3)" in done.stdout


@pytest.mark.parametrize("new", ["old", "equal", "looser", "tighter", "others"])
def test_json_gives_the_same_code(adjudge, files, new):
    """--json changes the form, never the answer; a witness can be read back."""
    plain = compare(adjudge, "old", new)
    structured = compare(adjudge, "old", new, "--json")
    told = json.loads(structured.stdout)

    assert plain.returncode == structured.returncode
    assert (plain.returncode == 0) is told["same"] is (told["differences"] == [])
    assert all({"tool", "args"} <= set(each["call"]) for each in told["differences"])


@pytest.mark.parametrize(
    "pair", [("old", "bad"), ("bad", "old"), ("old", "none"), ("empty", "old")]
)
def test_what_cannot_be_compared_is_two(adjudge, files, pair):
    """A policy that does not compile, is not there, or has no rules."""
    done = compare(adjudge, *pair)

    assert (2, "") == (done.returncode, done.stdout)
    assert "" != done.stderr


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_limit_that_is_none_is_two(adjudge, files, number):
    """At least one call must be tried."""
    done = adjudge("policy", "diff", "old.json", "looser.json", "--max-calls", number)

    assert 2 == done.returncode
