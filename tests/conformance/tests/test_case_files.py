"""The case files: checked, with words for ids, and a schema that is kept in step."""

import json
from importlib import resources

import pytest
from pydantic import ValidationError

from adjudge_conformance.case import Case, by_id, load_cases, schema

CASE = {
    "id": "deny.never-runs",
    "says": "It never runs.",
    "clause": "design 4",
    "policy": {"version": 1, "rules": []},
    "tools": ["read_note"],
    "proposes": [[{"tool": "read_note", "args": {"name": "a"}}]],
    "expect": [{"verdict": "deny", "events": ["action.denied"]}],
}


def test_suite_has_cases_of_every_kind():
    """The files hold verdict, pause and transparent cases, each id once."""
    assert {"verdict", "pause", "transparent"} == {case.kind for case in load_cases()}


def test_every_verdict_has_a_case():
    """All five verdicts are expected somewhere."""
    verdicts = {expect.verdict for case in load_cases() for expect in case.expect}

    assert {"allow", "deny", "dry_run", "approve_required", "transform"} <= verdicts


def test_schema_file_is_what_the_models_say():
    """`cases/schema.json` is the JSON Schema of the models; write it again when they change."""
    kept = resources.files("adjudge_conformance") / "cases" / "schema.json"

    assert schema() == json.loads(kept.read_text(encoding="utf-8"))


def test_case_is_read():
    """A whole case is accepted."""
    assert "deny.never-runs" == Case.model_validate(CASE).id


@pytest.mark.parametrize(
    "change",
    [
        {"id": "deny.1"},
        {"id": "Deny"},
        {"expect": []},
        {"policy": None},
        {"tools": ["no_such_tool"]},
        {"tools": ["glance"]},
        {"kind": "transparent"},
        {"surprise": 1},
        {"resumption": "again"},
        {"kind": "pause", "resumption": "tampered"},
        {"kind": "pause", "resumption": "once", "tampers": {"a": "b"}},
        {"caller": "eve"},
        {"proposes": [[{"tool": "read_note"}]]},
        {"proposes": [[{"tool": "read_note", "args": {}, "text": "{}"}]]},
        {"proposes": [[{"tool": "read_note", "to_helper": "hello"}]]},
    ],
)
def test_case_that_says_nonsense_is_refused(change):
    """A numbered id, a missing expectation, an unknown tool or key: each is an error."""
    with pytest.raises(ValidationError):
        Case.model_validate({**CASE, **change})


def test_case_cannot_be_redefined():
    """Two cases of one id are an error."""
    case = Case.model_validate(CASE)

    with pytest.raises(ValueError, match="cannot be redefined"):
        by_id([case, case])
