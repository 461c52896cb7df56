"""What the stores keep: values that are checked once, and texts that are taken on nothing."""

import dataclasses
import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import (
    SessionRecord,
    StepRecord,
    StoreError,
    step_record_from_json,
    step_record_to_json,
)
from adjudge.integration import (
    OpaqueValue,
    canonical_json,
    freeze,
    parse_canonical,
    read_session,
    read_step,
    session_record_from_json,
    session_record_to_json,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
STEP = StepRecord("run", 0, "intent", "key", {"tool": "pay"}, NOW)
SESSION = SessionRecord("s", 1, {"goal": "pay"})

# Values


def test_a_step_is_frozen():
    """Neither its fields nor its body change after it was made."""
    given_ = {"list": [1]}
    step = dataclasses.replace(STEP, body=given_)
    given_["list"].append(2)

    assert {"list": [1]} == step.body
    with pytest.raises(TypeError):
        step.body["more"] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        step.seq = 1


def test_a_time_is_kept_in_utc():
    """The moment is the same, whatever zone it was given in."""
    east = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))

    assert "2026-01-02T03:04:05.678901+00:00" == (
        dataclasses.replace(STEP, timestamp=east).timestamp.isoformat()
    )


WRONG_STEPS = [
    ("run_id", "", ValueError),
    ("run_id", 7, TypeError),
    ("run_id", "a\0b", ValueError),
    ("run_id", "\ud800", ValueError),
    ("seq", -1, ValueError),
    ("seq", True, TypeError),
    ("seq", 1.0, TypeError),
    ("seq", 2**53, ValueError),
    ("kind", "", ValueError),
    ("kind", None, TypeError),
    ("idempotency_key", None, TypeError),
    ("body", [], TypeError),
    ("body", None, TypeError),
    ("body", {"x": float("nan")}, ValueError),
    ("body", {"x": object()}, ValueError),
    ("body", {1: "x"}, ValueError),
    ("timestamp", "2026-01-02", TypeError),
    ("timestamp", datetime(2026, 1, 2), ValueError),  # noqa: DTZ001 - that is what is refused
]


@pytest.mark.parametrize(("field", "value", "error"), WRONG_STEPS)
def test_what_is_no_step_is_refused(field, value, error):
    """The error names the field."""
    with pytest.raises(error, match=field):
        dataclasses.replace(STEP, **{field: value})


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("session_id", "", ValueError),
        ("session_id", b"s", TypeError),
        ("version", -1, ValueError),
        ("version", None, TypeError),
        ("body", "{}", TypeError),
    ],
)
def test_what_is_no_session_is_refused(field, value, error):
    """The error names the field."""
    with pytest.raises(error, match=field):
        dataclasses.replace(SESSION, **{field: value})


# Texts


def test_a_step_is_one_line_of_json():
    """The names are those of its fields, and the text is the same wherever it is written."""
    assert (
        '{"body":{"tool":"pay"},"idempotency_key":"key","kind":"intent","run_id":"run","seq":0,'
        '"timestamp":"2026-01-02T03:04:05.678901+00:00"}'
    ) == step_record_to_json(STEP)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
    | st.decimals(allow_nan=False, allow_infinity=False)
)
KEYS = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(
    ["$decimal", "$secret", "$", "$$x"]
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12
)


def kinds(value):
    """Tell 1 from 1.0 and True, at any depth."""
    if isinstance(value, dict):
        return {key: kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [kinds(item) for item in value]
    return (type(value).__name__, str(value))


@given(VALUES)
def test_what_was_written_is_read(value):
    """Every JSON value comes back as it was, of the same kinds, and no object passes for a tag."""
    found = parse_canonical(canonical_json(value))

    assert kinds(freeze(value)) == kinds(freeze(found))


@given(
    st.dictionaries(KEYS, VALUES), st.integers(0, 2**53 - 1), st.datetimes(timezones=st.just(UTC))
)
def test_a_step_comes_back_as_it_was(body, seq, moment):
    """Whatever is in it."""
    step = dataclasses.replace(STEP, body=body, seq=seq, timestamp=moment)

    assert step == step_record_from_json(step_record_to_json(step))
    assert step == read_step("run", seq, step_record_to_json(step))


@given(st.dictionaries(KEYS, VALUES), st.integers(1, 2**53 - 1))
def test_a_session_comes_back_as_it_was(body, version):
    """Whatever is in it."""
    session = SessionRecord("s", version, body)

    assert session == session_record_from_json(session_record_to_json(session))
    assert session == read_session("s", version, session_record_to_json(session))


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity"])
def test_a_number_that_is_not_finite_is_not_read(text):
    """Python's reader would take it for JSON."""
    with pytest.raises(ValueError, match="no JSON"):
        parse_canonical(text)


@pytest.mark.parametrize(
    "write",
    [
        lambda body: step_record_to_json(dataclasses.replace(STEP, body=body)),
        lambda body: session_record_to_json(dataclasses.replace(SESSION, body=body)),
    ],
    ids=["step", "session"],
)
def test_a_secret_is_not_written(write):
    """A store never gets to see one; a text that looks like its place is a text."""
    with pytest.raises(StoreError, match="secret"):
        write({"deep": [{"key": OpaqueValue()}]})

    assert "secret" in write({"text": '{"$secret":true}', "$secret": True})


def test_a_decimal_is_exact():
    """1.10 is not 1.1, and neither is a float."""
    step = dataclasses.replace(STEP, body={"n": Decimal("1.10")})

    assert "1.10" == str(step_record_from_json(step_record_to_json(step)).body["n"])


FIELDS = json.loads(step_record_to_json(STEP))
NO_STEPS = {
    "nothing": "",
    "no text": None,
    "bytes": b"{}",
    "a list": "[]",
    "null": "null",
    "cut short": step_record_to_json(STEP)[:-1],
    "two": step_record_to_json(STEP) * 2,
    "too deep": "[" * 100_000,
    "a key twice": '{"seq":1,' + step_record_to_json(STEP)[1:],
    "a field too few": json.dumps({k: v for k, v in FIELDS.items() if k != "kind"}),
    "a field too many": json.dumps({**FIELDS, "more": 1}),
    "NaN": json.dumps({**FIELDS, "body": {"n": float("nan")}}),
    "an infinite number": step_record_to_json(STEP).replace('"pay"', "1e999"),
    "an unknown tag": json.dumps({**FIELDS, "body": {"$date": "x"}}),
    "a decimal that is none": json.dumps({**FIELDS, "body": {"$decimal": "x"}}),
    "a decimal that is not finite": json.dumps({**FIELDS, "body": {"n": {"$decimal": "NaN"}}}),
    "a decimal that is no text": json.dumps({**FIELDS, "body": {"n": {"$decimal": 1}}}),
    "a body that is a decimal": json.dumps({**FIELDS, "body": {"$decimal": "1"}}),
    "a time in no zone": json.dumps({**FIELDS, "timestamp": "2026-01-02T03:04:05"}),
    "no time": json.dumps({**FIELDS, "timestamp": "yesterday"}),
    "a time that is a number": json.dumps({**FIELDS, "timestamp": 1}),
    "a number that is text": json.dumps({**FIELDS, "seq": "0"}),
    "a number that is a bool": json.dumps({**FIELDS, "seq": True}),
    "no kind": json.dumps({**FIELDS, "kind": ""}),
    "a lone surrogate": json.dumps({**FIELDS, "body": {"x": "\ud800"}}),
}


@pytest.mark.parametrize("text", NO_STEPS.values(), ids=NO_STEPS)
def test_what_is_no_step_is_not_read(text):
    """It raises `StoreError`, and never half a step."""
    with pytest.raises(StoreError):
        step_record_from_json(text)


@pytest.mark.parametrize(
    ("run_id", "seq"), [("other", 0), ("run", 1), ("run", "0"), ("run", None), ("run", False)]
)
def test_a_step_under_another_name_is_found_out(run_id, seq):
    """What identifies a row is inside its text as well."""
    with pytest.raises(StoreError, match="is not as it was written"):
        read_step(run_id, seq, step_record_to_json(STEP))


@pytest.mark.parametrize(
    ("session_id", "version"), [("other", 1), ("s", 2), ("s", "1"), ("s", None), ("s", True)]
)
def test_a_session_under_another_name_is_found_out(session_id, version):
    """What identifies a row is inside its text as well."""
    with pytest.raises(StoreError, match="is not as it was written"):
        read_session(session_id, version, session_record_to_json(SESSION))


def test_a_session_that_was_never_stored_is_not_read():
    """Versions in a store begin with 1."""
    new = dataclasses.replace(SESSION, version=0)

    with pytest.raises(StoreError, match="version"):
        read_session("s", 0, session_record_to_json(new))
