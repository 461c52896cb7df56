"""`adjudge policy lint` and `adjudge policy bundle-id`."""

from __future__ import annotations

import json

import pytest

from adjudge import compile_policy

GOOD = {
    "version": 1,
    "rules": [
        {"id": "low", "match": {"tool": "x"}, "decision": "allow", "description": "the usual"},
        {"id": "high", "priority": 9, "match": {"tool": "y"}, "decision": "deny"},
    ],
}
BAD = {"rules": [{"id": "a", "match": {"arg.x": 1}, "decision": "allow"}]}


@pytest.fixture
def files(tmp_path):
    """Policies in files: good, bad, without rules."""
    for name, policy in (("good", GOOD), ("bad", BAD), ("empty", {"version": 1, "rules": []})):
        (tmp_path / f"{name}.json").write_text(json.dumps(policy))
    return tmp_path


def test_a_good_policy_is_summed_up_in_the_order_of_choice(adjudge, files):
    """Lint lists rules as they are asked, and what holds where none matches."""
    done = adjudge("policy", "lint", "good.json")
    lines = done.stdout.splitlines()

    assert (0, "") == (done.returncode, done.stderr)
    assert "good.json: 2 rules, " in lines[0]
    assert ["high", "low"] == [line.split()[2] for line in lines[1:3]]
    assert "the usual" in done.stdout
    assert "no rule matches: deny" in done.stdout


def test_a_bad_policy_is_two_with_its_place_on_standard_error(adjudge, files):
    """An error names the file and the place in it."""
    done = adjudge("policy", "lint", "bad.json")

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("bad.json:")
    assert "arg.x" in done.stderr


def test_every_file_is_reported_when_one_is_bad(adjudge, files):
    """The good ones are summed up, the bad ones complained of, and the code is the worst."""
    done = adjudge("policy", "lint", "bad.json", "good.json", "missing.json")

    assert 2 == done.returncode
    assert "good.json: 2 rules" in done.stdout
    assert "bad.json" in done.stderr
    assert "missing.json" in done.stderr


@pytest.mark.parametrize("name", ["empty.json", "missing.json", "."])
def test_nothing_checked_is_not_good(adjudge, files, name):
    """A policy without rules, a wrong path and a folder are errors."""
    assert 2 == adjudge("policy", "lint", name).returncode


@pytest.mark.needs_yaml
@pytest.mark.parametrize("text", ["", "# nothing but this\n", "rules: []\n", "rules: [\n"])
def test_text_that_says_nothing_is_not_good(adjudge, files, text):
    """An empty file, only comments, no rules, and half a file are errors."""
    (files / "x.yaml").write_text(text)

    assert 2 == adjudge("policy", "lint", "x.yaml").returncode


@pytest.mark.needs_yaml
def test_an_error_in_yaml_has_line_and_column(adjudge, files):
    """file:line:column leads, as editors read it."""
    (files / "x.yaml").write_text("version: 1\nrules:\n  - id: a\n    math: always\n")
    done = adjudge("policy", "lint", "x.yaml")

    assert 2 == done.returncode
    assert "x.yaml:4:5" in done.stderr


@pytest.mark.parametrize("name", ["good.json", "bad.json", "empty.json", "missing.json"])
def test_json_gives_the_same_code(adjudge, files, name):
    """--json changes the form, never the answer."""
    plain = adjudge("policy", "lint", name)
    structured = adjudge("policy", "lint", "--json", name)
    (report,) = json.loads(structured.stdout)

    assert plain.returncode == structured.returncode
    assert (plain.returncode == 0) is (report["problems"] == [])


def test_a_policy_that_allows_the_rest_is_said_to(adjudge, files):
    """Lint says when calls that no rule speaks of are allowed, whatever the rules are called."""
    policy = {**GOOD, "defaults": {"on_no_match": "allow"}}
    (files / "open.json").write_text(json.dumps(policy))

    assert "no rule speaks of are allowed" in adjudge("policy", "lint", "open.json").stdout


def test_one_rule_is_one_rule(adjudge, files):
    """The summary counts in words that a person would use."""
    (files / "one.json").write_text(json.dumps({**GOOD, "rules": GOOD["rules"][:1]}))

    assert "one.json: 1 rule, " in adjudge("policy", "lint", "one.json").stdout


def test_standard_input_is_a_policy_too(adjudge, files):
    """A dash reads standard input."""
    assert 0 == adjudge("policy", "lint", "-", stdin=json.dumps(GOOD)).returncode
    assert 2 == adjudge("policy", "lint", "-", stdin=json.dumps(BAD)).returncode


def test_control_characters_of_a_policy_do_not_reach_the_terminal(adjudge, files):
    """A description cannot rewrite the screen."""
    policy = json.loads(json.dumps(GOOD))
    policy["rules"][0]["description"] = "\x1b[2Jclean"
    (files / "x.json").write_text(json.dumps(policy))

    assert "\x1b" not in adjudge("policy", "lint", "x.json").stdout


def test_the_bundle_id_is_that_of_the_compiled_policy(adjudge, files):
    """bundle-id prints what a guard records, and nothing else."""
    done = adjudge("policy", "bundle-id", "good.json")

    assert (0, compile_policy(GOOD).id + "\n") == (done.returncode, done.stdout)


@pytest.mark.parametrize("name", ["bad.json", "missing.json"])
def test_a_policy_that_does_not_compile_has_no_id(adjudge, files, name):
    """bundle-id fails with the problems and prints no id."""
    done = adjudge("policy", "bundle-id", name)

    assert (2, "") == (done.returncode, done.stdout)
    assert name in done.stderr
