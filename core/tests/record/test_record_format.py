"""Every value has one defined form in the record, and no two values share one."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge._record.format import EventTexts, event_to_record, record_line, to_json
from adjudge._record.redaction import apply_redactor, default_redactor
from adjudge._types import AuditEvent
from adjudge._values import OpaqueValue, freeze, thaw
from adjudge.errors import ArgumentsRefused


class Colour(Enum):
    RED = "red"


class Odd:
    def __repr__(self) -> str:
        return "<Odd with a secret>"


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, "null"),
        ({}, "{}"),
        (float("nan"), '{"$float":"nan"}'),
        (float("-inf"), '{"$float":"-inf"}'),
        (-0.0, "-0.0"),
        (1e16, "1e+16"),
        (1e-6, "1e-06"),
        (2**63, "9223372036854775808"),
        (9007199254740993, "9007199254740993"),
        (1, "1"),
        (1.0, "1.0"),
        (True, "true"),
        (Decimal("1.10"), '{"$decimal":"1.10"}'),
        ({1: "a", "1": "b"}, '{"$map":[[1,"a"],["1","b"]]}'),
        ((1, (2,)), "[1,[2]]"),
        ({3, 1, 2}, '{"$set":[1,2,3]}'),
        ({"$decimal": "1"}, '{"$$decimal":"1"}'),
        (b"\x00\xff", '{"$bytes":"AP8="}'),
        (Colour.RED, '"red"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (PurePosixPath("/a"), '"/a"'),
        (OpaqueValue(), '{"$secret":true}'),
        ("\ud800é", '"\\ud800\\u00e9"'),
    ],
)
def test_a_value_has_its_form(value, form):
    """Clause 28: sorted keys, ASCII, tight separators, tags for what JSON does not have."""
    assert form == record_line(to_json(value))


def test_an_unknown_object_is_named_by_its_type_alone():
    """An object's repr, which may hold an address or a secret, never reaches the record."""
    assert {"$type": f"{Odd.__module__}.Odd"} == to_json(Odd())


def test_an_integer_too_long_for_decimal_text_is_written_in_hexadecimal():
    """No integer makes the record fail."""
    assert {"$int": hex(10**5000)} == to_json(10**5000)


def test_a_cycle_and_a_bottomless_nesting_are_cut_with_a_mark():
    """What would never end is cut where it would begin again."""
    ring: list[object] = []
    ring.append(ring)
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]

    assert [{"$cut": "cycle"}] == to_json(ring)
    assert '{"$cut":"nesting"}' in record_line(to_json(deep))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_what_is_stored_reads_back_as_it_was_written(value):
    """Writing, reading and writing again gives the same bytes."""
    line = record_line(to_json(value))

    assert line == record_line(json.loads(line))


@given(JSON_VALUES, JSON_VALUES)
def test_different_values_have_different_forms(left, right):
    """Two values share a form only if they are the same value of the same kinds."""
    same = _kinds(left) == _kinds(right)

    assert same is (record_line(to_json(left)) == record_line(to_json(right)))


def _kinds(value):
    """A value with every kind made visible to Python's equality."""
    if isinstance(value, dict):
        return {key: _kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    return (type(value), repr(value))


def test_another_process_gives_the_same_line(event):
    """The form does not depend on the process: hash seeds, addresses or the order of a set."""
    script = (
        "from adjudge._record.format import record_line, to_json;"
        "print(record_line(to_json({'b': {'x', 'y', 'z'}, 'a': object()})))"
    )
    lines = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
        ).stdout
        for seed in ("1", "2")
    }

    assert 1 == len(lines)


def test_an_event_is_a_record_of_six_fields(event):
    """The record has the event's fields, its time in ISO 8601."""
    expected = {
        "correlation_id": "run",
        "bundle_id": "bundle",
        "seq": 2,
        "kind": "action.completed",
        "timestamp": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).isoformat(),
        "body": {"tool": "t"},
    }

    assert expected == event_to_record(event(2, "action.completed"))


@given(JSON_VALUES, st.text(), st.none() | st.text("0123456789abcdef", min_size=1))
def test_an_event_is_written_as_its_record_would_be(value, name, prev_hash):
    """Writing an event piece by piece gives the bytes of the whole record."""
    event = AuditEvent(name, name, 7, name, datetime(2026, 1, 2, 3, 4, tzinfo=UTC), {"args": value})
    link = {} if prev_hash is None else {"prev_hash": prev_hash}

    assert record_line({**event_to_record(event), **link}) == EventTexts().text(event, prev_hash)


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_a_body_that_shows_nothing_is_written_as_any_other(body):
    """Clause 28: what redaction has looked through has the same form as what it has rebuilt."""
    event = AuditEvent("run", "bundle", 7, "k", datetime(2026, 1, 2, tzinfo=UTC), body)
    frozen = {name: freeze(value) if _freezes(value) else value for name, value in body.items()}
    redacted = apply_redactor(default_redactor(digests=False), frozen)
    thawed = replace(event, body=thaw(redacted))

    assert record_line(event_to_record(thawed)) == EventTexts().text(replace(event, body=redacted))


def _freezes(value):
    """Whether a value is one that arguments may hold."""
    try:
        freeze(value)
    except ArgumentsRefused:
        return False
    return True
