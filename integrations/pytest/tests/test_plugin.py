"""The plug-in under the real pytest: what it collects, what it reports, what it leaves alone."""

from __future__ import annotations

import subprocess
import sys

import pytest


def case(name, amount, expect, tool="pay", **call):
    """Give one case."""
    return {
        "name": name,
        "call": {"tool": tool, "args": {"amount": amount}, **call},
        "expect": expect,
    }


GOOD = [
    case("fifty runs", 50, "allow"),
    case("more does not", 51, "deny"),
    case("other tools do not", 1, "deny", tool="other"),
    case("nor does what cannot be undone", 1, "deny", tool="x", declared={"reversible": False}),
]


def outcomes(result):
    """Give how many tests ended how."""
    return {key: count for key, count in result.parseoutcomes().items() if key != "warnings"}


def test_every_case_is_a_test_of_its_name(desk):
    """With a node id by which it can be chosen."""
    desk.write(*GOOD)
    result = desk.run("-v")

    assert {"passed": 4} == outcomes(result)
    result.stdout.fnmatch_lines(["policy.test.json::fifty runs PASSED*"])
    chosen = desk.run("policy.test.json::more does not")
    assert {"passed": 1} == outcomes(chosen)
    assert {"passed": 1, "deselected": 3} == outcomes(desk.run("-k", "fifty"))


def test_a_failure_says_what_was_decided_and_by_which_rule(desk):
    """Without a traceback: place, call, difference, rule, reason."""
    desk.write(case("it asks", 50, "approve_required"), GOOD[1])
    result = desk.run()

    assert (1, {"passed": 1, "failed": 1}) == (result.ret, outcomes(result))
    result.stdout.fnmatch_lines(
        [
            "*it asks*",
            'policy.test.json:4: pay {"amount": 50}',
            "  verdict: expected approve_required, decided allow",
            "  decided by: rule pay (policy.json:1)",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "_items.py" not in result.stdout.str()


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        ([{"name": "a", "call": {"tool": "pay"}}], "*The case expects nothing*"),
        ([], "*there is nothing to check*"),
        ([GOOD[0], GOOD[0]], '*The name "fifty runs" is taken*'),
    ],
)
def test_cases_that_cannot_be_read_fail_the_collection(desk, cases, says):
    """With the sentence of the reader; it is no empty file that passes."""
    desk.write(*cases)
    result = desk.run()

    assert (2, {"errors": 1}) == (result.ret, outcomes(result))
    result.stdout.fnmatch_lines([says])


def test_a_policy_that_does_not_compile_fails_the_collection(desk):
    """So does one that is not there."""
    desk.write(*GOOD)
    desk.file("policy.json", "{")
    assert {"errors": 1} == outcomes(desk.run())
    (desk.path / "policy.json").unlink()
    result = desk.run()

    assert {"errors": 1} == outcomes(result)
    result.stdout.fnmatch_lines(["*There is no policy.json beside it*"])


def test_a_case_that_names_no_rule_fails(desk):
    """With the nearest rule."""
    desk.write(case("a", 1, {"verdict": "allow", "rule": "pya"}))
    result = desk.run()

    assert {"failed": 1} == outcomes(result)
    result.stdout.fnmatch_lines(['*has no rule "pya". Did you mean "pay"?*'])


@pytest.mark.parametrize("suffix", ["yaml", "yml"])
def test_yaml_is_collected_too(desk, suffix):
    """With the line of the case where it fails."""
    text = (
        "adjudge_tests: 1\npolicy: policy.json\ncases:\n"
        "  - name: a\n    call: {tool: x}\n    expect: allow\n"
    )
    desk.file(f"policy.test.{suffix}", text)
    result = desk.run()

    assert {"failed": 1} == outcomes(result)
    result.stdout.fnmatch_lines([f"policy.test.{suffix}:4: x {{}}"])


def test_toml_is_collected_too(desk):
    """A file of cases is in any format that a policy is in."""
    text = (
        "adjudge_tests = 1\npolicy = 'policy.json'\n"
        "[[cases]]\nname = 'a'\ncall.tool = 'x'\nexpect = 'deny'\n"
    )
    desk.file("policy.test.toml", text)

    assert {"passed": 1} == outcomes(desk.run())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chart.test.yaml", "cases: [\n"),
        ("values.test.yml", "# adjudge_tests are elsewhere\na: 1\n"),
        ("data.test.json", "{not json"),
        ("data.test.toml", "a = = 1"),
        ("policy.yaml", "adjudge_tests: 1\n"),
        ("tests.yaml", "adjudge_tests: 1\ncases: []\n"),
        ("binary.test.json", "\x00\x00"),
    ],
)
def test_files_of_others_are_never_touched(desk, name, text):
    """Neither read as ours nor reported, whatever is in them."""
    desk.file(name, text)
    desk.file("test_it.py", "def test_it(): pass\n")

    assert (0, {"passed": 1}) == ((result := desk.run()).ret, outcomes(result))


def test_a_run_without_cases_loads_nothing_of_adjudge(desk):
    """Nor anything else that pytest has not loaded itself."""
    desk.file(
        "test_it.py",
        "import sys\n\ndef test_it():\n"
        "    assert 'pytest_adjudge' in sys.modules\n"
        "    assert 'adjudge' not in sys.modules\n"
        "    assert 'pytest_adjudge._items' not in sys.modules\n",
    )

    assert {"passed": 1} == outcomes(desk.run())


def test_it_can_be_turned_off(desk):
    """By the name that pytest gives it."""
    desk.write(*GOOD)
    desk.file("test_it.py", "def test_it(): pass\n")

    assert {"passed": 1} == outcomes(desk.run("-p", "no:adjudge"))


@pytest.mark.parametrize(("least", "ending"), [("60", "passed"), ("60.1", "failed")])
def test_coverage_is_a_test_of_each_file(desk, least, ending):
    """It fails where less is covered than is asked for, and lists what is not."""
    desk.write(GOOD[0])
    result = desk.run(f"--adjudge-coverage={least}", "-v")

    result.stdout.fnmatch_lines([f"*policy.test.json::?coverage? {ending.upper()}*"])
    if ending == "failed":
        result.stdout.fnmatch_lines(["coverage: 60.0 %", "*was never false", "*less than 60.1 %."])


def test_mutation_is_a_test_of_each_file(desk):
    """It fails where a mistake is not noticed, and says which case is missing."""
    desk.write(*GOOD)
    assert {"passed": 5} == outcomes(desk.run("--adjudge-mutate"))
    desk.write(GOOD[0])
    result = desk.run("--adjudge-mutate")

    assert {"passed": 1, "failed": 1} == outcomes(result)
    result.stdout.fnmatch_lines(
        ["*no case notices if *", '*a case that would: pay {"amount": 51}*']
    )


def test_the_configuration_file_can_ask_for_both(desk):
    """The command line counts before it."""
    desk.write(*GOOD)
    desk.file("pytest.ini", "[pytest]\nadjudge_coverage = 100\nadjudge_mutate = true\n")

    assert {"passed": 6} == outcomes(desk.run())


@pytest.mark.parametrize("wrong", ["101", "-1", "nan", "much"])
def test_a_percentage_that_is_none_is_a_usage_error(desk, wrong):
    """On the command line and in the configuration file; it is not taken for none."""
    desk.write(*GOOD)
    said = f"not '{wrong}'."
    result = desk.run(f"--adjudge-coverage={wrong}")
    desk.file("pytest.ini", f"[pytest]\nadjudge_coverage = {wrong}\n")
    written = desk.run()

    assert (pytest.ExitCode.USAGE_ERROR,) * 2 == (result.ret, written.ret)
    assert said in result.stderr.str()
    assert said in written.stderr.str()


def test_layers_are_tested_together(desk):
    """As the file of cases names them."""
    desk.file("org.json", '{"rules": [{"id": "no", "match": {"tool": "pay"}}]}')
    layers = {"org": "org.json", "team": "policy.json"}
    desk.write(case("a", 1, {"verdict": "deny", "rule": "org:no"}), layers=layers)

    assert {"passed": 1} == outcomes(desk.run())


def test_cases_run_in_workers(desk):
    """pytest-xdist spreads them, coverage and mutation too."""
    desk.write(*GOOD)
    result = desk.run("-n", "2", "--adjudge-coverage=100", "--adjudge-mutate")

    assert {"passed": 6} == outcomes(result)


def test_importing_the_plugin_imports_pytest_alone():
    """It is loaded in every run, so it must cost nothing."""
    script = (
        "import sys, pytest; before = set(sys.modules); import pytest_adjudge; "
        "print(sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "['pytest_adjudge', 'pytest_adjudge._settings']\n" == ran.stdout
