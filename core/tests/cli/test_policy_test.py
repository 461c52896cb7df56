"""`adjudge policy test`: exit codes, what it prints, and where it looks for the cases."""

from __future__ import annotations

import json

import pytest

POLICY = {
    "version": 1,
    "rules": [{"id": "pay", "match": {"tool": "pay", "args.amount.le": 50}, "decision": "allow"}],
    "defaults": {"on_missing_shadow": "deny"},
}


def case(amount, expect, tool="pay", **call):
    """Give a case of one call."""
    return {
        "name": f"{tool} {amount}",
        "call": {"tool": tool, "args": {"amount": amount}, **call},
        "expect": expect,
    }


GOOD = {
    "adjudge_tests": 1,
    "tools": {
        "pay": {},
        "other": {"args": ["amount"]},
        "wipe": {"args": ["amount"], "reversible": False},
    },
    "cases": [
        case(50, "allow"),
        case(51, "deny"),
        case(1, "deny", tool="other"),
        case(1, "deny", tool="wipe"),
    ],
}
FAILING = {"adjudge_tests": 1, "cases": [case(50, "deny"), case(51, "deny")]}
THIN = {"adjudge_tests": 1, "cases": [case(50, "allow")]}


@pytest.fixture
def files(tmp_path):
    """Policies with good, failing, thin, broken and no cases beside them."""
    for name, tests in (("good", GOOD), ("failing", FAILING), ("thin", THIN), ("broken", {})):
        (tmp_path / f"{name}.json").write_text(json.dumps(POLICY))
        (tmp_path / f"{name}.test.json").write_text(json.dumps(tests))
    (tmp_path / "untested.json").write_text(json.dumps(POLICY))
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "bad.test.json").write_text(json.dumps(GOOD))
    return tmp_path


@pytest.mark.parametrize("name", ["good.json", "good.test.json"])
def test_a_policy_that_decides_as_expected_is_zero(adjudge, files, name):
    """Whichever of the two files is named."""
    done = adjudge("policy", "test", name)

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout == "good.test.json (good.json): 4 cases, as expected\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_tool_that_nothing_names_is_a_warning(adjudge, tmp_path, as_json):
    """A misspelt tool is denied as the right one would be: said on standard error, and passed."""
    tests = {"adjudge_tests": 1, "cases": [case(51, "deny", tool="pey")]}
    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    (tmp_path / "p.test.json").write_text(json.dumps(tests))
    done = adjudge("policy", "test", "p.json", *(["--json"] if as_json else []))

    assert 0 == done.returncode
    assert 'names the tool "pey". Did you mean "pay"?' in done.stderr
    if as_json:
        assert 1 == len(json.loads(done.stdout)[0]["warnings"])


def test_a_case_that_fails_is_one_and_is_explained(adjudge, files):
    """The case's name and place, the call, what differs, the rule."""
    done = adjudge("policy", "test", "failing.json")

    assert 1 == done.returncode
    assert "1 of 2 cases not as expected" in done.stdout
    for part in (
        'failing.test.json:1: "pay 50"',
        'pay {"amount": 50}',
        "rule pay (failing.json:1)",
    ):
        assert part in done.stdout
    assert "verdict: expected deny, decided allow" in done.stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("untested.json", "there is no untested.test.yaml"),
        ("broken.json", "broken.test.json:1:1: "),
        ("broken.test.json", "broken.test.json:1:1: "),
        ("bad.json", "bad.json:1:2: "),
        ("missing.json", "cannot be read"),
        ("missing.test.json", "cannot be read"),
        (".", "."),
    ],
)
def test_nothing_checked_is_not_good(adjudge, files, name, says):
    """No cases, cases or a policy that cannot be read: two, with the reason on standard error."""
    done = adjudge("policy", "test", name)

    assert (2, "") == (done.returncode, done.stdout)
    assert says in done.stderr
    if says[-1] == " ":  # file:line:column leads, as editors read it.
        assert done.stderr.startswith(says)


def test_every_file_is_run_once_and_the_code_is_the_worst(adjudge, files):
    """A policy and its cases, both named, are one run; a broken one does not stop the others."""
    done = adjudge("policy", "test", "failing.json", "good.json", "good.test.json", "broken.json")

    assert 2 == done.returncode
    assert 1 == done.stdout.count("good.test.json")
    assert 1 == adjudge("policy", "test", "failing.json", "good.json").returncode


def test_layers_are_run_together(adjudge, files):
    """Whichever layer is named; a problem in one is reported under its file."""
    (files / "org.json").write_text('{"rules": [{"id": "stop", "match": {"tool": "pay"}}]}')
    tests = {"adjudge_tests": 1, "layers": {"org": "org.json", "team": "good.json"}}
    tests["cases"] = [case(1, {"verdict": "deny", "rule": "org:stop"})]
    (files / "good.test.json").write_text(json.dumps(tests))

    assert 0 == adjudge("policy", "test", "good.json").returncode
    assert "(org.json, good.json)" in adjudge("policy", "test", "good.test.json").stdout
    (files / "org.json").write_text("{")
    assert adjudge("policy", "test", "good.json").stderr.startswith("org.json:1:2: ")


def test_other_cases_can_be_asked(adjudge, files):
    """--tests names them, whatever stands beside the policy."""
    assert 0 == adjudge("policy", "test", "untested.json", "--tests", "good.test.json").returncode
    assert 1 == adjudge("policy", "test", "good.json", "--tests", "failing.test.json").returncode
    assert 2 == adjudge("policy", "test", "good.json", "--tests", "missing.json").returncode


def test_cases_beside_a_policy_that_are_about_another_are_not_run(adjudge, files):
    """That would look like a policy that was tested."""
    (files / "good.test.json").write_text(json.dumps({**GOOD, "policy": "thin.json"}))
    done = adjudge("policy", "test", "good.json")

    assert 2 == done.returncode
    assert "not about this policy" in done.stderr


def test_a_case_that_names_no_rule_is_bad_input(adjudge, files):
    """With the place of the case."""
    wrong = {**GOOD, "cases": [case(50, {"verdict": "allow", "rule": "pya"})]}
    (files / "good.test.json").write_text(json.dumps(wrong))
    done = adjudge("policy", "test", "good.json")

    assert 2 == done.returncode
    assert done.stderr.startswith("good.test.json:1:")
    assert 'Did you mean "pay"?' in done.stderr


def test_coverage_lists_what_no_case_exercises(adjudge, files):
    """It is no reason to fail unless a percentage is asked for."""
    done = adjudge("policy", "test", "thin.json", "--coverage")

    assert 0 == done.returncode
    assert "coverage: 60.0 %" in done.stdout
    assert "thin.json:1: args.amount.le: 50 was never false" in done.stdout
    assert "the default on_no_match decided no case" in done.stdout


@pytest.mark.parametrize(
    ("least", "code"), [("60", 0), ("60.1", 1), ("101", 2), ("x", 2), ("-1", 2)]
)
def test_too_little_coverage_fails(adjudge, files, least, code):
    """--fail-under is a percentage."""
    assert code == adjudge("policy", "test", "thin.json", f"--fail-under={least}").returncode


def test_mutation_says_which_mistakes_are_not_noticed(adjudge, files):
    """Each with its place and the call that is missing; one is enough to fail."""
    good = adjudge("policy", "test", "good.json", "--mutate")
    thin = adjudge("policy", "test", "thin.json", "--mutate")

    assert 0 == good.returncode
    assert "mutation: 7 of 7 changes noticed" in good.stdout
    assert 1 == thin.returncode
    assert "thin.json:1: rule pay: no case notices if" in thin.stdout
    assert 'a case that would: pay {"amount": 51}' in thin.stdout


def test_mutation_waits_for_the_cases_to_pass(adjudge, files):
    """Whether a mistake is noticed means nothing before."""
    done = adjudge("policy", "test", "failing.json", "--mutate")

    assert 1 == done.returncode
    assert "the cases must pass first" in done.stdout


@pytest.mark.parametrize("name", ["good", "failing", "thin", "broken"])
def test_json_gives_the_same_code(adjudge, files, name):
    """--json changes the form, never the answer."""
    asked = ("policy", "test", f"{name}.json", "--coverage", "--mutate")
    plain, structured = adjudge(*asked), adjudge(*asked, "--json")
    reports = json.loads(structured.stdout)

    assert plain.returncode == structured.returncode
    assert plain.stderr == structured.stderr
    assert [plain.returncode == 0] == [each["passed"] for each in reports]
    assert (plain.returncode == 2) is ("problems" in reports[0])


def test_json_has_all_of_it(adjudge, files):
    """Cases with decisions, coverage by condition, mutants with what became of them."""
    done = adjudge("policy", "test", "good.json", "--coverage", "--mutate", "--json")
    (report,) = json.loads(done.stdout)

    assert ["good.json"] == report["policies"]
    assert {"verdict": "allow", "rules": ["pay"]}.items() <= report["cases"][0]["decision"].items()
    assert 100.0 == report["coverage"]["percent"]
    assert {"mutants": 7, "killed": 7, "survived": 0}.items() <= report["mutation"].items()
    assert "pay 50" in [each["killed_by"] for each in report["mutation"]["results"]]


def test_control_characters_do_not_reach_the_terminal(adjudge, files):
    """Neither out of arguments nor out of reasons."""
    strange = {**FAILING, "cases": [case("\x1b[2J", "allow", tool="\x1b[2J")]}
    (files / "good.test.json").write_text(json.dumps(strange))

    assert "\x1b" not in adjudge("policy", "test", "good.json").stdout


@pytest.mark.needs_yaml
def test_yaml_has_lines_everywhere(adjudge, files):
    """file:line of the case and of the rule."""
    (files / "p.yaml").write_text(
        "version: 1\nrules:\n  - id: shut\n    match: {tool: x}\n    decision: deny\n"
    )
    (files / "p.test.yaml").write_text(
        "adjudge_tests: 1\ncases:\n\n  - name: it runs\n    call: {tool: x}\n    expect: allow\n"
    )
    done = adjudge("policy", "test", "p.yaml")

    assert 1 == done.returncode
    assert 'p.test.yaml:4: "it runs"' in done.stdout
    assert "decided by: rule shut (p.yaml:3)" in done.stdout
