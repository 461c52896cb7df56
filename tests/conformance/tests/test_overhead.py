"""What governing costs is measured of calls that are governed; no time is asserted."""

import json

import pytest

from adjudge.integration import ProposedCall
from adjudge_conformance.overhead import ANSWER, ARGUMENTS, REALISTIC, TOOL, Way, main


def body(guard):
    """Call the tool, through the guard if there is one."""
    if guard is None:
        return ANSWER
    call = ProposedCall(TOOL, {**ARGUMENTS})
    return guard.govern_call_sync(call, lambda _: ANSWER).result.value


def ways(guard):
    """Give a call in plain code and a run in coroutine code."""

    async def run():
        call = ProposedCall(TOOL, {**ARGUMENTS})

        async def execute(_):
            return ANSWER

        if guard is None:
            return ANSWER
        return (await guard.govern_call(call, execute)).result.value

    return {"call": Way("plain code", lambda: body(guard)), "run": Way("coroutine code", run)}


def ungoverned(guard):
    """Give a call that no guard sees."""
    return {"call": Way("an ungoverned call", lambda: ANSWER)}


def measured(report, name):
    """Measure with as few calls as there can be, into a report."""
    main(name, "pytest", ways, arguments=["--rounds", "1", "--json", str(report)])


def test_each_guard_is_measured_each_way(tmp_path):
    """The report has each way, in plain and coroutine code, under each of the guards."""
    measured(tmp_path / "speed.json", "acme")
    made = json.loads((tmp_path / "speed.json").read_text("utf-8"))["overhead"]["acme"]

    rules = f"{len(REALISTIC['rules'])} rules"
    guards = ["allow all", rules, f"{rules}, chained file"]
    assert {"call": guards, "run": guards} == {
        name: list(way["added_us"]) for name, way in made["ways"].items()
    }


def test_measuring_adds_to_the_report(tmp_path):
    """What else the report has stays in it, and frameworks stand in order."""
    report = tmp_path / "speed.json"
    report.write_text('{"deciding": 1}', encoding="utf-8")
    measured(report, "b")
    measured(report, "a")

    found = json.loads(report.read_text("utf-8"))
    assert (1, ["a", "b"]) == (found["deciding"], list(found["overhead"]))


def test_what_is_said_is_what_is_written(tmp_path, capsys):
    """The terminal has a line for each way and each guard."""
    measured(tmp_path / "speed.json", "acme")

    assert 8 == len(capsys.readouterr().out.splitlines())


def test_a_call_past_the_guard_is_not_measured():
    """A call that a denying guard does not stop would seem to be governed for nothing."""
    with pytest.raises(AssertionError, match="is not governed"):
        main("acme", "pytest", ungoverned, arguments=[])


def test_a_call_that_does_not_come_to_its_tool_is_not_measured():
    """An answer without the tool's own is no call."""
    with pytest.raises(AssertionError, match="something else"):
        main(
            "acme",
            "pytest",
            lambda _: {"call": Way("a call", lambda: "something else")},
            arguments=[],
        )
